"""Q-BLEU-1 (Nema and Khapra 2018): BLEU-1 of a generated question, weighed with its answerability.

    A = w_n F(entities) + w_r F(relevant words) + w_q F(question type) + w_f F(function words)
    Q = δ · A + (1 − δ) · BLEU-1

`q_bleu1` has the weights tuned on SQuAD (.41, .36, .20, .03, δ = .66), which Lewis et al. 2020 report
for Jeopardy; `q_bleu1_default` those of the tool's README (.6, .1, .2, .1, δ = .7). F is the harmonic mean
of BLEU-1 of one side's component against the other's, both ways, brevity penalty included; components
that are absent on both sides agree (1). The mean over questions, the best reference for each. Source:
PrekshaNema25/Answerability-Metric `answerability_score.py` at ec5cf5e. An empty prediction, on which the
tool raises, has 0.

Components are taken from words split at white space, case kept: a word that starts with a capital is an
entity (so "titanic" is none), `what` and `which` take the next word along. BLEU-1 is on lower-cased PTB
tokens without punctuation, as coco-caption cuts them (`eval.metrics.ptb`).
"""

from __future__ import annotations

from collections.abc import Sequence

from eval.metrics.base import MeanMetric, Statistics
from eval.metrics.bleu import brevity_penalty, clipped_matches
from eval.metrics.ptb import ptb_words

_TYPES = ("what which who whom whose where when how What Which Why Who Whom Whose Where When How").split()
_RANK = {word: rank for rank, word in enumerate(_TYPES)}
_FUNCTION_WORDS = frozenset(
    "a about above after again against all am an and any are as at be because been before being below "
    "between both but by can did do does doing don down during each few for from further had has have "
    "having he her here hers herself him himself his i if in into is it its itself just me more most my "
    "myself no nor not now of off on once only or other our ours ourselves out over own s same she should "
    "so some such t than that the their theirs them themselves then there these they this those through "
    "to too under until up very was we were while will with you your yours yourself yourselves".split()
)


def components(question: str) -> tuple[str, str, str, str]:
    """Entities, relevant words, question type, function words; each as a text of words."""
    words = question.split()
    places = [i for i, word in enumerate(words) if word in _RANK]
    kinds: list[str] = []
    for i in sorted(places, key=lambda place: _RANK[words[place]]):
        takes_next = words[i].lower() in ("what", "which")
        kinds += words[i : i + 2] if takes_next else words[i : i + 1]
    taken = set(kinds)
    named = words[1:] if words and words[0].lower() in _TYPES else words
    entities = [w for w in named if w[0].isupper()]
    rest = [w for w in words if w not in taken]
    relevant = [w for w in rest if not w[0].isupper() and w not in _FUNCTION_WORDS]
    function = [w.lower() for w in words if w.lower() in _FUNCTION_WORDS]
    return " ".join(entities), " ".join(relevant), " ".join(kinds), " ".join(function)


class QBleu1(MeanMetric):
    """Statistics: (matches, predicted, reference words) of the four components, then of the question."""

    width = 15
    version = 2

    def __init__(self, name: str, weights: tuple[float, float, float, float], delta: float) -> None:
        self.name, self.weights, self.delta = name, weights, delta
        shown = ",".join(f"{w:g}" for w in weights)
        self.options = f"w:{shown}|delta:{delta:g}|tok:ptb|refs:max|like:answerability-ec5cf5e"

    def statistics(self, prediction: str, references: Sequence[str]) -> Statistics:
        if not prediction.split():
            return (0,) * self.width
        return max((self._against(prediction, reference) for reference in references), key=self.example)

    def _against(self, prediction: str, reference: str) -> Statistics:
        row: list[int] = []
        for ours, gold in zip(components(prediction), components(reference)):
            row += (1, 1, 1) if ours == gold == "" else _counts(ours, gold)
        return (*row, *_counts(prediction, reference))

    def example(self, statistics: Statistics) -> float:
        triples = [statistics[i : i + 3] for i in range(0, self.width, 3)]
        answerable = sum(w * _f(*triple) for w, triple in zip(self.weights, triples))
        return self.delta * answerable + (1 - self.delta) * _bleu1(*triples[4])


def _counts(ours: str, gold: str) -> tuple[int, int, int]:
    predicted, reference = ptb_words(ours), ptb_words(gold)
    return clipped_matches(predicted, [reference]), len(predicted), len(reference)


def _bleu1(matches: int, length: int, reference: int) -> float:
    return matches / length * brevity_penalty(length, reference) if matches else 0.0


def _f(matches: int, predicted: int, reference: int) -> float:
    there, back = _bleu1(matches, predicted, reference), _bleu1(matches, reference, predicted)
    return 2 * there * back / (there + back) if there + back else 0.0
