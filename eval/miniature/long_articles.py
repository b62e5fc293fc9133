"""Articles of two passages: some facts among the first 100 words, the others behind them."""

from __future__ import annotations

import random

from eval.miniature.facts import Entity
from eval.miniature.names import NameMaker
from eval.miniature.phrasing import article_sentences, later_section

WORDS = 100  # of a passage
_MORE = 3  # sentences without a fact in the second part, beside two fillers


def two_parts(entity: Entity, rng: random.Random, names: NameMaker) -> tuple[list[str], list[str]]:
    """The sentences of both passages; facts named in `entity.later` stand in the second, alone.

    The first part is filled up with bystanders and years until it has 100 words or a few more.
    """
    early = tuple(relation for relation in entity.facts if relation not in entity.later)
    first = article_sentences(entity, rng, names, early, fillers=2)
    padding: list[str] = []
    while _n_words(first) < WORDS:
        padding = padding or later_section(entity, rng, names)
        first.append(padding.pop())
    second = article_sentences(entity, rng, names, entity.later, fillers=2)[1:]
    return first, second + later_section(entity, rng, names)[:_MORE]


def _n_words(sentences: list[str]) -> int:
    return len(" ".join(sentences).split())
