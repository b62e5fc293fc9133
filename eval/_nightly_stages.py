"""The stages of a nightly run as commands, each in a directory that is named by all it depends on.

A stage's key is a digest of its module's LOGIC_VERSION, its options, the contents of its inputs and
models, and the keys of the stages it reads. So an unchanged stage is found finished where it was, a
changed metric makes a new `eval` beside the same `generate`, and nothing is ever written over.
"""

from __future__ import annotations

import ast
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval._nightly_config import CheckpointConfig, NightlyConfig, TaskConfig
from rag_core import files
from rag_core.digest import digest_of, file_digest
from rag_core.errors import DataError, UsageError
from rag_core.run_dir import damage, read_manifest
from rag_core.versions import package_versions

_KEY_DIGITS = 12
_SCORERS = ("sacrebleu", "rouge-score", "spacy")


@dataclass(frozen=True)
class Stage:
    """One command of one chain: `python -m MODULE ARGV --output DIRECTORY`."""

    module: str
    argv: tuple[str, ...]
    directory: str
    key: str

    @property
    def name(self) -> str:
        return stage_name(self.module)

    def command(self, job_options: Sequence[str] = ()) -> tuple[str, ...]:
        return (self.module, *self.argv, *job_options, "--output", self.directory)

    def is_finished(self) -> bool:
        """Whether the run is there, whole."""
        return unusable(self.directory) is None


def stage_name(module: str) -> str:
    return "eval" if module == "eval.run" else module.rsplit(".", 1)[-1]


def unusable(directory: str) -> str | None:
    """What is wrong with a run directory, by names and sizes; None when it is finished and whole."""
    try:
        return damage(directory, read_manifest(directory))
    except (DataError, FileNotFoundError) as error:
        return " ".join(str(error).split())


class Marks:
    """Digests of inputs and models, each computed once a night."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def file(self, url: str) -> Any:
        return self._once(url, lambda: file_digest(url))

    def run(self, directory: str) -> Any:
        """A stage made before the night, by its rows."""
        return self._once(directory, lambda: read_manifest(directory)["content_digest"])

    def model(self, name: str, part: str = "") -> Any:
        """A model directory by the bytes of its files (of `part` alone where it has one); else its name."""
        if files.is_local(name) and not os.path.isdir(name):
            return [name, package_versions().get("ragline")]
        inside = files.join(name, part) if part else name
        where = inside if files.list_tree(inside) else name
        return self._once(where, lambda: _tree_digest(where))

    def _once(self, key: str, compute: Any) -> Any:
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]


def _tree_digest(directory: str) -> list[list[str]]:
    prefix = len(directory.rstrip("/")) + 1
    return [[f.url[prefix:], file_digest(f.url)] for f in files.list_tree(directory)]


def logic_version(module: str) -> int:
    """The module's LOGIC_VERSION, read from its source: importing a job would load Beam and torch."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise UsageError(f"{module}: no such module")
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "LOGIC_VERSION" for target in node.targets
        ):
            return int(ast.literal_eval(node.value))
    raise RuntimeError(f"{module} has no LOGIC_VERSION")


def plan_chain(config: NightlyConfig, task: str, checkpoint: str, marks: Marks) -> list[Stage]:
    """retrieve → generate → eval of one checkpoint on one test set.

    Raises FileNotFoundError and DataError where an input is missing or unfinished.
    """
    asked, model = config.tasks[task], config.checkpoints[checkpoint]
    chain = _Chain(config, f"{task}-{checkpoint}", asked, marks)
    if model.closed_book:
        generate = chain.generate(model, None)
        return [generate, chain.evaluate(model, checkpoint, generate, None)]
    retrieve = chain.retrieve(model)
    generate = chain.generate(model, retrieve)
    return [retrieve, generate, chain.evaluate(model, checkpoint, generate, retrieve)]


@dataclass(frozen=True)
class _Chain:
    config: NightlyConfig
    name: str
    asked: TaskConfig
    marks: Marks

    def retrieve(self, model: CheckpointConfig) -> Stage:
        place = "--index" if self.asked.index else "--embeddings"
        source = str(self.asked.index or self.asked.embeddings)
        argv = [place, source, "--top-k", str(self.asked.top_k)]
        inputs = [self.marks.run(source)]
        if read_manifest(source).get("kind") != "bm25":
            encoder = model.question_encoder or model.path
            argv += ["--question-encoder", encoder]
            inputs.append(self.marks.model(encoder, "question_encoder"))
        return self._stage("beam_jobs.retrieve", argv, {"top_k": self.asked.top_k}, inputs)

    def generate(self, model: CheckpointConfig, retrieve: Stage | None) -> Stage:
        given = {
            "--kind": model.kind,
            "--n-docs": model.n_docs,
            "--decoding": model.decoding,
            "--num-beams": model.num_beams,
            "--max-length": model.max_length,
        }
        options = {key: str(value) for key, value in given.items() if value is not None}
        argv = ["--checkpoint", model.path, *(word for pair in options.items() for word in pair)]
        inputs = [self.marks.model(model.path)]
        if retrieve is None:
            argv.append("--closed-book")
        else:
            passages = str(self.asked.passages)
            argv += ["--retrieved", retrieve.directory, "--passages", passages]
            inputs += [self.marks.run(passages), retrieve.key]
        return self._stage("beam_jobs.generate", argv, options, inputs)

    def evaluate(self, model: CheckpointConfig, run: str, generate: Stage, retrieve: Stage | None) -> Stage:
        argv = ["--predictions", generate.directory, "--run", run]
        inputs = [generate.key, {name: package_versions().get(name) for name in _SCORERS}]
        if retrieve is not None:
            argv += ["--retrieved", retrieve.directory, "--passages", str(self.asked.passages)]
            inputs.append(retrieve.key)
        lists = {"--metrics": self.asked.metrics, "--slice-by": self.asked.slice_by}
        for option, values in lists.items():
            argv += [option, *values] if values else []
        return self._stage("eval.run", argv, {**lists, "run": run}, inputs)

    def _stage(self, module: str, argv: list[str], options: Any, inputs: list[Any]) -> Stage:
        asked = [self.asked.task, self.marks.file(self.asked.questions)]
        key = digest_of([module, logic_version(module), asked, options, inputs])[:_KEY_DIGITS]
        directory = os.path.join(self.config.output, "stages", self.name, f"{stage_name(module)}-{key}")
        questions = ("--questions", self.asked.questions, "--task", self.asked.task)
        return Stage(module, (*questions, *argv), directory, key)
