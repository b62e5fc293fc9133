"""BLEU-1 of MS MARCO's official script: pooled over the corpus, on spaCy's tokens, lower-cased.

    BLEU-1 = Σ clipped matches / Σ predicted tokens · exp(1 − r/h) if h < r

h and r sum the tokens of the predictions and of the references closest in length (ties: the shorter). An
empty prediction costs only length; a mean of sentence scores is another number. Questions whose
reference is `No Answer Present.` are left out (`unanswerable="drop"`); abstaining on an answerable one is
an empty answer. (A plain list of texts of which that would leave nothing is scored as texts; see
`rouge_l_msmarco`.) Source: `Evaluation/bleu/bleu_scorer.py` (coco-caption's, option closest) and
`ms_marco_eval.py`. COCO's PTB variant is not offered: it drops the punctuation that MS MARCO keeps.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval.metrics import msmarco_text
from eval.metrics.base import PooledMetric, Statistics
from eval.metrics.bleu import brevity_penalty, clipped_matches, closest_length


class Bleu1MsMarco(PooledMetric):
    """Statistics: matches, tokens of the prediction, tokens of the closest reference."""

    name = "bleu1_msmarco"
    width = 3

    def __init__(self, unanswerable: str = "drop") -> None:
        self.unanswerable = msmarco_text.check_rule(unanswerable)
        tok = msmarco_text.tokenizer_version()
        self.options = f"case:lc|tok:{tok}|len:closest|unanswerable:{unanswerable}|like:ms_marco_eval"

    def statistics(self, prediction: str, references: Sequence[str]) -> Statistics | None:
        if self.unanswerable == "drop" and msmarco_text.is_unanswerable(references):
            return None
        hypothesis = msmarco_text.normalize(msmarco_text.answer_text(prediction)).split()
        golds = [msmarco_text.normalize(reference).split() for reference in references]
        matches = clipped_matches(hypothesis, golds)
        return matches, len(hypothesis), closest_length(len(hypothesis), golds)

    def missing(self, references: Sequence[str]) -> Statistics | None:
        return self.statistics("", references)

    def score(self, sums: Sequence[int]) -> float:
        matches, length, reference = sums
        return matches / length * brevity_penalty(length, reference) if matches else 0.0
