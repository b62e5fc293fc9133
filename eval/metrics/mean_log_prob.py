"""Mean log-probability of the predictions under the model that made them, in nats; not in [0, 1].

    1/N · Σ log p(y | x)

Takes numbers. A prediction to which the model gives probability 0 has −inf; it is a value like any other
and stays in the mean, which is then −inf: to leave it out would raise the score by just those answers that
the model holds to be impossible (`details["n_infinite"]` says how many they are). What is *missing* (None,
NaN) has no number that could fairly stand in for it: it is left out, counted in `n_missing`, and
`details["coverage"]` is the share of examples that the mean is over. +inf is no log-probability: an error.
The sum is exact and rounded once: `math.fsum(values) / N` to the last bit, in any order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eval.metrics.base import MeanMetric, Statistics, bits_of, float_of, real_number


class MeanLogProb(MeanMetric):
    """The mean of a number that the run itself gives. Statistics: the 64 bits of the number."""

    name = "mean_log_prob"
    takes = "number"
    options = "unit:nats|missing:left-out"
    needs_references = False
    leaves_missing_out = True
    unbounded = True

    def statistics(self, prediction: Any, references: Any) -> Statistics:
        value = real_number(prediction)
        if value == math.inf:
            raise ValueError(f"{prediction!r}: not a log-probability")
        return (bits_of(value),)

    def missing(self, references: Any) -> Statistics | None:
        return None

    def example(self, statistics: Statistics) -> float:
        return float_of(statistics[0])

    def details(self, rows: Sequence[Statistics]) -> dict[str, int]:
        return {"n_infinite": sum(math.isinf(self.example(row)) for row in rows)}
