"""Scoring one part of one run: the rows of `per_example.parquet`, and the sums of `summary.parquet`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eval._cells import Cell, Counted, KeyCell, fill_cells, fill_key_cell
from eval._examples import EvalTask, Example, Inputs, RunInputs, examples_of, load_inputs
from eval._intervals import HALF_STREAM, id_hashes, mixed, poisson_weights
from eval._join import question_key
from eval._plan import KIND_OF, Column
from eval._slices import slices_of
from eval.metrics.retrieval_mass import mass_of
from rag_core.datasets.fever import canonical_title
from rag_core.digest import digest_of
from rag_core.errors import DataError
from rag_core.schemas import Question

_BATCH_BYTES = 64 << 20

CellKey = tuple[int, str, str, str]
"""Run number, slice, scope, metric."""


def statistics_of(column: Column, example: Example) -> tuple[tuple[int, ...] | None, bool]:
    """A metric's integers for one example (None: left out), and whether its prediction is missing."""
    metric, question = column.metric, example.question
    if column.source == "prediction":
        if KIND_OF.get(column.name, question.answer_kind) != question.answer_kind:
            return None, False
        references, prediction = _official(column, example)
        if example.prediction is None or (metric.needs_evidence and example.evidence is None):
            return metric.missing(references), True
        return metric.statistics(prediction, references), False
    if column.source in ("log_prob", "mass"):
        value = example.log_prob if column.source == "log_prob" else _mass(example)
        gone = metric.is_missing(value)
        return (metric.missing(None) if gone else metric.statistics(value, None)), gone
    if column.source == "gold":
        ranking, gold = _gold(example)
        if gold is None:
            return None, False
    else:
        ranking, gold = getattr(example, column.source), None
        if ranking is None:
            return None, False
    if example.ranked:
        return metric.statistics(ranking, gold), False
    return metric.missing(gold), True


def _official(column: Column, example: Example) -> tuple[Any, Any]:
    """References and prediction in the shape the metric takes: texts, or rows of the task's own files."""
    question = example.question
    if column.metric.takes == "fever":
        evidence = [[item["page"], item["line"]] for item in example.evidence or ()]
        gold = {"label": question.answers[0], "evidence": question.evidence}
        return gold, {"predicted_label": example.prediction, "predicted_evidence": evidence}
    if column.metric.takes == "kilt":
        sets = _evidence_sets(question) or [_pages(question.gold_pages or ())]
        gold = [{"answer": a} for a in question.answers] + [{"provenance": _provenance(s)} for s in sets]
        pages = _provenance(example.pages)
        return {"output": gold}, {"output": [{"answer": example.prediction, "provenance": pages}]}
    return question.answers, example.prediction


def _provenance(pages: Iterable[str]) -> list[dict[str, str]]:
    return [{"wikipedia_id": page} for page in pages]


def _gold(example: Example) -> tuple[list[str], list[Any] | None]:
    """The ranking, and the gold to hold it against: passages where they are known, else pages."""
    question = example.question
    if question.gold_passages is not None:
        return example.passage_ids, list(question.gold_passages)
    if question.gold_pages is None:
        return [], None
    sets = [group for group in _evidence_sets(question) if group]
    return example.pages, sets or _pages(question.gold_pages)


def _evidence_sets(question: Question) -> list[list[str]]:
    return [_pages(page for page, _ in group if page is not None) for group in question.evidence or ()]


def _pages(pages: Iterable[str]) -> list[str]:
    """Pages by their canonical titles, as `Example.pages` has them; an id is its own."""
    return list(map(canonical_title, pages))


def _mass(example: Example) -> float | None:
    if example.log_partition is None:
        return None
    return mass_of(example.doc_scores, example.log_partition)


def _named(column: Column, example: Example) -> tuple[tuple[int, ...] | None, bool]:
    """`statistics_of`; DataError naming the question where the metric refuses what it is given."""
    try:
        return statistics_of(column, example)
    except ValueError as error:
        question = example.question.question_id
        raise DataError(f"question {question!r}: {column.name}: {error}") from error


def score_part(
    task: EvalTask, run_index: int, start: int, stop: int
) -> tuple[list[pa.RecordBatch], dict[CellKey, Cell | KeyCell]]:
    """Score questions [start, stop) of one run: rows in batches, and the cells of every slice and scope."""
    inputs = load_inputs(task)
    run = inputs.runs[run_index]
    examples = examples_of(inputs, run, inputs.questions[start:stop])
    found = {c.name: [_named(c, example) for example in examples] for c in run.columns}
    cells = _cells(inputs, run_index, examples, found, task.seed)
    return list(_rows(inputs, run, examples, found)), cells


def _cells(
    inputs: Inputs, run_index: int, examples: Sequence[Example], found: dict[str, list], seed: int
) -> dict[CellKey, Cell | KeyCell]:
    hashes = id_hashes([e.question.question_id for e in examples], seed)
    weights_NR = poisson_weights(hashes).astype(np.float64)
    halves_N = mixed(hashes, HALF_STREAM)
    cells: dict[CellKey, Cell | KeyCell] = {}
    requests: list[tuple[CellKey, Counted, np.ndarray]] = []
    slices = slices_of(examples, inputs.own_slices, inputs.several_kinds)
    missing: dict[CellKey, int] = {}
    for column in inputs.runs[run_index].columns:
        rows = [row for row, _ in found[column.name]]
        gone = np.array([is_gone for _, is_gone in found[column.name]])
        scored = np.array([row is not None for row in rows])
        keyed = column.metric.width == 0
        counted = None if keyed else Counted.of(column.metric, rows)
        for name, inside in slices.items():
            if keyed and name != "all":
                continue
            for scope in ("all", "answered"):
                key = (run_index, name, scope, column.name)
                chosen = inside & scored if scope == "all" else inside & scored & ~gone
                if counted is None:
                    picked = np.flatnonzero(chosen)
                    cells[key] = fill_key_cell([rows[i] for i in picked], halves_N[picked])
                else:
                    requests.append((key, counted, chosen))
                counts = inside if column.metric.leaves_missing_out else chosen
                missing[key] = int((counts & gone).sum()) if scope == "all" else 0
    keys = [key for key, _, _ in requests]
    cells |= zip(keys, fill_cells([request[1:] for request in requests], weights_NR))
    for key, count in missing.items():
        cells[key].n_missing = count
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
