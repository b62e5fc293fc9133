"""The plan of a run: which experiments, which sizes, and for each seed the steps that they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eval._steps import Step
from eval.miniature._claims import CHECKPOINT_KINDS, at_point, check_claim, check_metric
from eval.miniature._expand import Scope, make_steps, needed, option_of, output_of
from eval.miniature._recipes import COMMON, EXPERIMENTS, Book, Experiment, is_size
from rag_core.errors import UsageError


def sizes_of(book: Book, size: str, changes: Sequence[str] = ()) -> dict[str, Any]:
    """The sizes of quick or full, with changes "NAME=VALUE" of the same type (a list: by commas)."""
    sizes = dict(book.common.sizes[size])
    for change in changes:
        name, _, text = change.partition("=")
        if name not in sizes:
            raise UsageError(f"--set {change}: no such size; there are {', '.join(sizes)}")
        try:
            sizes[name] = _typed(text, sizes[name])
        except ValueError:
            raise UsageError(f"--set {change}: expected a value like {sizes[name]!r}") from None
        if not is_size(sizes[name]):
            raise UsageError(f"--set {change}: must be above 0")
    return sizes


def _typed(text: str, like: Any) -> Any:
    if isinstance(like, list):
        return [_typed(part, like[0]) for part in text.split(",")]
    return type(like)(text)


def wanted_outputs(experiment: Experiment, sizes: Mapping[str, Any]) -> list[str]:
    """Paths below a seed's directory that an experiment reads: results, and checkpoints with their logs."""
    found = [f"results/{c.set}_{r.run}" for t in experiment.table for r in t.row if r.run for c in t.column]
    for curve in experiment.curve:
        found += [f"results/{at_point(line.result, k)}" for line in curve.line for k in sizes[curve.at]]
    found += [f"results/{heat.result}" for heat in experiment.heat]
    for claim in experiment.claim:
        where = "checkpoints" if claim.kind in CHECKPOINT_KINDS else "results"
        for name in filter(None, (claim.result, claim.baseline)):
            points = sizes[claim.at] if claim.at else [None]
            found += [f"{where}/{at_point(name, k)}" for k in points]
    return list(dict.fromkeys(found))


def fill_claims(experiment: Experiment, sizes: Mapping[str, Any], path: str) -> Experiment:
    """The experiment with its claims' `{name.first}`, `{name.last}`, … filled from the sizes."""
    scope = Scope({**sizes, "k": "{k}"}, path)

    def filled(text: str | None) -> str | None:
        return None if text is None else scope.text(text)

    claims = tuple(
        replace(c, says=scope.text(c.says), result=scope.text(c.result), baseline=filled(c.baseline),
                metric=filled(c.metric), baseline_metric=filled(c.baseline_metric))
        for c in experiment.claim
    )  # fmt: skip
    return replace(experiment, claim=claims)


def make_plan(
    book: Book, sizes: Mapping[str, Any], output: Path, seeds: Sequence[int], only: Sequence[str] = ()
) -> tuple[tuple[Experiment, ...], list[list[Step]]]:
    """The experiments and, for each seed, the steps that they need. UsageError on whatever cannot be."""
    directory = EXPERIMENTS.name
    experiments = tuple(fill_claims(e, sizes, f"{directory}/{e.name}.toml") for e in book.chosen(only))
    for experiment in experiments:
        _check(f"{directory}/{experiment.name}.toml", experiment, sizes)
    plans = []
    for seed in seeds:
        out = output / f"seed-{seed}"
        steps = make_steps(book.common, sizes, out, seed, f"{directory}/{COMMON}.toml")
        makers = {output_of(step): step.name for step in steps}
        names = []
        for experiment in experiments:
            for path in wanted_outputs(experiment, sizes):
                if str(out / path) not in makers:
                    raise UsageError(f"{directory}/{experiment.name}.toml: no step makes {path}")
                names.append(makers[str(out / path)])
            names += experiment.steps
        chosen = needed(steps, names)
        check_depths(chosen, f"{directory}/{COMMON}.toml")
        if len(seeds) > 1:
            chosen = _named(chosen, out, seed)
        plans.append(chosen)
    return experiments, plans


def check_depths(steps: Sequence[Step], path: str) -> None:
    """UsageError where a step reads more passages a question than the step that finds them keeps."""
    makers = {output_of(step): step for step in steps}
    for step in steps:
        finder = makers.get(option_of(step, "--retrieved"))
        if finder is None:
            continue
        reads, keeps = option_of(step, "--n-docs") or "", option_of(finder, "--top-k") or ""
        if reads.isdecimal() and keeps.isdecimal() and int(reads) > int(keeps):
            raise UsageError(
                f"{path}: {step.name} reads {reads} passages a question, {finder.name} keeps {keeps}"
            )


def _named(steps: Sequence[Step], out: Path, seed: int) -> list[Step]:
    """The steps with the seed in their names, but for those that all seeds share."""
    shared = {step.name for step in steps if out not in Path(str(output_of(step))).parents}

    def name(step: str) -> str:
        return step if step in shared else f"{step}.{seed}"

    return [replace(step, name=name(step.name), needs=tuple(map(name, step.needs))) for step in steps]


def _check(path: str, experiment: Experiment, sizes: Mapping[str, Any]) -> None:
    for claim in experiment.claim:
        check_claim(path, claim, sizes)
    for table in experiment.table:
        for column in table.column:
            check_metric(f"{path}: table {table.title!r}", column.metric)
    for curve in experiment.curve:
        if not isinstance(sizes.get(curve.at), list):
            raise UsageError(
                f"{path}: figure {curve.title!r}: at = {curve.at!r}: no list of that name in sizes"
            )
        for line in curve.line:
            check_metric(f"{path}: figure {curve.title!r}", at_point(line.metric, 1))
