"""The FEVER score: the right label, and for verifiable claims a complete group of evidence.

    FEVER = 1/N · Σ [label right and (unverifiable or some gold group ⊆ the first 5 predicted sentences)]

Thorne et al. 2018. Source: fever-scorer `is_strictly_correct`. Its early versions cut the predictions in
place, so that a second call with another limit was wrong; here nothing is changed. Predictions without
`predicted_evidence` are refused, as there; `fever_accuracy` scores labels alone.
"""

from __future__ import annotations

from typing import Any

from eval.metrics.base import BinaryMetric, Statistics
from eval.metrics.fever import (
    MAX_EVIDENCE,
    UNVERIFIABLE,
    check_limit,
    gold_groups,
    is_complete,
    is_missing_label,
    label_of,
    predicted_sentences,
)


class FeverScore(BinaryMetric):
    takes = "fever"
    needs_evidence = True
    needs_references = False
    is_missing = staticmethod(is_missing_label)
    version = 2
    name = "fever_score"

    def __init__(self, max_evidence: int | None = MAX_EVIDENCE) -> None:
        check_limit(max_evidence)
        self.max_evidence = max_evidence
        self.options = f"case:upper|max_evidence:{max_evidence}|pages:canonical|like:fever-scorer"

    def statistics(self, prediction: Any, references: Any) -> Statistics:
        reference = prediction if references is None else references
        gold = label_of(reference, "label")
        sentences = predicted_sentences(prediction, self.max_evidence)
        if label_of(prediction, "predicted_label") != gold:
            return (0,)
        return (int(gold == UNVERIFIABLE or is_complete(gold_groups(reference), sentences)),)
