"""One declared Arrow schema per stage, and the frozen records that travel between them.

Schemas are never inferred from data: a shard whose lists are all empty has the same types as any
other, so that a directory of parts always opens as one table.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pyarrow as pa

STRINGS = pa.list_(pa.string())
FLOATS = pa.list_(pa.float32())


def _field(name: str, kind: pa.DataType, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=nullable)


PASSAGES = pa.schema(
    [
        _field("passage_id", pa.string()),
        _field("page_id", pa.string(), nullable=True),
        _field("title", pa.string()),
        _field("text", pa.string()),
        _field("n_words", pa.int32()),
        _field("content_hash", pa.binary(16)),
    ]
)


def embeddings_schema(dim: int, dtype: str = "float32") -> pa.Schema:
    """The embeddings stage for vectors of `dim` numbers; `dtype` is float32 or float16."""
    number = {"float32": pa.float32(), "float16": pa.float16()}[dtype]
    return pa.schema(
        [
            _field("passage_id", pa.string()),
            _field("content_hash", pa.binary(16)),
            _field("vector", pa.list_(pa.field("item", number, nullable=False), dim)),
        ]
    )


EVIDENCE = pa.list_(pa.list_(pa.struct([("page", pa.string()), ("line", pa.int32())])))

QUESTIONS = pa.schema(
    [
        _field("question_id", pa.string()),
        _field("question", pa.string()),
        _field("answers", STRINGS),
        _field("answer_kind", pa.string()),
        _field("gold_passages", STRINGS, nullable=True),
        _field("gold_pages", STRINGS, nullable=True),
        _field("evidence", EVIDENCE, nullable=True),
    ]
)

RETRIEVED = pa.schema(
    [
        _field("question_id", pa.string()),
        _field("passage_ids", STRINGS),
        _field("doc_scores", FLOATS),
        _field("log_partition", pa.float32(), nullable=True),
    ]
)

PREDICTIONS = pa.schema(
    [
        _field("question_id", pa.string()),
        _field("status", pa.string()),
        _field("prediction", pa.string(), nullable=True),
        _field("log_prob", pa.float32(), nullable=True),
        _field("candidates", pa.list_(pa.struct([("text", pa.string()), ("log_prob", pa.float32())]))),
        _field("passage_ids", STRINGS),
        _field("doc_prior", FLOATS),
        _field("doc_posterior", FLOATS),
        _field("tokens", STRINGS),
        _field("token_posterior", pa.list_(FLOATS), nullable=True),
        _field(
            "predicted_evidence", pa.list_(pa.struct([("page", pa.string()), ("line", pa.int32())])), True
        ),
        _field("error", pa.string(), nullable=True),
    ]
)

# One float column per metric comes behind these.
PER_EXAMPLE_BASE = pa.schema(
    [
        _field("question_id", pa.string()),
        _field("question", pa.string()),
        _field("question_hash", pa.string()),
        _field("status", pa.string()),
        _field("prediction", pa.string(), nullable=True),
        _field("answers", STRINGS),
        _field("answer_rank", pa.int32(), nullable=True),
        _field("passage_ids", STRINGS),
        _field("doc_prior", FLOATS),
        _field("doc_posterior", FLOATS),
    ]
)

SUMMARY = pa.schema(
    [
        _field("run", pa.string()),
        _field("task", pa.string()),
        _field("slice", pa.string()),
        _field("scope", pa.string()),
        _field("metric", pa.string()),
        _field("value", pa.float64(), nullable=True),
        _field("ci_low", pa.float64(), nullable=True),
        _field("ci_high", pa.float64(), nullable=True),
        _field("n", pa.int64()),
        _field("n_missing", pa.int64()),
        _field("signature", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of the corpus: its id, the title of its page, and its text."""

    passage_id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """One row of a test set; `answer_kind` is text, regex or label."""

    question_id: str
    question: str
    answers: tuple[str, ...]
    answer_kind: str = "text"
    gold_passages: tuple[str, ...] | None = None
    gold_pages: tuple[str, ...] | None = None
    evidence: tuple[tuple[tuple[str | None, int | None], ...], ...] | None = None


def content_hash(title: str, text: str) -> bytes:
    """16 bytes that stand for what the passage encoder reads.

    SHA-256 over title and text, each preceded by its length in UTF-8 bytes (8 bytes, little endian),
    so that moving a word from one to the other changes the hash. Lone surrogates are hashed as such.
    """
    digest = hashlib.sha256()
    for value in (title, text):
        data = value.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()[:16]
