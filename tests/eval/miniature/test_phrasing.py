"""Sentences and questions: every wording fills, decades and articles come out right."""

from __future__ import annotations

import random

import pytest

from eval.miniature.facts import RELATIONS, SORTS, draw_entity, draw_namesakes
from eval.miniature.names import NameMaker
from eval.miniature.phrasing import article_sentences, decade_words
from eval.miniature.questions import choose_cues
from eval.miniature.wordings import FACT_WORDS, SORT_WORDS


def test_every_sort_and_relation_has_words():
    assert set(SORT_WORDS) == {sort for sorts in SORTS.values() for sort in sorts}
    assert set(FACT_WORDS) == {r for relations in RELATIONS.values() for r in relations}
    for sentences, questions in FACT_WORDS.values():
        assert len(sentences) >= 4 and len(questions) >= 3
        assert all("{a}" in s for s in sentences) and all("{s}" in q for q in questions)


def test_decades_are_said_in_digits_or_words():
    said = {decade_words(1870, random.Random(i)) for i in range(20)}
    assert said == {"1870s", "eighteen-seventies"}


@pytest.mark.parametrize("kind", sorted(RELATIONS))
def test_an_article_states_every_fact(kind):
    rng = random.Random(1)
    names = NameMaker(rng)
    entity = draw_entity(kind, rng, names)
    text = " ".join(article_sentences(entity, rng, names))
    assert all(answer in text for answer in entity.facts.values())
    assert "{" not in text


@pytest.mark.parametrize("kind", ["person", "work", "place"])
def test_cues_single_out_one_namesake(kind):
    rng = random.Random(2)
    group = draw_namesakes(kind, 10, rng, NameMaker(rng))
    for entity in group:
        cues = choose_cues(entity, group, rng)
        fits = [o for o in group if all(getattr(o, c) == getattr(entity, c) for c in cues)]
        assert fits == [entity]


def test_a_near_name_differs_by_one_letter_and_names_never_repeat():
    names = NameMaker(random.Random(0))
    name = names.person()
    near = names.near(name)
    assert len(near) == len(name) and sum(a != b for a, b in zip(near, name)) == 1
    drawn = [names.person() for _ in range(2000)]
    assert len(set(drawn)) == 2000
