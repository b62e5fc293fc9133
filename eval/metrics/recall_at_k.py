"""Recall, precision and success at k, over evidence sets as KILT counts them (Petroni et al. 2021).

    recall@k = complete sets among the first k points / number of distinct sets
    precision@k = complete sets among the first k points / k;   success@k = whether there is one

Without references of several pages this is plain recall: each gold id is a set of its own. With evidence
sets a set is one point of the ranking, at the rank of its *last* page, and its earlier pages take no
place; repeated pages count once. Source: KILT `kilt/eval_retrieval.py` (`get_rank`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eval.metrics.base import MeanMetric, Statistics
from eval.metrics.ranking import gold_sets, set_ranking


class AtK(MeanMetric):
    """Statistics: (complete sets among the first k points, what they are divided by)."""

    takes = "ranking"
    width = 2

    def __init__(self, part: str, k: int) -> None:
        if k < 1:
            raise ValueError(f"k={k}: must be at least 1")
        self.name, self.part, self.k = f"{part}_at_{k}", part, k
        self.options = f"k:{k}|sets:last-page|like:kilt"

    def statistics(self, prediction: Any, references: Any) -> Statistics:
        sets: Sequence[Sequence[str]] = gold_sets(references, each_alone=True)
        found = sum(set_ranking(prediction, sets)[: self.k])
        if self.part == "success":
            return int(found > 0), 1
        return found, (len(sets) if self.part == "recall" else self.k)

    def example(self, statistics: Statistics) -> float:
        found, of = statistics
        return found / of if of else 0.0
