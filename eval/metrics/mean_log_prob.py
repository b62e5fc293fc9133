"""Mean log-probability of the predictions under the model that made them, in nats; not in [0, 1].

    1/N · Σ log p(y | x)

Only finite numbers enter; the others are counted in `n_missing` and left out, since no number would be a
fair stand-in. Takes numbers.
"""

from __future__ import annotations

import math
from typing import Any

from eval.metrics.base import MeanMetric, Statistics, is_missing

_UNIT = 1 << 40


class MeanNumber(MeanMetric):
    """The mean of a number that the run itself gives. Statistics: the number in units of 2⁻⁴⁰."""

    takes = "number"
    needs_references = False
    leaves_missing_out = True

    def __init__(self, name: str, options: str) -> None:
        self.name, self.options = name, options

    def is_missing(self, prediction: Any) -> bool:
        return is_missing(prediction) or not math.isfinite(prediction)

    def statistics(self, prediction: Any, references: Any) -> Statistics:
        return (round(float(prediction) * _UNIT),)

    def missing(self, references: Any) -> Statistics | None:
        return None

    def example(self, statistics: Statistics) -> float:
        return statistics[0] / _UNIT
