"""What generate does with a part: questions and their passages in, predictions out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from beam_jobs.handlers import check_unchanged, once_per_process, shared_model, shared_passages
from beam_jobs.transforms.questions import log_rejected, questions_of
from beam_jobs.transforms.retrieve_passages import retrieved_by_question
from rag_core.errors import DataError
from rag_core.given_contexts import given_contexts
from rag_core.parts import PartLog
from rag_core.schemas import PREDICTIONS, Passage, Question


@dataclass(frozen=True)
class GenerateWorker:
    """`PartWorker` of the generate job. `retrieved` and `passages` are None for closed-book models."""

    questions: str
    task: str
    checkpoint: str
    kind: str | None
    compute: str
    retrieved: str | None
    passages: str | None
    given_contexts: bool
    n_docs: int
    decoding: dict[str, Any]
    fingerprint: str = ""

    @property
    def schema(self) -> pa.Schema:
        return PREDICTIONS

    def setup(self) -> None:
        shared_model(self.checkpoint, self.kind, self.compute)

    def rows(self, source: dict[str, Any], log: PartLog) -> Iterator[pa.RecordBatch]:
        from rag_core.decoding import DecodingConfig

        model = shared_model(self.checkpoint, self.kind, self.compute)
        check_unchanged(self.checkpoint, model.fingerprint, self.fingerprint)
        questions = questions_of(self.questions, self.task, source)
        log.read += len(questions)
        log_rejected(self.questions, self.task, source, log)
        passages, scores = self._passages(questions)
        config = DecodingConfig.from_dict(self.decoding)
        rows = answer_each(model, questions, passages, scores, config, log.stats)
        log.written += len(rows)
        for row in rows:
            log.stats[f"status_{row['status']}"] += 1
        yield pa.RecordBatch.from_pylist(rows, PREDICTIONS)

    def _passages(self, questions: Sequence[Question]) -> tuple[list[list[Passage]], list[list[float]]]:
        if self.given_contexts:
            given = _given_contexts(self.questions, self.task)
            found = [given[q.question_id] for q in questions]
            return [p[: self.n_docs] for p, _ in found], [s[: self.n_docs] for _, s in found]
        if self.retrieved is None:
            return [[] for _ in questions], [[] for _ in questions]
        retrieved = retrieved_by_question(self.retrieved)
        missing = [q.question_id for q in questions if q.question_id not in retrieved]
        if missing:
            raise DataError(f"{self.retrieved}: no row for question {missing[0]!r} ({len(missing)} missing)")
        pairs = [retrieved[q.question_id] for q in questions]
        store = shared_passages(self.passages)
        return [store.get(ids[: self.n_docs]) for ids, _ in pairs], [s[: self.n_docs] for _, s in pairs]


_given_contexts = once_per_process(given_contexts)


def answer_each(
    model: Any,
    questions: Sequence[Question],
    passages: Sequence[Sequence[Passage]],
    scores: Sequence[Sequence[float]],
    config: Any,
    stats: Counter[str] | None = None,
) -> list[dict[str, Any]]:
    """Rows of the predictions stage, one a question, in order.

    A question on which the model raises is found by halving and gets status `failed` with the error;
    its neighbours are answered. `stats` gets the passages and questions that were cut to fit, of the
    questions that were answered.
    """
    from rag_core.decoding import answer_questions
    from rag_core.models import ContextBuilder

    try:
        builder = ContextBuilder(model.generator.tokenizer, model.context_format)
        found = answer_questions(model, questions, passages, scores, config, builder)
        if stats is not None:
            stats["truncated_passages"] += builder.n_truncated
            stats["truncated_questions"] += builder.n_truncated_questions
        return [p.to_row() for p in found]
    except (ValueError, IndexError, RuntimeError) as error:
        if "out of memory" in str(error):
            raise
        if len(questions) == 1:
            return [failed_row(questions[0], passages[0], f"{type(error).__name__}: {error}")]
    half = len(questions) // 2
    return [
        row
        for piece in (slice(None, half), slice(half, None))
        for row in answer_each(model, questions[piece], passages[piece], scores[piece], config, stats)
    ]


def failed_row(question: Question, passages: Sequence[Passage], error: str) -> dict[str, Any]:
    from rag_core.decoding import Prediction

    ids = tuple(p.passage_id for p in passages)
    return Prediction(question.question_id, "failed", passage_ids=ids, error=error).to_row()
