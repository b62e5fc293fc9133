"""Training pairs and their order.

The order is a function of (seed, epoch) alone, drawn anew for every epoch, and batches are slices of
the endless stream of epochs: a restart at any step sees what an undisturbed run would have seen, and
no tail is dropped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_core.datasets import LoadedQuestions
from rag_core.errors import DataError
from rag_core.schemas import Question


@dataclass(frozen=True, slots=True)
class Example:
    """One question with one target text."""

    question_id: str
    question: str
    target: str


def make_examples(questions: Sequence[Question], targets: str, labels: Sequence[str] = ()) -> list[Example]:
    """Pairs by the task's rule: one per answer ("each", NQ and WebQuestions) or the first answer only.

    Answers that are empty or white space make no pair. With `labels`, a target must be one of them.
    Raises ValueError when nothing is left.
    """
    examples = []
    for question in questions:
        answers = [a for a in dict.fromkeys(question.answers) if a.strip()]
        for answer in answers if targets == "each" else answers[:1]:
            if labels and answer not in labels:
                raise DataError(
                    f"question {question.question_id!r}: answer {answer!r} is no label of {labels}"
                )
            examples.append(Example(question.question_id, question.question, answer))
    if not examples:
        raise DataError(f"no training pair in {len(questions)} questions: every answer is empty")
    return examples


def describe(loaded: LoadedQuestions, examples: Sequence[Example]) -> str:
    """One line: what was read, what became of it."""
    skipped = ", ".join(f"{n} {reason}" for reason, n in sorted(loaded.reasons.items())) or "none"
    return f"{len(loaded.questions)} questions (rejected: {skipped}), {len(examples)} training pairs"


def epoch_order(n: int, seed: int, epoch: int) -> np.ndarray:
    """The permutation of `n` examples in one epoch."""
    return np.random.default_rng([seed, epoch]).permutation(n)


def batch_indices(n: int, batch_size: int, seed: int, step: int) -> list[int]:
    """The examples of one step (counted from 0): a slice of the concatenated epochs."""
    begin, end = step * batch_size, (step + 1) * batch_size
    out: list[int] = []
    for epoch in range(begin // n, (end - 1) // n + 1):
        order = epoch_order(n, seed, epoch)
        out.extend(order[max(begin - epoch * n, 0) : end - epoch * n].tolist())
    return out


def ids_hash(ids: Sequence[str], previous: str = "") -> str:
    """A running hash over the ids seen, so that two logs show whether they saw the same data."""
    return hashlib.sha256("\n".join([previous, *ids]).encode()).hexdigest()[:16]
