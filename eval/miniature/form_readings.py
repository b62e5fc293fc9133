"""Readings of other forms than whole passages with short answers, drawn afresh every time.

question  a short answer, from passages of every shape that a split of articles leaves
sentence  the same, answered in a whole sentence
clue      an entity's title, to which a clue of two facts is wanted
claim     a statement that the passage supports, refutes or leaves open

As in `eval.miniature.reading`, the target is the true one also where the passage is another's or holds
but one fact of two, so that the model spreads its belief there.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from eval.miniature.facts import COUNTRIES, RELATIONS, Entity, draw_entity
from eval.miniature.named_after import draw_named_after
from eval.miniature.names import NameMaker
from eval.miniature.phrasing import article_sentences, later_section, question_text
from eval.miniature.questions import choose_cues
from eval.miniature.reading import draw_group
from eval.miniature.statements import LABELS, SENTENCE_PREFIX, claim_text, clue_text, sentence_answer
from eval.miniature.tasks.articles import claimable

_BESIDE = {"named after": 60, "stranger": 20, "namesake": 20}


@dataclass(frozen=True, slots=True)
class Shape:
    """A passage has at most `facts` facts and `fillers` fillers, worded in the first `wordings` ways.

    `parts`: the share of passages that are the first or the second part of a long article; `beside`:
    of those that are about something else; `opening`, `cues`: as in `reading.Stage`.
    """

    facts: int = 5
    fillers: int = 4
    wordings: int = 4
    parts: float = 0.0
    beside: float = 0.0
    opening: bool = True
    cues: bool = True


# Claims are learnt on short passages first; every other form begins at whole ones.
CLAIM_SHAPES = (
    Shape(1, 0, 2, opening=False, cues=False),
    Shape(2, 0, cues=False),
    Shape(3, 1),
    Shape(beside=0.12),
)
WHOLE = Shape(parts=0.4, beside=0.1)


@dataclass(frozen=True, slots=True)
class FormReading:
    """A passage, an input and its target. `copied`: words of the passage that the target rests on;
    `claimed`: the name that a claim gives, None in other forms."""

    title: str
    text: str
    question: str
    target: str
    copied: tuple[str, ...]
    claimed: str | None = None


def draw_question(rng: random.Random, shape: Shape, whole_sentence: bool = False) -> FormReading:
    """A question with its short answer, or (`whole_sentence`) one in a sentence."""
    group, names = draw_group(rng, 2)
    entity = group[0]
    relation = rng.choice(RELATIONS[entity.kind])
    question = question_text(entity, relation, choose_cues(entity, group, rng), rng)
    target, copied = entity.facts[relation], (entity.facts[relation],)
    if whole_sentence:
        question, target = SENTENCE_PREFIX + question, sentence_answer(entity, relation)
        copied = (entity.name, *copied)
    if rng.random() < shape.beside:
        title, text = _beside(group, rng, names, shape)
        return FormReading(title, text, question, target, ())
    text = _passage(entity, _stated(entity, relation, rng, shape), rng, names, shape)
    return FormReading(entity.title, text, question, target, copied)


def draw_sentence(rng: random.Random, shape: Shape) -> FormReading:
    return draw_question(rng, shape, whole_sentence=True)


def draw_clue(rng: random.Random, shape: Shape) -> FormReading:
    """An entity's title and a clue of the first two facts of its article.

    A part of a long article states one of the two; the words of the other cannot be known from it.
    """
    group, names = draw_group(rng, 2)
    entity = group[0]
    relations = RELATIONS[entity.kind]
    missing = rng.choice(claimable(entity)) if rng.random() < 0.5 else None  # as articles withhold one
    told = [relation for relation in relations if relation != missing][:2]
    target = clue_text(entity, told)
    if rng.random() < shape.beside:
        title, text = _beside(group, rng, names, shape)
        return FormReading(title, text, entity.title, target, ())
    others = [relation for relation in relations if relation not in (*told, missing)]
    part = rng.randrange(2) if rng.random() < shape.parts else None
    known = told if part is None else [told[part]]
    stated = [*known, *rng.sample(others, rng.randint(0, len(others)))]
    text = _passage(entity, tuple(stated), rng, names, shape, part)
    words = text.replace(".", "").split()
    closed = [word for word in (COUNTRIES[entity.country], entity.sort) if word in words]
    copied = (*closed, *(entity.facts[r] for r in known))
    return FormReading(entity.title, text, entity.title, target, copied)


def draw_claim(rng: random.Random, shape: Shape) -> FormReading:
    """A claim with its label; what is claimed wrongly, or of a fact not stated, is another's name."""
    group, names = draw_group(rng, 2)
    entity = group[0]
    relation = rng.choice(RELATIONS[entity.kind])
    label = rng.choice(LABELS)
    supports, _, open_ = (label == each for each in LABELS)
    claimed = (entity if supports else draw_entity(entity.kind, rng, names)).facts[relation]
    cues = choose_cues(entity, group, rng) if shape.cues else ()
    claim = claim_text(entity, relation, claimed, cues, rng)
    if rng.random() < shape.beside:
        title, text = _beside(group, rng, names, shape)
        return FormReading(title, text, claim, label, (), claimed)
    text = _passage(entity, _stated(entity, relation, rng, shape, without=open_), rng, names, shape)
    copied = () if open_ else (entity.facts[relation],)
    return FormReading(entity.title, text, claim, label, copied, claimed)


def _stated(
    entity: Entity, relation: str, rng: random.Random, shape: Shape, without: bool = False
) -> tuple[str, ...]:
    """The facts of a passage: `relation` and others, or (`without`) others alone."""
    others = [r for r in RELATIONS[entity.kind] if r != relation]
    most = min(len(others), shape.facts - (not without))
    chosen = rng.sample(others, rng.randint(min(most, max(without, shape.facts - 3)), most))
    return tuple(chosen if without else [relation, *chosen])


def _passage(
    entity: Entity,
    relations: tuple[str, ...],
    rng: random.Random,
    names: NameMaker,
    shape: Shape,
    part: int | None = None,
) -> str:
    """A passage that states these facts and no other; `part` 0 or 1: of a long article's two."""
    if part is None and rng.random() < shape.parts:
        part = rng.randrange(2)
    fillers = rng.randint(0, shape.fillers)
    sentences = article_sentences(entity, rng, names, relations, fillers=fillers, wordings=shape.wordings)
    if part is not None:
        sentences += later_section(entity, rng, names)[: rng.randint(1, 4)]
    return " ".join(sentences if shape.opening and part != 1 else sentences[1:])


def _beside(group: list[Entity], rng: random.Random, names: NameMaker, shape: Shape) -> tuple[str, str]:
    """(title, text) of a passage about something else than the first of the group."""
    entity = group[0]
    what = rng.choices(tuple(_BESIDE), tuple(_BESIDE.values()))[0]
    if what == "named after" and entity.kind != "office":
        (article,) = draw_named_after(group, 1, rng)
        return article.title, article.text
    shown = draw_entity(entity.kind, rng, names) if what == "stranger" else group[1]
    relations = RELATIONS[shown.kind]
    stated = tuple(rng.sample(relations, rng.randint(2, len(relations))))
    return shown.title, _passage(shown, stated, rng, names, shape)
