"""ROUGE-L F (Lin 2004) as rouge-score 0.1.2 computes it: the longest common subsequence of tokens.

    P = LCS / |prediction|,  R = LCS / |reference|,  F = 2PR / (P + R);   best reference, mean over the set

Tokens are lower-cased runs of a–z and 0–9: an accent or an apostrophe separates ("don't" is two
tokens), and newlines mean nothing (that is ROUGE-L, not ROUGE-Lsum). By that rule identical Hindi
texts score 0, which measures nothing: where a *reference* holds no such token but does hold letters or
digits, both sides are split into Unicode words instead. The mean is plain, not a bootstrap's middle.
LCS lengths come from `rapidfuzz`, equal to the last bit and an order of magnitude faster.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence

from rapidfuzz.distance import LCSseq

from eval.metrics.base import MeanMetric, Statistics

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_UNICODE_WORD = re.compile(r"(?:[^\W_]|[\u0300-\u036f\u0900-\u0dff\u0e31-\u0e4e])+")


class RougeL(MeanMetric):
    """Statistics of the best reference: LCS, tokens of the prediction, tokens of the reference."""

    width = 3

    def __init__(self, stemmer: bool = False) -> None:
        self.name = "rouge_l"
        self._stem = _porter() if stemmer else None
        stem = "porter" if stemmer else "none"
        self.options = f"tok:a-z0-9,unicode-if-none|stem:{stem}|f:1|refs:max-f|like:rouge-score-0.1.2"

    def statistics(self, prediction: str, references: Sequence[str]) -> Statistics:
        ours = self._tokens(prediction)
        best, best_f = (0, 0, 0), -1.0
        for reference in references:
            gold, mine = self._tokens(reference), ours
            if not gold and _UNICODE_WORD.search(reference):
                gold = _UNICODE_WORD.findall(reference.lower())
                mine = _UNICODE_WORD.findall(prediction.lower())
            found = (LCSseq.similarity(mine, gold) if mine and gold else 0, len(mine), len(gold))
            f = self.example(found)
            if f > best_f:
                best, best_f = found, f
        return best

    def example(self, statistics: Statistics) -> float:
        lcs, predicted, gold = statistics
        if not lcs:
            return 0.0
        precision, recall = lcs / predicted, lcs / gold
        return 2 * precision * recall / (precision + recall)

    def _tokens(self, text: str) -> list[str]:
        tokens = _ASCII_WORD.findall(text.lower())
        return [self._stem(t) if len(t) > 3 else t for t in tokens] if self._stem else tokens


@functools.cache
def _porter() -> Callable[[str], str]:
    from nltk.stem import porter  # comes with rouge-score

    return porter.PorterStemmer().stem
