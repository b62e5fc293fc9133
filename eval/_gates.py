"""Gates: what a comparison must satisfy, from TOML.

    alpha = 0.05
    allow = ["predictions.options.decoding"]     # settings that may differ between the runs

    [task.nq]
    primary = "exact_match"                      # the one metric that decides; default: the task's first
    max_drop = 0.01                              # a larger drop fails, if the interval excludes 0 too
    floor = 0.40                                 # a value below fails, whatever the baseline

    [[task.nq.slice]]
    slice = "answer_in_passages=yes"
    metric = "exact_match"
    max_drop = 0.02

`[task.default]` serves every task without a table of its own. Unknown keys are errors, and so are rules
that guard nothing: for a task, a metric or a slice that the results do not hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from rag_core import files
from rag_core.errors import UsageError


@dataclass(frozen=True)
class SliceGate:
    """A rule for one metric on one slice."""

    slice: str
    metric: str
    max_drop: float = 0.0


@dataclass(frozen=True)
class TaskGate:
    """The rules of one task."""

    primary: str | None = None
    max_drop: float = 0.0
    floor: float | None = None
    slice: tuple[SliceGate, ...] = ()


@dataclass(frozen=True)
class Gates:
    alpha: float = 0.05
    allow: tuple[str, ...] = ()
    task: Mapping[str, TaskGate] = field(default_factory=dict)

    def of(self, task: str) -> TaskGate:
        return self.task.get(task) or self.task.get("default") or TaskGate()


def read_gates(path: str | None) -> Gates:
    """Gates from a TOML file, the defaults without one. UsageError naming the key that is wrong."""
    if path is None:
        return Gates()
    raw = files.read_toml(path)
    tasks = {}
    for name, table in _checked(path, Gates, raw).pop("task", {}).items():
        rules = _checked(path, TaskGate, table).get("slice", ())
        slices = tuple(SliceGate(**_checked(path, SliceGate, rule)) for rule in rules)
        tasks[name] = TaskGate(**{**table, "slice": slices})
    top = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items() if k != "task"}
    if not all(isinstance(name, str) for name in top.get("allow", ())):
        raise UsageError(f"{path}: allow = {top['allow']!r}: expected names of settings")
    gates = Gates(**top, task=tasks)
    if not 0 < gates.alpha < 1:
        raise UsageError(f"{path}: alpha = {gates.alpha}: must lie between 0 and 1")
    return gates


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _checked(path: str, kind: type, table: Any) -> dict[str, Any]:
    known = {f.name: str(f.type) for f in fields(kind)}
    if not isinstance(table, dict):
        raise UsageError(f"{path}: {table!r}: expected a table with {', '.join(known)}")
    for key, value in table.items():
        if key not in known:
            raise UsageError(f"{path}: unknown key {key!r}; keys here: {', '.join(known)}")
        if "float" in known[key] and not _is_number(value):
            raise UsageError(f"{path}: {key} = {value!r}: expected a number")
        if known[key].startswith("str") and not isinstance(value, str):
            raise UsageError(f"{path}: {key} = {value!r}: expected text")
        if known[key].startswith("tuple") and not isinstance(value, list):
            raise UsageError(f"{path}: {key} = {value!r}: expected a list")
        if known[key].startswith("Mapping") and not isinstance(value, dict):
            raise UsageError(f"{path}: {key} = {value!r}: expected a table")
    if kind is SliceGate and not {"slice", "metric"} <= table.keys():
        raise UsageError(f"{path}: a slice rule needs 'slice' and 'metric'")
    return dict(table)
