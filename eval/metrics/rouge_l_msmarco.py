"""ROUGE-L of MS MARCO's official script: β = 1.2, precision and recall maximised over references apart.

    P = max LCS / |prediction|,  R = max LCS / |reference|,  F = (1 + β²) P R / (R + β² P)

The mean over questions. The two maxima may come from different references. Tokens as in
`bleu1_msmarco`, split at every single space: a double space leaves an empty token, and an empty text is
one empty token, so that two empty texts have 1. Unanswerable questions are left out; over none the value
is undefined. Source: `Evaluation/rouge/rouge.py` and `ms_marco_eval.py`. A target that is a list is a
list of references, never one text of its brackets.

List or mapping: predictions by id, or with `No Answer Present.` among them, are an MS MARCO file and go by
the script's rule for unanswerable questions. A plain list of texts of which that rule would leave nothing
is meant as texts: it is scored against the phrase itself, as `rouge.py` alone does. `unanswerable="drop"`
or `"score"` says which, and the signature tells.
"""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz.distance import LCSseq

from eval.metrics import msmarco_text
from eval.metrics.base import MeanMetric, Statistics

_BETA2 = 1.2**2


class RougeLMsMarco(MeanMetric):
    """Statistics: LCS and length for the best precision, LCS and length for the best recall."""

    name = "rouge_l_msmarco"
    width = 4

    def __init__(self, unanswerable: str = "drop") -> None:
        self.unanswerable = msmarco_text.check_rule(unanswerable)
        tok = msmarco_text.tokenizer_version()
        self.options = (
            f"case:lc|tok:{tok}|beta:1.2|refs:max-p,max-r|unanswerable:{unanswerable}|like:ms_marco_eval"
        )

    def statistics(self, prediction: str, references: Sequence[str]) -> Statistics | None:
        if self.unanswerable == "drop" and msmarco_text.is_unanswerable(references):
            return None
        hypothesis = msmarco_text.normalize(msmarco_text.answer_text(prediction)).split(" ")
        best_lcs, recall = 0, (0, 1)
        for reference in references:
            gold = msmarco_text.normalize(reference).split(" ")
            lcs = LCSseq.similarity(hypothesis, gold)
            best_lcs = max(best_lcs, lcs)
            if lcs * recall[1] > recall[0] * len(gold):
                recall = (lcs, len(gold))
        return best_lcs, len(hypothesis), *recall

    def missing(self, references: Sequence[str]) -> Statistics | None:
        return None if self.statistics("", references) is None else (0, 1, 0, 1)

    def example(self, statistics: Statistics) -> float:
        lcs, length, recalled, gold = statistics
        if not lcs:
            return 0.0
        precision, recall = lcs / length, recalled / gold
        return (1 + _BETA2) * precision * recall / (recall + _BETA2 * precision)
