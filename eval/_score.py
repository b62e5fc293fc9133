"""Scoring one part of one run: the rows of `per_example.parquet`, and the sums of `summary.parquet`."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eval._cells import Cell, KeyCell, fill_cell, fill_key_cell
from eval._intervals import id_hashes, mixed, poisson_weights
from eval._join import Joined, join_by_id, prediction_status, question_key
from eval._plan import KIND_OF, Column, Holdings, plan_columns
from eval._predictions import read_predictions, read_retrieved
from eval._slices import slices_of
from rag_core import answers
from rag_core.datasets import load_questions
from rag_core.datasets.fever import canonical_title
from rag_core.digest import digest_of
from rag_core.errors import DataError
from rag_core.schemas import PER_EXAMPLE_BASE, Question

_HALF_STREAM = 1 << 20  # far from the bootstrap's streams
_BATCH_BYTES = 64 << 20

CellKey = tuple[int, str, str, str]
"""Run number, slice, scope, metric."""


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


@dataclass
class RunInputs:
    spec: RunSpec
    predictions: Joined | None
    retrieved: Joined | None
    columns: list[Column]


@dataclass
class Inputs:
    """Everything loaded, once per process. Questions are in the order of their ids."""

    questions: list[Question]
    runs: list[RunInputs]
    passages: Any | None
    own_slices: dict[str, dict[str, str]]
    rejected: dict[str, int]

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
        raise DataError(f"{task.questions}: no questions of task {task.task} ({loaded.reasons or 'empty file'})")
    questions = sorted(loaded.questions, key=lambda q: q.question_id)
    store = None
    if task.passages:
        from rag_core.retrieval import PassageStore

        store = PassageStore.open(task.passages)
    own = {}
    if task.slice_by:
        from eval._slices import read_own_columns

        own = read_own_columns(task.questions, task.task, task.slice_by)
    runs = [_load_run(spec, questions, task) for spec in task.runs]
    return Inputs(questions, runs, store, own, loaded.reasons)


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
    return RunInputs(spec, predictions, retrieved, _columns(questions, predictions, retrieved, task))


def _columns(
    questions: Sequence[Question], predictions: Joined | None, retrieved: Joined | None, task: EvalTask
) -> list[Column]:
    ranked = retrieved or predictions
    assert ranked is not None
    lengths = pc.list_value_length(ranked.table["passage_ids"])
    return plan_columns(
        Holdings(
            task.task,
            frozenset(q.answer_kind for q in questions),
            predictions=predictions is not None,
            log_prob=predictions is not None and predictions.table["log_prob"].null_count < len(predictions.table),
            depth=pc.max(lengths).as_py() or 0,
            texts=task.passages is not None,
            gold_passages=any(q.gold_passages for q in questions),
            gold_pages=any(q.gold_pages for q in questions),
            log_partition=retrieved is not None
            and retrieved.table["log_partition"].null_count < len(retrieved.table),
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


def examples_of(inputs: Inputs, run: RunInputs, questions: Sequence[Question]) -> list[Example]:
    ids = [q.question_id for q in questions]
    none: list[Any] = [None] * len(ids)
    columns = ("status", "prediction", "log_prob", "predicted_evidence", "passage_ids", "doc_prior", "doc_posterior")
    predicted = run.predictions.take(ids, columns) if run.predictions else dict.fromkeys(columns, none)
    found = run.retrieved.take(ids, run.retrieved.table.column_names) if run.retrieved else {}
    rankings = found.get("passage_ids") or predicted["passage_ids"]
    out = []
    for i, question in enumerate(questions):
        status, text = predicted["status"][i], predicted["prediction"][i]
        if run.predictions:
            status = prediction_status(run.predictions, ids[i], status, text)
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
    passages = inputs.passages.get(ids) if inputs.passages is not None else None
    if question.gold_pages is not None:
        pages = {*question.gold_pages, *map(canonical_title, question.gold_pages)}
        titles = [canonical_title(p.title) for p in passages] if passages is not None else [None] * len(ids)
        example.page_hits = [page_of(i) in pages or t in pages for i, t in zip(ids, titles)]
    if passages is not None and question.answer_kind in ("text", "regex"):
        match = "regex" if question.answer_kind == "regex" else "string"
        example.answer_hits = [answers.has_answer(p.text, question.answers, match) for p in passages]


def page_of(passage_id: str) -> str:
    """The page part of `{page_id}:{ordinal}`; the id itself where it has no such form."""
    page, colon, ordinal = passage_id.rpartition(":")
    return page if colon and ordinal.isdigit() else passage_id


def statistics_of(column: Column, example: Example) -> tuple[tuple[int, ...] | None, bool]:
    """A metric's integers for one example (None: left out), and whether its prediction is missing."""
    metric, question = column.metric, example.question
    if column.source == "prediction":
        if KIND_OF.get(column.name, question.answer_kind) != question.answer_kind:
            return None, False
        references, prediction = _official(column, example)
        if example.prediction is None:
            return metric.missing(references), True
        return metric.statistics(prediction, references), False
    if column.source == "log_prob":
        return metric.statistics(example.log_prob, None), example.log_prob is None
    if column.source == "mass":
        value = _mass(example)
        return metric.statistics(value, None), value is None
    if column.source == "gold":
        ranking, gold = _gold(example)
        if gold is None:
            return None, False
        return (metric.statistics(ranking, gold) if example.ranked else metric.missing(gold)), not example.ranked
    hits = getattr(example, column.source)
    if hits is None:
        return None, False
    return (metric.statistics(hits, None) if example.ranked else metric.missing(None)), not example.ranked


def _official(column: Column, example: Example) -> tuple[Any, Any]:
    """References and prediction in the shape the metric takes: texts, or rows of the task's own files."""
    question = example.question
    if column.metric.takes == "fever":
        groups = [[[None, None, page, line] for page, line in group] for group in question.evidence or ()]
        evidence = [[item["page"], item["line"]] for item in example.evidence or ()]
        gold = {"label": question.answers[0], "evidence": groups}
        return gold, {"predicted_label": example.prediction, "predicted_evidence": evidence}
    if column.metric.takes == "kilt":
        sets = [[page for page, _ in group] for group in question.evidence or ()] or [list(question.gold_pages or ())]
        gold = {"answers": question.answers, "evidence_sets": sets}
        return gold, {"answer": example.prediction, "pages": [page_of(i) for i in example.passage_ids]}
    return question.answers, example.prediction


def _gold(example: Example) -> tuple[list[str], list[Any] | None]:
    """The ranking, and the gold to hold it against: passages where they are known, else pages."""
    question = example.question
    if question.gold_passages is not None:
        return example.passage_ids, list(question.gold_passages)
    if question.gold_pages is None:
        return [], None
    sets = [[page for page, _ in group if page is not None] for group in question.evidence or ()]
    return [page_of(i) for i in example.passage_ids], [s for s in sets if s] or list(question.gold_pages)


def _mass(example: Example) -> float | None:
    if example.log_partition is None:
        return None
    return math.fsum(math.exp(score - example.log_partition) for score in example.doc_scores)


def score_part(
    task: EvalTask, run_index: int, start: int, stop: int
) -> tuple[list[pa.RecordBatch], dict[CellKey, Cell | KeyCell]]:
    """Score questions [start, stop) of one run: rows in batches, and the cells of every slice and scope."""
    inputs = load_inputs(task)
    run = inputs.runs[run_index]
    examples = examples_of(inputs, run, inputs.questions[start:stop])
    found = {c.name: [statistics_of(c, example) for example in examples] for c in run.columns}
    cells = _cells(inputs, run_index, examples, found, task.seed)
    return list(_rows(inputs, run, examples, found)), cells


def _cells(
    inputs: Inputs, run_index: int, examples: Sequence[Example], found: dict[str, list], seed: int
) -> dict[CellKey, Cell | KeyCell]:
    hashes = id_hashes([e.question.question_id for e in examples], seed)
    weights_NR = poisson_weights(hashes).astype(np.float64)
    halves_N = mixed(hashes, _HALF_STREAM)
    cells: dict[CellKey, Cell | KeyCell] = {}
    kinds = {q.answer_kind for q in inputs.questions}
    slices = slices_of(examples, inputs.own_slices, len(kinds) > 1)
    for column in inputs.runs[run_index].columns:
        scored = np.array([row is not None for row, _ in found[column.name]])
        missing = np.array([gone for _, gone in found[column.name]])
        rows = [row for row, _ in found[column.name]]
        keyed = column.metric.width == 0
        if not keyed:
            zero = (0,) * column.metric.width
            statistics = np.array([zero if row is None else row for row in rows], np.int64)
        for name, inside in slices.items():
            for scope in ("all", "answered"):
                chosen = np.flatnonzero(inside & scored & ~missing if scope == "answered" else inside & scored)
                if not inside.any() or (keyed and name != "all"):
                    continue
                cells[run_index, name, scope, column.name] = (
                    fill_key_cell([rows[i] for i in chosen], missing[chosen], halves_N[chosen])
                    if keyed
                    else fill_cell(column.metric, statistics[chosen], missing[chosen], weights_NR[chosen])
                )
    return cells


def _rows(
    inputs: Inputs, run: RunInputs, examples: Sequence[Example], found: dict[str, list]
) -> Iterator[pa.RecordBatch]:
    schema = inputs.schema()
    batch: list[dict[str, Any]] = []
    size = 0
    for index, example in enumerate(examples):
        question = example.question
        row = {
            "run": run.spec.name,
            "question_id": question.question_id,
            "question": question.question,
            "question_hash": question_hash(question),
            "status": example.status,
            "prediction": example.prediction,
            "answers": list(question.answers),
            "answer_rank": example.answer_rank,
            "passage_ids": example.passage_ids,
            "doc_prior": example.doc_prior,
            "doc_posterior": example.doc_posterior,
        }
        for column in run.columns:
            statistics = found[column.name][index][0]
            row[column.name] = None if statistics is None else column.metric.example(statistics)
        batch.append(row)
        size += len(example.prediction or "") + len(question.question)
        if size > _BATCH_BYTES:
            yield pa.RecordBatch.from_pylist(batch, schema)
            batch, size = [], 0
    if batch:
        yield pa.RecordBatch.from_pylist(batch, schema)


def question_hash(question: Question) -> str:
    """16 hexadecimal digits of what is asked and what counts as right: equal hashes, comparable rows."""
    asked = [question_key(question.question), question.answer_kind, sorted(question.answers)]
    return digest_of(asked)[:16]
