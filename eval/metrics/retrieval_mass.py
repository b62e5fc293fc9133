"""Retrieval mass: the share of the prior over the whole corpus that the retrieved passages hold.

    1/N · Σ over questions of Σ_z exp(score(z) − log_partition),   z over the retrieved passages

Takes one number in [0, 1] a question. A question without one (None, NaN: nothing was retrieved for it)
holds none of the mass: it counts as 0 and in `n_missing`; a mean over the others alone would rise by what
was lost. A sum that exceeds 1 by rounding (up to 10⁻⁶) is 1; more than that means that the scores and the
partition are not of one scale: an error. The sum is exact and rounded once: `math.fsum(values) / N` to the
last bit, in any order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eval.metrics.base import MeanMetric, Statistics, bits_of, float_of, real_number

_ROUNDING = 1e-6


class RetrievalMass(MeanMetric):
    """Statistics: the 64 bits of the mass."""

    name = "retrieval_mass"
    takes = "number"
    options = "sum-exp(score-log_partition)|missing:0"
    needs_references = False

    def statistics(self, prediction: Any, references: Any) -> Statistics:
        mass = real_number(prediction)
        if not 0 <= mass <= 1 + _ROUNDING:
            raise ValueError(f"retrieval mass {mass!r}: must lie in [0, 1]")
        return (bits_of(min(mass, 1.0)),)

    def example(self, statistics: Statistics) -> float:
        return float_of(statistics[0])


def mass_of(doc_scores: Sequence[float], log_partition: float) -> float:
    """The mass of one question from float32 scores; what their rounding adds above 1 is cut off.

    A score s of float32 is off by up to 2⁻²⁴·|s|, and exp(s) by as large a share of itself.
    """
    logs = [min(score - log_partition, 700.0) for score in doc_scores]
    mass = math.fsum(map(math.exp, logs))
    slack = 2.0**-22 * max(1.0, abs(log_partition), *map(abs, doc_scores)) if doc_scores else 0.0
    return 1.0 if 1.0 < mass <= 1.0 + slack else mass
