"""KILT's scores (Petroni et al. 2021): an answer's score, and the same counted only with perfect evidence.

    kilt_{em, f1, accuracy, rougel}               1/N · Σ [Rprec = 1] · max over answers of score
    kilt_downstream_{em, f1, accuracy, rougel}    1/N · Σ max over answers of score

Takes rows of KILT's files: gold `output[].{answer, provenance}`, prediction `output[0].{answer, provenance}`.
A prediction with several outputs is refused, as by the script: which is the answer is not ours to say.
`accuracy` is equality of the stripped texts, case kept; `rougel` is that of the package `rouge` 1.0.1. An
empty answer has 0 in all four, even where the normalised gold is empty too. Source: KILT
`kilt/eval_downstream.py` (`_calculate_metrics`). A null answer is missing here; the script turns it into
the text "None".
"""

from __future__ import annotations

from typing import Any

from eval.metrics.base import MeanMetric, Statistics, bits_of, float_of, is_missing, shown
from eval.metrics.r_precision import RPrecision
from eval.metrics.ranking import outputs_of
from eval.metrics.rouge_l_kilt import rouge_l_kilt
from rag_core.answers import exact_match, f1

_R_PRECISION = RPrecision()


class Kilt(MeanMetric):
    """Statistics: (the 64 bits of the score, whether the evidence is perfect)."""

    takes = "kilt"
    width = 2

    def __init__(self, part: str, combined: bool = True) -> None:
        self.name = f"kilt_{part}" if combined else f"kilt_downstream_{part}"
        self.part, self.combined = part, combined
        gate = "rprec=1" if combined else "none"
        self.options = f"gate:{gate}|refs:max|like:kilt-2664322"

    def is_missing(self, prediction: Any) -> bool:
        if is_missing(prediction):
            return True
        outputs = outputs_of(prediction)
        return len(outputs) == 1 and is_missing(outputs[0].get("answer", ""))

    def statistics(self, prediction: Any, references: Any) -> Statistics:
        answer = _answer(prediction)
        golds = sorted({g for output in outputs_of(references) if (g := _text(output.get("answer")))})
        if not golds:
            raise ValueError("no reference answers")
        score = self._score(answer, golds) if answer else 0.0
        found, of = _R_PRECISION.statistics(prediction, references)
        return bits_of(score), int(found == of)

    def _score(self, answer: str, golds: list[str]) -> float:
        if self.part == "accuracy":
            return float(answer in golds)
        if self.part == "em":
            return float(exact_match(answer, golds))
        if self.part == "f1":
            return f1(answer, golds)
        return max(rouge_l_kilt(answer, gold) for gold in golds)

    def example(self, statistics: Statistics) -> float:
        score, perfect = statistics
        return float_of(score) if perfect or not self.combined else 0.0


def _answer(prediction: Any) -> str:
    outputs = outputs_of(prediction)
    if len(outputs) != 1 or "answer" not in outputs[0]:
        raise ValueError("a KILT prediction has exactly one output, with an answer")
    return _text(outputs[0]["answer"])


def _text(answer: Any) -> str:
    if answer is not None and not isinstance(answer, str):
        raise ValueError(f"answer {shown(answer)}: expected text")
    return (answer or "").strip()
