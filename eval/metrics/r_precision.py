"""R-precision: the share of the first R ranks that are gold, R being the number of gold pages.

    Rprec = max over evidence sets of |set ∩ first |set| pages| / |set|

Repeated pages are removed before ranks are counted; an empty set has 0. A plain list of gold ids is one
set. Source: KILT `kilt/eval_retrieval.py` (`rprecision`).
"""

from __future__ import annotations

from typing import Any

from eval.metrics.base import MeanMetric, Statistics
from eval.metrics.ranking import gold_sets, ranked_ids


class RPrecision(MeanMetric):
    """Statistics of the best set: (gold pages among the first R, R)."""

    takes = "ranking"
    name = "r_precision"
    width = 2
    options = "sets:max|like:kilt"

    def statistics(self, prediction: Any, references: Any) -> Statistics:
        ranking = ranked_ids(prediction)
        best = (0, 1)
        for group in gold_sets(references):
            found = len(set(ranking[: len(group)]) & set(group))
            if found * best[1] > best[0] * len(group):
                best = (found, len(group))
        return best

    def example(self, statistics: Statistics) -> float:
        return statistics[0] / statistics[1] if statistics[0] else 0.0
