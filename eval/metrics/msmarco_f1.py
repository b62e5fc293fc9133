"""MS MARCO's official F1: whether a system answers the questions that have an answer, and no others.

    P = TP / (TP + FP),  R = TP / (TP + FN),  F1 = 2PR / (P + R)

TP: answerable and answered; FN: answerable and not; FP: unanswerable and answered. What the answer says
does not matter. P and R are 1 over nothing, as in `ms_marco_eval.py`; F1 is 0 where both are 0, for which
the script divides by zero. A missing prediction counts as wrong either way.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval.metrics.base import PooledMetric, Statistics
from eval.metrics.msmarco_text import is_unanswerable
from rag_core.datasets.msmarco import NO_ANSWER


class MsMarcoF1(PooledMetric):
    """Statistics: TP, FP, FN. An example by itself is right (1) or wrong (0)."""

    name = "msmarco_f1"
    width = 3
    options = "over:answerability|like:ms_marco_eval"

    def statistics(self, prediction: str, references: Sequence[str]) -> Statistics:
        answered = prediction != NO_ANSWER
        if is_unanswerable(references):
            return 0, int(answered), 0
        return int(answered), 0, int(not answered)

    def missing(self, references: Sequence[str]) -> Statistics:
        return (0, 1, 0) if is_unanswerable(references) else (0, 0, 1)

    def score(self, sums: Sequence[int]) -> float:
        tp, fp, fn = sums
        precision = tp / (tp + fp) if tp + fp else 1.0
        recall = tp / (tp + fn) if tp + fn else 1.0
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
