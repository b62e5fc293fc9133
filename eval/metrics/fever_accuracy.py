"""FEVER label accuracy: the predicted label equals the gold label, both in upper case.

    A = 1/N · Σ [label(prediction) = label(gold)]

`fever_accuracy` scores the rows it is given: three labels in the 3-way task; in the 2-way task the test
set has no unverifiable claims (`rag_core.datasets` leaves them out), and predicting NOT ENOUGH INFO is
just wrong. `fever_accuracy_2way` leaves them out of any list itself. Takes rows of FEVER's files or plain
labels. Sources: fever-scorer `is_correct_label`; Lewis et al. 2020, section 3.4, for the 2-way task.
"""

from __future__ import annotations

from typing import Any

from eval.metrics.base import BinaryMetric, Statistics
from eval.metrics.fever import UNVERIFIABLE, is_missing_label, label_of


class FeverAccuracy(BinaryMetric):
    takes = "fever"
    needs_references = False
    is_missing = staticmethod(is_missing_label)
    version = 2

    def __init__(self, name: str = "fever_accuracy", ways: int = 3) -> None:
        self.name, self.ways = name, ways
        self.options = f"case:upper|ways:{ways}|like:fever-scorer"

    def statistics(self, prediction: Any, references: Any) -> Statistics | None:
        gold = self._gold(prediction if references is None else references)
        return gold and (int(label_of(prediction, "predicted_label") == gold),)

    def missing(self, references: Any) -> Statistics | None:
        return (0,) if self._gold(references) else None

    def _gold(self, row: Any) -> str | None:
        gold = label_of(row, "label")
        return None if self.ways == 2 and gold == UNVERIFIABLE else gold
