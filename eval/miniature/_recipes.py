"""The experiments as data: `experiments/*.toml`, read strictly.

`common.toml` holds what several experiments share: sizes, names, and the steps. Every other file is one table
or figure of the paper: what it shows, and what it claims. A command is a template (`eval.miniature._expand`):

    [[step]]
    name = "train_{search}_{kind}"
    each = { search = ["bm25", "frozen", "trained"], kind = ["token", "sequence"] }
    command = "rag_core.train {search.train} --kind {kind} --output {out}/checkpoints/{search}_{kind}"

A step needs whatever makes the paths that it names; `needs` is for what no path shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eval._toml import checked
from rag_core import files
from rag_core.errors import UsageError

EXPERIMENTS = Path(__file__).parent / "experiments"
COMMON = "common"
SIZES = ("quick", "full")


@dataclass(frozen=True)
class StepRecipe:
    """One command for every combination of `each`: axis → its values, or the name of a list."""

    name: str
    command: str
    each: dict[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    threads: int = 1


@dataclass(frozen=True)
class Column:
    """A column of a table: a metric on a test set."""

    head: str
    set: str
    metric: str
    slice: str = "all"


@dataclass(frozen=True)
class Row:
    """A row of a table: what ran, and the paper's figures in the order of the columns ("–": it gives none).

    A cell is read from the results `{column.set}_{row.run}`; a row without `run` is the paper's alone.
    """

    name: str
    run: str | None = None
    paper: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    title: str
    column: tuple[Column, ...]
    row: tuple[Row, ...]


@dataclass(frozen=True)
class Line:
    """A line of a figure: a metric of results in which `{k}` is the point."""

    name: str
    result: str
    metric: str
    slice: str = "all"


@dataclass(frozen=True)
class Curve:
    """A figure: lines over the points of a list of sizes."""

    title: str
    x: str
    at: str
    line: tuple[Line, ...]
    paper: str = ""


@dataclass(frozen=True)
class Heat:
    """A heat map: posterior over passages for every token of one answer, of the runs of a result."""

    title: str
    result: str
    slice: str = "all"
    paper: str = ""


@dataclass(frozen=True)
class Claim:
    """What should hold. At least one expectation; all that are given must hold.

    above, below: the whole 95% interval lies beyond (both: within, so that nothing much has changed);
    at_least, at_most: the value does; equals: the value is it, give or take `tolerance`.
    """

    says: str
    kind: str
    result: str
    baseline: str | None = None
    metric: str | None = None
    baseline_metric: str | None = None
    slice: str = "all"
    at: str | None = None
    above: float | None = None
    below: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    equals: float | None = None
    tolerance: float = 0.0
    paper: str = ""
    if_not: str = ""
    """What it would mean if it does not hold; shown only then."""

    @property
    def expectations(self) -> dict[str, float]:
        names = ("above", "below", "at_least", "at_most", "equals")
        return {n: float(v) for n in names if (v := getattr(self, n)) is not None}


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper. `steps` are wanted beside those that its results need."""

    title: str
    about: str
    name: str = ""
    table: tuple[Table, ...] = ()
    curve: tuple[Curve, ...] = ()
    heat: tuple[Heat, ...] = ()
    claim: tuple[Claim, ...] = ()
    steps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Common:
    """`common.toml`. sizes: a table for each of quick and full; let: named pieces of commands; axis: pieces
    that depend on an axis' value, `[axis.search.bm25]`."""

    sizes: dict[str, Any]
    step: tuple[StepRecipe, ...]
    let: dict[str, Any] = field(default_factory=dict)
    axis: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Book:
    """All recipes: what is shared, and the experiments in the order of the page."""

    common: Common
    experiments: tuple[Experiment, ...]

    def chosen(self, names: Sequence[str]) -> tuple[Experiment, ...]:
        """The experiments of these names, all without any. UsageError for a name that is none."""
        known = {e.name: e for e in self.experiments}
        for name in names:
            if name not in known:
                raise UsageError(f"--only {name}: no such experiment; there are {', '.join(known)}")
        return tuple(e for e in self.experiments if not names or e.name in names)


def read_book(directory: str | Path = EXPERIMENTS) -> Book:
    """The recipes of a directory. UsageError names file, key and what is wrong with it."""
    paths = sorted(Path(directory).glob("*.toml"))
    common_path = Path(directory) / f"{COMMON}.toml"
    if common_path not in paths:
        raise UsageError(f"{directory}: no {COMMON}.toml")
    path = str(common_path)
    raw = files.read_toml(path)
    order = raw.pop("order", [])
    common = Common(**checked(path, "", Common, raw))
    _check_common(path, common)
    experiments = []
    for found in paths:
        if found != common_path:
            values = checked(str(found), "", Experiment, files.read_toml(str(found)), given=("name",))
            experiment = replace(Experiment(**values), name=found.stem)
            _check_experiment(str(found), experiment)
            experiments.append(experiment)
    names = [e.name for e in experiments]
    if not isinstance(order, list) or sorted(map(str, order)) != sorted(names):
        raise UsageError(f"{path}: order = {order}: expected each of {', '.join(sorted(names))} once")
    return Book(common, tuple(sorted(experiments, key=lambda e: order.index(e.name))))


def _check_common(path: str, common: Common) -> None:
    for size in SIZES:
        if size not in common.sizes:
            raise UsageError(f"{path}: sizes.{size} is missing")
    for size, table in common.sizes.items():
        if not isinstance(table, dict):
            raise UsageError(f"{path}: sizes.{size}: expected a table")
        for name, value in table.items():
            if not is_size(value):
                raise UsageError(
                    f"{path}: sizes.{size}.{name} = {value!r}: expected a number above 0, a text, or a list"
                )
        if not isinstance(table.get("seeds"), int):
            raise UsageError(f"{path}: sizes.{size}.seeds is missing, or no whole number")
        if table.keys() != next(iter(common.sizes.values())).keys():
            raise UsageError(f"{path}: sizes.{size} has other keys than sizes.{next(iter(common.sizes))}")
    for name, value in common.let.items():
        if not isinstance(value, str):
            raise UsageError(f"{path}: let.{name} = {value!r}: expected a text")
    for axis, values in common.axis.items():
        if not isinstance(values, dict):
            raise UsageError(f"{path}: axis.{axis}: expected tables, [axis.{axis}.VALUE]")
        for value, pieces in values.items():
            if not isinstance(pieces, dict) or not all(isinstance(p, str) for p in pieces.values()):
                raise UsageError(f"{path}: axis.{axis}.{value}: expected a table of texts")


def is_size(value: Any) -> bool:
    """A text, a finite number above 0, or a list of such."""
    items = value if isinstance(value, list) and value else [value]
    return all(
        isinstance(i, str) or (isinstance(i, int | float) and not isinstance(i, bool) and 0 < i < math.inf)
        for i in items
    )


def _check_experiment(path: str, experiment: Experiment) -> None:
    """What is found by its name on the page has a name of its own; rows fit; claims expect something."""
    shown = (*experiment.table, *experiment.curve, *experiment.heat)
    if twice := _twice(s.title for s in shown):
        raise UsageError(f"{path}: {twice!r} is the title of two tables or figures")
    for curve in experiment.curve:
        if twice := _twice(line.name for line in curve.line):
            raise UsageError(f"{path}: figure {curve.title!r}: two lines are called {twice!r}")
    for table in experiment.table:
        if twice := _twice(column.head for column in table.column):
            raise UsageError(f"{path}: table {table.title!r}: two columns are called {twice!r}")
        if twice := _twice(row.name for row in table.row):
            raise UsageError(f"{path}: table {table.title!r}: two rows are called {twice!r}")
        for row in table.row:
            if row.paper and len(row.paper) != len(table.column):
                raise UsageError(
                    f"{path}: row {row.name!r}: {len(row.paper)} figures of the paper for "
                    f"{len(table.column)} columns"
                )
    for claim in experiment.claim:
        if not claim.expectations:
            raise UsageError(f"{path}: claim {claim.says!r} expects nothing: give above, at_least, equals, …")
        if claim.tolerance < 0:
            raise UsageError(f"{path}: claim {claim.says!r}: tolerance = {claim.tolerance} is below 0")
        if claim.tolerance and claim.equals is None:
            raise UsageError(f"{path}: claim {claim.says!r} has a tolerance, but no equals")


def _twice(names: Iterable[str]) -> str | None:
    """The first name that comes a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
