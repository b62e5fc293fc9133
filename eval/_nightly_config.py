"""The one file of a nightly run: what is evaluated, on what, against what.

    output = "nightly"                    # everything is written below it
    baseline = "last_green"               # or "night:NAME", or "tag:NAME"
    gates = "gates.toml"                  # of eval.compare; without it no significant drop is allowed
    hook = ["./tell-the-team"]            # gets the verdict as JSON on its standard input
    webhook = "https://example.org/hook"  # gets it by POST
    job_options = ["--profile=local"]     # for every job; they do not change what a job computes

    [tasks.nq]
    task = "nq"
    questions = "data/NQ-open.dev.jsonl"
    passages = "passages"
    embeddings = "embeddings"             # exact search; or index = "DIR"
    top_k = 20

    [checkpoints.rag_token]
    path = "checkpoints/last"
    kind = "token"
    n_docs = 5
    tasks = ["nq"]                        # default: every task

Relative paths are relative to the file. Unknown keys are errors.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import Any

from eval._toml import checked
from rag_core import files
from rag_core.datasets import TASKS
from rag_core.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
BASELINES = ("last_green", "night:NAME", "tag:NAME")


@dataclass(frozen=True)
class TaskConfig:
    """One test set and where its passages are looked for."""

    task: str
    questions: str
    passages: str | None = None
    embeddings: str | None = None
    index: str | None = None
    top_k: int = 20
    metrics: tuple[str, ...] = ()
    slice_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckpointConfig:
    """One model, and how it answers."""

    path: str
    kind: str | None = None
    closed_book: bool = False
    question_encoder: str | None = None
    """Default: the checkpoint's own."""
    n_docs: int | None = None
    decoding: str | None = None
    num_beams: int | None = None
    max_length: int | None = None
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True)
class NightlyConfig:
    output: str
    tasks: dict[str, TaskConfig]
    checkpoints: dict[str, CheckpointConfig]
    baseline: str = "last_green"
    gates: str | None = None
    hook: tuple[str, ...] = ()
    webhook: str | None = None
    job_options: tuple[str, ...] = ()

    def chains(self) -> list[tuple[str, str]]:
        """(task, checkpoint) by name, in the file's order: what is evaluated every night."""
        return [(t, c) for c, model in self.checkpoints.items() for t in model.tasks or tuple(self.tasks)]


def read_config(path: str) -> NightlyConfig:
    """The configuration in a TOML file. UsageError names the file, the key and what is wrong with it."""
    raw = files.read_toml(path)
    tables = {
        "tasks": _tables(path, raw.pop("tasks", None), "tasks", TaskConfig),
        "checkpoints": _tables(path, raw.pop("checkpoints", None), "checkpoints", CheckpointConfig),
    }
    config = NightlyConfig(**checked(path, "", NightlyConfig, raw, given=tables), **tables)
    _check(path, config)
    return _resolved(config, os.path.dirname(os.path.abspath(path)))


def _tables(path: str, raw: Any, name: str, kind: type) -> dict[str, Any]:
    if not isinstance(raw, dict) or not raw:
        raise UsageError(f"{path}: at least one table [{name}.NAME] is needed")
    found = {}
    for key, table in raw.items():
        if not _NAME.fullmatch(key):
            raise UsageError(f"{path}: [{name}.{key!r}]: a name has letters, digits, '_', '-' and '.' only")
        if not isinstance(table, dict):
            raise UsageError(f"{path}: {name}.{key}: expected a table")
        found[key] = kind(**checked(path, f"{name}.{key}.", kind, table))
    return found


def _check(path: str, config: NightlyConfig) -> None:
    for name, task in config.tasks.items():
        if task.task not in TASKS:
            raise UsageError(f"{path}: tasks.{name}.task = {task.task!r}: tasks are {', '.join(TASKS)}")
        if task.embeddings and task.index:
            raise UsageError(f"{path}: tasks.{name}: give embeddings or index, not both")
    for name, model in config.checkpoints.items():
        unknown = [t for t in model.tasks if t not in config.tasks]
        if unknown:
            raise UsageError(f"{path}: checkpoints.{name}.tasks: there is no [tasks.{unknown[0]}]")
        for task_name in () if model.closed_book else model.tasks or tuple(config.tasks):
            task = config.tasks[task_name]
            if not task.passages or not (task.embeddings or task.index):
                raise UsageError(f"{path}: tasks.{task_name}: {name} needs passages, and embeddings or index")
    if config.baseline != "last_green" and not config.baseline.startswith(("night:", "tag:")):
        raise UsageError(f"{path}: baseline = {config.baseline!r}: expected {', '.join(BASELINES)}")


def _resolved(config: NightlyConfig, base: str) -> NightlyConfig:
    """The same with absolute paths; model names that are no directories beside the file stay names."""

    def at(value: str | None) -> str | None:
        return value if value is None or not files.is_local(value) else os.path.join(base, value)

    def model(value: str | None) -> str | None:
        return at(value) if value and os.path.exists(os.path.join(base, value)) else value

    places = ("questions", "passages", "embeddings", "index")
    tasks = {
        name: replace(task, **{p: at(getattr(task, p)) for p in places})
        for name, task in config.tasks.items()
    }
    checkpoints = {
        name: replace(c, path=model(c.path), question_encoder=model(c.question_encoder))
        for name, c in config.checkpoints.items()
    }
    hook = config.hook and (model(config.hook[0]), *config.hook[1:])
    return replace(
        config,
        output=at(config.output),
        gates=at(config.gates),
        hook=hook,
        tasks=tasks,
        checkpoints=checkpoints,
    )
