"""What retrieve does with a part when there is an index: questions in, passage ids and logits out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from beam_jobs.handlers import check_unchanged, once_per_process, shared_encoder, shared_index
from beam_jobs.transforms.questions import log_rejected, questions_of
from rag_core.errors import DataError, UsageError
from rag_core.parts import PartLog
from rag_core.schemas import RETRIEVED
from rag_core.stages import iter_batches


@dataclass(frozen=True)
class IndexSearchWorker:
    """`PartWorker` of a retrieve job over an index. `question_encoder` is None for BM25."""

    questions: str
    task: str
    index: str
    question_encoder: str | None
    top_k: int
    exclude_self: bool = False
    encoder_fingerprint: str = ""

    @property
    def schema(self) -> pa.Schema:
        return RETRIEVED

    def setup(self) -> None:
        shared_index(self.index)
        if self.question_encoder:
            shared_encoder(self.question_encoder)

    def rows(self, source: dict[str, Any], log: PartLog) -> Iterator[pa.RecordBatch]:
        questions = questions_of(self.questions, self.task, source)
        log.read += len(questions)
        log_rejected(self.questions, self.task, source, log)
        texts = [q.question for q in questions]
        names = [q.question_id for q in questions]
        index = shared_index(self.index)
        depth = self.top_k + self.exclude_self
        if self.question_encoder:
            encoder = shared_encoder(self.question_encoder)
            check_unchanged(self.question_encoder, encoder.loaded_fingerprint, self.encoder_fingerprint)
            scores, ids = index.search(encoder.encode_questions(texts), depth)
            scores = to_logits(scores, encoder.score_scale)
        else:
            scores, ids = index.search(texts, depth)
        if self.exclude_self:
            scores, ids = without_self(names, scores, ids, self.top_k)
        log.written += len(questions)
        yield retrieved_batch(names, ids, scores)


def without_self(
    question_ids: Sequence[str], scores: Sequence[Sequence[float]], ids: Sequence[Sequence[str]], k: int
) -> tuple[list[list[float]], list[list[str]]]:
    """The best k hits of each question (`scores, ids`) that do not bear the question's own id."""
    kept = [
        [(s, i) for s, i in zip(*hits) if i != name][:k] for name, *hits in zip(question_ids, scores, ids)
    ]
    return [[s for s, _ in hits] for hits in kept], [[i for _, i in hits] for hits in kept]


def to_logits(scores: Sequence[Sequence[float]], score_scale: float) -> list[list[float]]:
    """Raw inner products → logits of the prior p(z|x)."""
    return [[score_scale * score for score in row] for row in scores]


def retrieved_batch(
    question_ids: Sequence[str],
    passage_ids: Sequence[Sequence[str]],
    doc_scores: Sequence[Sequence[float]],
    log_partition: Sequence[float] | None = None,
) -> pa.RecordBatch:
    """Rows of the retrieved stage."""
    columns = [
        pa.array(question_ids, pa.string()),
        pa.array([list(ids) for ids in passage_ids], RETRIEVED.field("passage_ids").type),
        pa.array([np.asarray(s, np.float32) for s in doc_scores], RETRIEVED.field("doc_scores").type),
        pa.array(log_partition if log_partition is not None else [None] * len(question_ids), pa.float32()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RETRIEVED)


@once_per_process
def retrieved_by_question(directory: str) -> dict[str, tuple[list[str], list[float]]]:
    """A retrieved run as a dict: question id → passage ids and logits, best first."""
    found: dict[str, tuple[list[str], list[float]]] = {}
    for batch in iter_batches(directory, ["question_id", "passage_ids", "doc_scores"]):
        for row in batch.to_pylist():
            if row["question_id"] in found:
                raise DataError(f"{directory}: question {row['question_id']!r} stands there twice")
            found[row["question_id"]] = (row["passage_ids"], row["doc_scores"])
    return found


@once_per_process
def _checked(question_encoder: str, fingerprint: str, dim: int) -> str:
    """See `check_fit`; loads the encoder once."""
    encoder = shared_encoder(question_encoder)
    if encoder.dim != dim:
        raise UsageError(
            f"question encoder {question_encoder!r} gives {encoder.dim} numbers, "
            f"the passages' vectors have {dim}"
        )
    if encoder.fits_passage_encoder is None:
        return "unverified"
    if encoder.fits_passage_encoder != fingerprint:
        raise UsageError(
            f"question encoder {question_encoder!r} fits passage encoder "
            f"{encoder.fits_passage_encoder[:12]}…, the passages were embedded by {fingerprint[:12]}…; "
            "embed them again or take the encoder that fits"
        )
    return "verified"


def check_fit(question_encoder: str, passage_encoder: dict[str, Any]) -> str:
    """Whether question vectors and passage vectors belong together: "verified" or "unverified".

    `passage_encoder` is the `encoder` of an embeddings or index manifest. "unverified" stands for pairs
    that carry no fingerprint of each other (DPR); then the dimensions agree and that is all that is
    known. Raises UsageError when they do not fit.
    """
    return _checked(question_encoder, passage_encoder["fingerprint"], passage_encoder["dim"])
