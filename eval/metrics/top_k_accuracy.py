"""Top-k accuracy: the share of questions with a hit among the first k passages (Karpukhin et al. 2020).

    A@k = 1/N · Σ [rank of the first hit ≤ k]

What a hit is, the caller says: hits as 0/1 lists without references, or ids as rankings with the gold
ids as references. `eval.run` takes `has_answer` for `top_{k}_accuracy`, gold passages for
`top_{k}_gold_passage` and gold pages for `top_{k}_gold_page`. Several hits count once; a ranking
shorter than k has no further hit. Source: DPR `dpr/data/qa_validation.py` (`calculate_matches`).
"""

from __future__ import annotations

from collections.abc import Sequence

from eval.metrics.base import MeanMetric, Statistics
from eval.metrics.ranking import hits_of


class TopKAccuracy(MeanMetric):
    """`k=None` looks at the whole ranking; `details` has the accuracy at every depth up to it.

    Statistics: (hit within k, rank of the first hit or 0, depth of the ranking).
    """

    binary = True
    width = 3

    takes = "ranking"
    needs_references = False
    options = "hit:any-in-first-k"

    def __init__(self, k: int | None = None, name: str | None = None) -> None:
        if k is not None and k < 1:
            raise ValueError(f"k={k}: must be at least 1")
        self.k = k
        self.name = name or ("top_k_accuracy" if k is None else f"top_{k}_accuracy")

    def statistics(self, prediction: Sequence, references: Sequence | None) -> Statistics:
        hits = hits_of(prediction, references)[: self.k]
        rank = first_hit(hits)
        return int(rank is not None), rank or 0, len(hits)

    def example(self, statistics: Statistics) -> float:
        return float(statistics[0])

    def details(self, rows: Sequence[Statistics]) -> dict[str, float]:
        depth = max((row[2] for row in rows), default=0)
        reached = [sum(0 < row[1] <= k for row in rows) for k in range(1, depth + 1)]
        return {f"top_{k}_accuracy": count / len(rows) for k, count in enumerate(reached, 1)}


def first_hit(hits: Sequence[bool]) -> int | None:
    """The rank (from 1) of the first hit; None without one."""
    return next((rank for rank, hit in enumerate(hits, 1) if hit), None)
