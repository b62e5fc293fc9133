"""From templates to commands: every step of a run, with its prerequisites, in an order that can be run.

`{name}` is a size, a piece of `[let]`, the value of an axis, or a piece of it (`{search.train}`); braces may
stand in braces (`{family.{kind}}`). A word that is just a piece becomes as many words as the piece has.
`{list*}` repeats its word for every value of a list; `{list.first}`, `{list.last}` and `{list.but_last}` are
single values. Values are put in after the words are cut, so that a path with a space stays one word.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval._steps import Step
from eval.miniature._recipes import Common, StepRecipe
from rag_core.errors import UsageError

_NAME = re.compile(r"\w[\w.-]*")
"""A step's name is that of its log too."""
_ENDS = {"first": 0, "last": -1, "but_last": -2}


class Piece(str):
    """A template by itself: it is cut into words and filled where it stands."""


@dataclass(frozen=True)
class Scope:
    """The values that templates of one place may name."""

    values: Mapping[str, Any]
    where: str

    def words(self, template: str, inside: tuple[str, ...] = ()) -> list[str]:
        """The template's words, filled. UsageError on a name that is not there, or pieces in a circle."""
        try:
            cut = shlex.split(template)
        except ValueError as error:
            raise UsageError(f"{self.where}: {template!r}: {error}") from None
        return [word for piece in cut for word in self._word(piece, inside)]

    def text(self, template: str, inside: tuple[str, ...] = ()) -> str:
        """The template filled, as one text."""
        out = []
        for literal, slot in _slots(template, self.where):
            out.append(literal)
            if slot is not None:
                value, name = self._value(slot, inside)
                out.append(self.text(value, (*inside, name)) if isinstance(value, Piece) else _shown(value))
        return "".join(out)

    def _word(self, word: str, inside: tuple[str, ...]) -> list[str]:
        slots = [slot for _, slot in _slots(word, self.where) if slot is not None]
        if len(slots) == 1 and word == f"{{{slots[0]}}}":
            value, name = self._value(slots[0], inside)
            if isinstance(value, Piece):
                return self.words(value, (*inside, name))
        starred = [slot for slot in slots if slot.endswith("*")]
        if not starred:
            return [self.text(word, inside)]
        value, _ = self._value(starred[0][:-1], inside)
        if not isinstance(value, list | tuple):
            raise UsageError(f"{self.where}: {{{starred[0]}}} is no list: {value!r}")
        return [self.text(word.replace(f"{{{starred[0]}}}", _shown(item)), inside) for item in value]

    def _value(self, slot: str, inside: tuple[str, ...]) -> tuple[Any, str]:
        name = self.text(slot, inside)
        if name in inside:
            raise UsageError(f"{self.where}: {' → '.join((*inside, name))} is a circle")
        if name in self.values:
            return self.values[name], name
        stem, _, end = name.rpartition(".")
        found = self.values.get(stem)
        if isinstance(found, list | tuple) and end in _ENDS and len(found) >= abs(_ENDS[end]):
            return found[_ENDS[end]], name
        raise UsageError(f"{self.where}: {{{name}}} is unknown; known: {', '.join(sorted(self.values))}")


def _slots(text: str, where: str) -> Iterator[tuple[str, str | None]]:
    """(literal, slot) pairs; braces within a slot belong to it."""
    at = 0
    while (begin := text.find("{", at)) >= 0:
        depth, end = 1, begin + 1
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        if depth:
            raise UsageError(f"{where}: {text!r}: a brace is not closed")
        yield text[at:begin], text[begin + 1 : end - 1]
        at = end
    yield text[at:], None


def _shown(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def make_scope(common: Common, sizes: Mapping[str, Any], out: Path, seed: int, where: str) -> Scope:
    """What a template may name that stands in no step: sizes, pieces, `{seed}`, its directory `{out}`, and
    `{base}` above it, for what all seeds share."""
    pieces = {name: Piece(text) for name, text in common.let.items()}
    clash = pieces.keys() & sizes.keys()
    if clash:
        raise UsageError(f"{where}: {clash.pop()!r} is a size and a piece of [let]")
    return Scope({**sizes, **pieces, "out": str(out), "base": str(out.parent), "seed": seed}, where)


def make_steps(common: Common, sizes: Mapping[str, Any], out: Path, seed: int, path: str) -> list[Step]:
    """Every step of one seed, in an order in which each comes behind what it needs.

    UsageError on an unknown name, a step that is needed and not there, a path that no step makes, a circle,
    and two steps of one name or output.
    """
    made: list[tuple[Step, tuple[str, ...]]] = []
    for recipe in common.step:
        for bound in _bindings(recipe, common, sizes, f"{path}: step {recipe.name}"):
            base = make_scope(common, sizes, out, seed, f"{path}: step {recipe.name}")
            scope = Scope({**base.values, **bound}, base.where)
            needs = tuple(scope.text(need) for need in recipe.needs)
            step = Step(scope.text(recipe.name), tuple(scope.words(recipe.command)), needs, recipe.threads)
            made.append((step, needs))
    steps = [step for step, _ in made]
    outputs = _outputs(steps, path)
    with_needs = []
    for step in steps:
        found = [*step.needs, *_makers(step, outputs, out, path)]
        for need in found:
            if need not in {s.name for s in steps}:
                raise UsageError(f"{path}: step {step.name} needs {need!r}, which is no step")
        with_needs.append(Step(step.name, step.argv, tuple(dict.fromkeys(found)), step.threads))
    return ordered(with_needs, path)


def _bindings(
    recipe: StepRecipe, common: Common, sizes: Mapping[str, Any], where: str
) -> Iterator[dict[str, Any]]:
    """The values of every combination of the recipe's axes, with the pieces that belong to them."""
    choices = []
    for axis, given in recipe.each.items():
        values = sizes.get(given) if isinstance(given, str) else given
        if not isinstance(values, list | tuple) or not values:
            raise UsageError(
                f"{where}: each.{axis} = {given!r}: expected a list, or the name of one in sizes"
            )
        known = common.axis.get(axis)
        for value in values:
            if known is not None and value not in known:
                raise UsageError(f"{where}: {value!r} is no value of axis {axis} ({', '.join(known)})")
        choices.append([(axis, value) for value in values])
    for combination in itertools.product(*choices):
        bound: dict[str, Any] = dict(combination)
        for axis, value in combination:
            pieces = common.axis.get(axis, {}).get(value, {})
            bound |= {f"{axis}.{name}": Piece(text) for name, text in pieces.items()}
        yield bound


def output_of(step: Step) -> str | None:
    """The path behind `--output`."""
    return option_of(step, "--output")


def option_of(step: Step, option: str) -> str | None:
    """The word behind an option; None where the step was not given it."""
    return step.argv[step.argv.index(option) + 1] if option in step.argv[:-1] else None


def _outputs(steps: Sequence[Step], path: str) -> dict[str, str]:
    """Output path → the step that makes it."""
    outputs: dict[str, str] = {}
    names: set[str] = set()
    for step in steps:
        if not _NAME.fullmatch(step.name):
            raise UsageError(f"{path}: step {step.name!r}: a name is of letters, digits, '_', '-' and '.'")
        if step.name in names:
            raise UsageError(f"{path}: two steps are called {step.name!r}")
        names.add(step.name)
        output = output_of(step)
        if output is None:
            raise UsageError(f"{path}: step {step.name} has no --output")
        if output in outputs:
            raise UsageError(f"{path}: steps {outputs[output]} and {step.name} write to {output}")
        outputs[output] = step.name
    return outputs


def _makers(step: Step, outputs: Mapping[str, str], out: Path, path: str) -> list[str]:
    """The steps that make the paths of `{out}` and `{base}` that the step reads: its words but the output."""
    found = []
    own = output_of(step)
    paths = {Path(output): name for output, name in outputs.items()}
    for word in step.argv:
        # As templates spell them: with `--output .` the paths of a seed do not begin with "./".
        if word == own or not word.startswith((f"{out}/", f"{out.parent}/")):
            continue
        maker = next((paths[p] for p in (Path(word), *Path(word).parents) if p in paths), None)
        if maker is None:
            raise UsageError(f"{path}: step {step.name} reads {word}, which no step makes")
        found.append(maker)
    return found


def ordered(steps: Sequence[Step], path: str) -> list[Step]:
    """The steps, each behind what it needs, else in their own order. UsageError on a circle."""
    by_name = {step.name: step for step in steps}
    done: dict[str, Step] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            raise UsageError(f"{path}: steps need each other: {' → '.join((*trail, name))}")
        if name not in done:
            for need in by_name[name].needs:
                visit(need, (*trail, name))
            done[name] = by_name[name]

    for step in steps:
        visit(step.name, ())
    return list(done.values())


def needed(steps: Sequence[Step], wanted: Sequence[str]) -> list[Step]:
    """The steps of these names and all that they need, in order. UsageError for a name that is none."""
    by_name = {step.name: step for step in steps}
    left, found = list(wanted), set()
    while left:
        name = left.pop()
        if name not in by_name:
            raise UsageError(f"no step is called {name!r}; steps: {', '.join(by_name)}")
        if name not in found:
            found.add(name)
            left += by_name[name].needs
    return [step for step in steps if step.name in found]
