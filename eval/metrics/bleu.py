"""BLEU as sacrebleu computes it (Post 2018), over the whole set: `bleu1` and `bleu4`.

    BLEU-n = BP · exp(1/n · Σ log p_i),   p_i = Σ clipped matches / Σ n-grams,   BP = exp(1 − r/h) if h < r

Counts are pooled over the corpus; r sums the closest reference length of each example (ties: the
shorter). 13a tokens, case kept, exponential smoothing of orders without a match (above the first), as
`sacrebleu.BLEU(max_ngram_order=n)` 2.6.0, divided by 100. References are given per example, never
transposed as sacrebleu's streams are. An example by itself uses the effective order, so that a right
one-word answer has 1. The whole answer is one segment, whatever sentences it has.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from eval.metrics.base import PooledMetric, Statistics

_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_RULES = (
    (re.compile(r"([{-~\[-` -&(-+:-@/])"), r" \1 "),  # ASCII punctuation but . , - '
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),  # a stop or comma not after a digit
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),  # nor before one
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),  # a dash after a digit
)
_SPECIAL = re.compile(r"[!-&(-/:-@\[-`{-~]")  # what any rule looks for
_KNOTTED = re.compile(r"[.,]{2}[0-9]")  # where one rule hides a stop from the next
_TOKEN = re.compile(
    r"(?:[^\s!-&(-/:-@\[-`{-~]+|(?<=[0-9])[.,](?=[0-9])|(?<![0-9])-)+"  # 3.5 and -x hold together
    r"|[!-&(-/:-@\[-`{-~]"
)


def tokens_13a(text: str) -> list[str]:
    """The tokens of mteval-13a as sacrebleu splits them: four rules in one pattern where that is exact."""
    text = text.rstrip()
    special = _SPECIAL.search(text)
    if special is None:
        return text.split()
    if special.start() == len(text) - 1 and text[-1] != "-":  # nothing but the sentence's end
        return [*text[:-1].split(), text[-1]]
    if "<" in text or "&" in text or "-\n" in text:
        text = text.replace("<skipped>", "").replace("-\n", "")
        for entity, character in _ENTITIES:
            text = text.replace(entity, character)
    if not _KNOTTED.search(text):
        return _TOKEN.findall(text)
    text = f" {text} "
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text.split()


class Bleu(PooledMetric):
    """Statistics: hypothesis length, reference length, matches of each order, n-grams of each order."""

    def __init__(self, order: int, lowercase: bool = False) -> None:
        self.name = f"bleu{order}"
        self.order, self.lowercase = order, lowercase
        self.width = 2 + 2 * order
        case = "lc" if lowercase else "mixed"
        self.options = f"case:{case}|tok:13a|ngrams:{order}|smooth:exp|len:closest|like:sacrebleu-2.6.0"

    def statistics(self, prediction: str, references: Sequence[str]) -> Statistics:
        if self.lowercase:
            prediction, references = prediction.lower(), [r.lower() for r in references]
        hypothesis = tokens_13a(prediction)
        golds = [tokens_13a(reference) for reference in references]
        closest = closest_length(len(hypothesis), golds)
        if self.order == 1:
            return len(hypothesis), closest, clipped_matches(hypothesis, golds), len(hypothesis)
        matches = [clipped_matches(hypothesis, golds, n) for n in range(1, self.order + 1)]
        totals = [max(0, len(hypothesis) - n) for n in range(self.order)]
        return (len(hypothesis), closest, *matches, *totals)

    def missing(self, references: Sequence[str]) -> Statistics:
        return self.statistics("", references)

    def example(self, statistics: Statistics) -> float:
        return self._score(statistics, effective=True)

    def score(self, sums: Sequence[int]) -> float:
        return self._score(sums, effective=False)

    def _score(self, sums: Sequence[int], effective: bool) -> float:
        length, reference, *counts = sums
        if self.order == 1:
            return counts[0] / length * brevity_penalty(length, reference) if counts[0] else 0.0
        matches, totals = counts[: self.order], counts[self.order :]
        if not any(matches):
            return 0.0
        logs, smooth = [], 1
        for match, total in zip(matches, totals):
            if not total:
                break
            smooth *= 1 if match else 2
            logs.append(math.log(match / total if match else 1 / (smooth * total)))
        if len(logs) < self.order and not effective:
            return 0.0
        return math.exp(math.fsum(logs) / len(logs)) * brevity_penalty(length, reference)


def closest_length(length: int, golds: Sequence[Sequence[str]]) -> int:
    """The reference length nearest to the hypothesis'; of two as near, the shorter."""
    lengths = sorted(map(len, golds))
    return min(lengths, key=lambda gold: abs(gold - length)) if len(lengths) > 1 else lengths[0]


def clipped_matches(hypothesis: Sequence[str], golds: Sequence[Sequence[str]], order: int = 1) -> int:
    """n-grams of the hypothesis found in a reference, each at most as often as in the best one."""
    if order == 1 and len(hypothesis) <= 64:
        kinds = set(hypothesis)
        shared = kinds.intersection(golds[0] if len(golds) == 1 else set().union(*golds))
        matches = len(shared)
        if len(kinds) < len(hypothesis):  # words said again may be matched again
            seen: set[str] = set()
            again = [word for word in hypothesis if word in seen or seen.add(word)]
            for word in shared.intersection(again):
                matches += min(again.count(word), max([gold.count(word) for gold in golds]) - 1)
        return matches
    counts = _ngrams(hypothesis, order)
    best: Counter = Counter()
    for gold in golds:
        best |= _ngrams(gold, order)
    return sum((counts & best).values())


def _ngrams(tokens: Sequence[str], order: int) -> Counter:
    return Counter(tokens) if order == 1 else Counter(zip(*(tokens[i:] for i in range(order))))


def brevity_penalty(length: int, reference: int) -> float:
    if length >= reference:
        return 1.0
    return math.exp(1 - reference / length) if length else 0.0
