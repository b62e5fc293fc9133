"""Training pairs in their order.

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


@dataclass(frozen=True, slots=True)
class Example:
    """One question with one target text; `is_label`: one token of it is scored, without EOS."""

    question_id: str
    question: str
    target: str
    is_label: bool = False


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
