"""Mean reciprocal rank: 1/N · Σ 1 / rank of the first hit; 0 without one.

Averaged over all questions that have gold, those without a ranking included (0): averaging over the
answered ones only flatters a partial run. `k` cuts rankings (MRR@k). Source: Craswell 2009; trec_eval
`recip_rank`.
"""

from __future__ import annotations

from typing import Any

from eval.metrics.base import MeanMetric, Statistics
from eval.metrics.ranking import hits_of


class Mrr(MeanMetric):
    """Statistics: (1, rank of the first hit), or (0, 0)."""

    takes = "ranking"
    needs_references = False
    width = 2

    def __init__(self, k: int | None = None) -> None:
        if k is not None and k < 1:
            raise ValueError(f"k={k}: must be at least 1")
        self.name = "mrr" if k is None else f"mrr_at_{k}"
        self.k = k
        self.options = f"k:{k or 'all'}"

    def statistics(self, prediction: Any, references: Any) -> Statistics:
        hits = hits_of(prediction, references)[: self.k]
        return next(((1, rank) for rank, hit in enumerate(hits, 1) if hit), (0, 0))

    def example(self, statistics: Statistics) -> float:
        return 1 / statistics[1] if statistics[0] else 0.0
