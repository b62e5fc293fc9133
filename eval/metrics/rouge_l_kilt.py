"""ROUGE-L F as the package `rouge` 1.0.1 has it, which KILT uses: a summary-level score over *sets* of words.

    P = |union of LCS words| / |distinct words of the prediction|,  R = … / |distinct words of the reference|
    F = 2PR / (P + R + 10⁻⁸)

Texts are cut into sentences at every full stop and into words at single spaces, case kept. Repeated words
vanish ("cat cat" equals "cat"), and identical texts have 0.999999995. A text that is empty or holds full
stops only has 0 here; the package raises there, which KILT catches as 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval.metrics.base import MeanMetric, Statistics, bits_of, float_of


class RougeLKilt(MeanMetric):
    name = "rouge_l_kilt"
    options = "tok:space|sentences:full-stop|words:distinct|refs:max|like:rouge-1.0.1"

    def statistics(self, prediction: str, references: Sequence[str]) -> Statistics:
        return (bits_of(max(rouge_l_kilt(prediction, r) for r in references)),)

    def example(self, statistics: Statistics) -> float:
        return float_of(statistics[0])


def rouge_l_kilt(prediction: str, reference: str) -> float:
    ours, gold = _sentences(prediction), _sentences(reference)
    if not ours or not gold:
        return 0.0
    union: set[str] = set()
    for gold_words in gold:
        for our_words in ours:
            union |= _lcs_words(gold_words, our_words)
    precision = len(union) / len({word for words in ours for word in words})
    recall = len(union) / len({word for words in gold for word in words})
    return 2.0 * (precision * recall / (precision + recall + 1e-8))


def _sentences(text: str) -> list[list[str]]:
    return [" ".join(s.split()).split(" ") for s in text.split(".") if s]


def _lcs_words(gold: list[str], ours: list[str]) -> set[str]:
    """The words of one longest common subsequence: of several, the one the package walks back to."""
    rows, columns = len(gold), len(ours)
    table = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(1, rows + 1):
        for j in range(1, columns + 1):
            if gold[i - 1] == ours[j - 1]:
                table[i][j] = table[i - 1][j - 1] + 1
            else:
                table[i][j] = max(table[i - 1][j], table[i][j - 1])
    words: set[str] = set()
    i, j = rows, columns
    while i and j:
        if gold[i - 1] == ours[j - 1]:
            words.add(gold[i - 1])
            i, j = i - 1, j - 1
        elif table[i - 1][j] > table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return words
