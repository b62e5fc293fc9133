"""FEVER evidence precision, recall and F1, macro-averaged over verifiable claims (Thorne et al. 2018).

    precision   mean share of the first 5 predicted sentences that stand in some gold group (1 if none is)
    recall      share of claims of which some gold group was predicted whole
    F1          2PR / (P + R) of the two means

Labels do not enter. A sentence predicted twice counts twice. Over no verifiable claim precision is 1 and
recall 0, as in fever-scorer (`evidence_macro_precision`, `evidence_macro_recall`, `fever_score`); F1 is 0
where both are 0, for which the scorer divides by zero. A *missing* prediction has precision 0; a row
without `predicted_evidence`, or gold without `evidence`, is refused: "no evidence found" is an empty list.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eval.metrics.base import PooledMetric, Statistics
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


class FeverEvidence(PooledMetric):
    """Statistics: precision in units of 1/lcm(1…max_evidence), recall, one for the claim; integers all."""

    takes = "fever"
    needs_evidence = True
    needs_references = False
    is_missing = staticmethod(is_missing_label)
    version = 2
    width = 3

    def __init__(self, part: str, max_evidence: int = MAX_EVIDENCE) -> None:
        check_limit(max_evidence)
        self.name, self.part = f"fever_{part}", part
        self.max_evidence = max_evidence
        self.unit = math.lcm(*range(1, max_evidence + 1))
        self.options = f"macro|max_evidence:{max_evidence}|pages:canonical|like:fever-scorer"

    def statistics(self, prediction: Any, references: Any) -> Statistics | None:
        reference = prediction if references is None else references
        sentences = predicted_sentences(prediction, self.max_evidence)
        if label_of(reference, "label") == UNVERIFIABLE:
            return None
        groups = gold_groups(reference)
        gold = {sentence for group in groups for sentence in group if sentence[1] is not None}
        hits = sum(sentence in gold for sentence in sentences)
        precision = self.unit * hits // len(sentences) if sentences else self.unit
        complete = not any(groups) or is_complete(groups, sentences)
        return precision, int(complete), 1

    def missing(self, references: Any) -> Statistics | None:
        return None if label_of(references, "label") == UNVERIFIABLE else (0, 0, 1)

    def score(self, sums: Sequence[int]) -> float:
        precision_sum, recalled, claims = sums
        precision = precision_sum / self.unit / claims if claims else 1.0
        recall = recalled / claims if claims else 0.0
        if self.part == "precision":
            return precision
        if self.part == "recall":
            return recall
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
