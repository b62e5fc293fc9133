"""Token F1 (SQuAD v1.1): overlap of the bags of normalised words with the best reference.

    F1 = 1/N · Σ max over references of 2·|P ∩ R| / (|P| + |R|)

The intersection counts repeated words; an example without a common word has 0, also when both sides
are empty after normalisation (SQuAD v2 gives 1 there). Source: `evaluate-v1.1.py` (`f1_score`).
"""

from __future__ import annotations

from collections.abc import Sequence

from eval.metrics.base import MeanMetric, Statistics
from rag_core.answers import f1_statistics


class F1(MeanMetric):
    name = "f1"
    width = 2
    options = "norm:squad|empty:0|refs:max"

    def statistics(self, prediction: str, references: Sequence[str]) -> Statistics:
        return f1_statistics(prediction, references)

    def example(self, statistics: Statistics) -> float:
        common, total = statistics
        return 2 * common / total if common else 0.0
