"""What is scored: the questions, joined with what each run has for them, and where its passages hit."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eval._gold import absent_gold, page_of
from eval._join import Joined, join_by_id
from eval._plan import Column, Holdings, plan_columns
from eval._predictions import read_predictions, read_retrieved
from eval._slices import read_own_columns
from rag_core import answers
from rag_core.datasets import load_questions
from rag_core.datasets.fever import canonical_title
from rag_core.errors import DataError
from rag_core.schemas import PER_EXAMPLE_BASE, Passage, Question


@dataclass(frozen=True)
class RunSpec:
    """A run to be scored: its name, its predictions, its retrieved passages; at least one of the two."""

    name: str
    predictions: str | None = None
    retrieved: str | None = None


@dataclass(frozen=True)
class EvalTask:
    """All that scoring depends on; small, so that it travels to workers as it is."""

    questions: str
    task: str
    runs: tuple[RunSpec, ...]
    passages: str | None = None
    metrics: tuple[str, ...] = ()
    slice_by: tuple[str, ...] = ()
    seed: int = 0

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> EvalTask:
        """The inverse of `dataclasses.asdict`, through JSON or not."""
        fields = {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
        return cls(**{**fields, "runs": tuple(RunSpec(**spec) for spec in value["runs"])})


@dataclass
class RunInputs:
    spec: RunSpec
    predictions: Joined | None
    retrieved: Joined | None
    columns: list[Column]
    not_computed: dict[str, str]
    """The task's metrics that cannot be measured, and why."""


@dataclass
class Inputs:
    """Everything loaded, once per process. Questions are in the order of their ids."""

    questions: list[Question]
    runs: list[RunInputs]
    passages: Any | None
    own_slices: dict[str, dict[str, str]]
    several_kinds: bool
    about: dict[str, Any]
    """For the manifest: rejected questions by reason, gold that the corpus does not hold."""

    def schema(self) -> pa.Schema:
        """The columns of `per_example.parquet`; `run` comes first when there are several."""
        names = dict.fromkeys(column.name for run in self.runs for column in run.columns)
        fields = [*PER_EXAMPLE_BASE, *(pa.field(name, pa.float64()) for name in names)]
        if len(self.runs) > 1:
            fields = [pa.field("run", pa.string(), nullable=False), *fields]
        return pa.schema(fields)


@functools.lru_cache(maxsize=1)
def load_inputs(task: EvalTask) -> Inputs:
    """Read questions, predictions and rankings, and plan the columns. DataError on bad input."""
    loaded = load_questions(task.questions, task.task)
    if not loaded.questions:
        why = loaded.reasons or "empty file"
        raise DataError(f"{task.questions}: no questions of task {task.task} ({why})")
    questions = sorted(loaded.questions, key=lambda q: q.question_id)
    store = None
    if task.passages:
        from rag_core.retrieval import PassageStore

        store = PassageStore.open(task.passages)
    own = {}
    if task.slice_by:
        own = read_own_columns(task.questions, task.task, task.slice_by)
    runs = [_load_run(spec, questions, task) for spec in task.runs]
    about: dict[str, Any] = {"n_questions": len(questions), "rejected_questions": loaded.reasons}
    if task.passages:
        about |= absent_gold(questions, task.passages)
    several_kinds = len({q.answer_kind for q in questions}) > 1
    return Inputs(questions, runs, store, own, several_kinds, about)


def _load_run(spec: RunSpec, questions: Sequence[Question], task: EvalTask) -> RunInputs:
    predictions = retrieved = None
    if spec.predictions:
        table = read_predictions(spec.predictions)
        predictions = join_by_id(spec.predictions, table, questions, ("status", "prediction"))
        if not predictions.rows:
            raise DataError(
                f"{spec.predictions}: none of its {len(table)} predictions is for a question of "
                f"{task.questions} (first id there: {questions[0].question_id!r}, "
                f"here: {predictions.unknown_ids[:1]})"
            )
    if spec.retrieved:
        table = read_retrieved(spec.retrieved)
        retrieved = join_by_id(spec.retrieved, table, questions, ("passage_ids",))
        if not retrieved.rows:
            raise DataError(f"{spec.retrieved}: no ranking for any question of {task.questions}")
    return RunInputs(spec, predictions, retrieved, *_columns(questions, predictions, retrieved, task))


def _columns(
    questions: Sequence[Question], predictions: Joined | None, retrieved: Joined | None, task: EvalTask
) -> tuple[list[Column], dict[str, str]]:
    ranked = retrieved or predictions
    assert ranked is not None

    def holds(joined: Joined | None, column: str) -> bool:
        return joined is not None and joined.table[column].null_count < len(joined.table)

    lengths = pc.list_value_length(ranked.table["passage_ids"])
    return plan_columns(
        Holdings(
            task.task,
            frozenset(q.answer_kind for q in questions),
            predictions=predictions is not None,
            log_prob=holds(predictions, "log_prob"),
            depth=pc.max(lengths).as_py() or 0,
            texts=task.passages is not None,
            predicted_evidence=holds(predictions, "predicted_evidence"),
            gold_evidence=any(q.evidence is not None for q in questions),
            gold_passages=any(q.gold_passages for q in questions),
            gold_pages=any(q.gold_pages for q in questions),
            log_partition=holds(retrieved, "log_partition"),
        ),
        task.metrics,
    )


@dataclass
class Example:
    """One question with what a run has for it."""

    question: Question
    status: str
    prediction: str | None
    log_prob: float | None
    evidence: list[dict[str, Any]] | None
    ranked: bool
    passage_ids: list[str]
    doc_scores: list[float]
    doc_prior: list[float]
    doc_posterior: list[float]
    log_partition: float | None
    pages: list[str] = field(default_factory=list)
    """By rank, the passage's page: its canonical title where gold goes by titles, else its id."""
    answer_hits: list[bool] | None = None
    passage_hits: list[bool] | None = None
    page_hits: list[bool] | None = None

    @property
    def answer_rank(self) -> int | None:
        """Rank of the first passage that holds an answer; by gold where there are no texts."""
        for hits in (self.answer_hits, self.passage_hits, self.page_hits):
            if hits is not None:
                return next((rank for rank, hit in enumerate(hits, 1) if hit), None)
        return None


_TAKEN = "status prediction log_prob predicted_evidence passage_ids doc_prior doc_posterior".split()


def examples_of(inputs: Inputs, run: RunInputs, questions: Sequence[Question]) -> list[Example]:
    ids = [q.question_id for q in questions]
    none: list[Any] = [None] * len(ids)
    predicted = run.predictions.take(ids, _TAKEN) if run.predictions else dict.fromkeys(_TAKEN, none)
    found = run.retrieved.take(ids, run.retrieved.table.column_names) if run.retrieved else {}
    rankings = found.get("passage_ids") or predicted["passage_ids"]
    out = []
    for i, question in enumerate(questions):
        status, text = predicted["status"][i], predicted["prediction"][i]
        if run.predictions:
            status = run.predictions.status(ids[i], status, text)
        else:
            status = "missing" if rankings[i] is None else "ok"
        out.append(
            Example(
                question,
                status,
                text if status == "ok" else None,
                predicted["log_prob"][i] if status == "ok" else None,
                predicted["predicted_evidence"][i],
                rankings[i] is not None,
                rankings[i] or [],
                found["doc_scores"][i] or [] if found else [],
                predicted["doc_prior"][i] or [],
                predicted["doc_posterior"][i] or [],
                found["log_partition"][i] if found else None,
            )
        )
    for example in out:
        _find_hits(inputs, example)
    return out


def _find_hits(inputs: Inputs, example: Example) -> None:
    question, ids = example.question, example.passage_ids
    if question.gold_passages is not None:
        gold = set(question.gold_passages)
        example.passage_hits = [i in gold for i in ids]
    passages = None
    if inputs.passages is not None:
        try:
            passages = inputs.passages.get(ids)
        except KeyError as error:
            raise DataError(f"question {question.question_id!r}: {error.args[0]} (--passages)") from None
    if question.gold_pages is not None:
        gold = set(map(canonical_title, question.gold_pages))
        example.pages = [canonical_title(page_of(i)) for i in ids]
        if passages is not None:
            titles = (canonical_title(passage.title) for passage in passages)
            example.pages = [t if t in gold else page for t, page in zip(titles, example.pages)]
        example.page_hits = [page in gold for page in example.pages]
    if passages is not None and question.answer_kind in ("text", "regex"):
        match = "regex" if question.answer_kind == "regex" else "string"
        example.answer_hits = _until_first_hit(passages, question.answers, match)


def _until_first_hit(passages: Sequence[Passage], wanted: Sequence[str], match: str) -> list[bool]:
    """Per rank, whether the passage is the first to hold an answer: what comes behind it is not read."""
    hits = [False] * len(passages)
    for rank, passage in enumerate(passages):
        if answers.has_answer(passage.text, wanted, match):
            hits[rank] = True
            break
    return hits
