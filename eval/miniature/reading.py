"""What mini-bart is pretrained on: questions over passages of entities drawn afresh every time.

Three tasks, by `Stage`: reading (the passage answers the question), reading beside the mark (the
passage is another's: a namesake told apart by the cues, a name one letter away, a stranger, what
is named after the entity, or a section without the fact; the target stays the true answer, so the
model learns to spread its belief there, which is what makes the marginal over passages pick the
right one), and denoising (spans of a text masked, the whole text to be written).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from eval.miniature.facts import RELATIONS, Entity, change_holder, draw_entity, draw_namesakes, make_title
from eval.miniature.named_after import draw_named_after
from eval.miniature.names import NameMaker
from eval.miniature.phrasing import article_sentences, later_section, question_text
from eval.miniature.questions import choose_cues

_KINDS, _KIND_WEIGHTS = ("person", "work", "place", "office"), (55, 20, 10, 15)
_MISMATCHES = {"namesake": 48, "near": 12, "stranger": 12, "section": 10, "named after": 18}


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of the curriculum, over length and variety.

    A passage has at most `facts` facts and `fillers` fillers; a fact is worded in the first
    `wordings` ways; `beside` is the share of passages that do not hold the answer; one batch in
    `denoise_every` is denoising. The next stage begins at an exact match of `advance_at`.
    """

    name: str
    facts: int
    fillers: int
    wordings: int
    beside: float
    denoise_every: int
    opening: bool = True  # whether the passage begins with who or what the entity is
    cues: bool = True  # whether the question names the attributes that tell namesakes apart
    advance_at: float = 0.75


CURRICULUM = (
    Stage("one sentence", 1, 0, 1, 0.0, 6, opening=False, cues=False),
    Stage("two facts", 2, 0, 2, 0.0, 10, cues=False),
    Stage("three facts, all wordings", 3, 1, 4, 0.1, 20, advance_at=0.7),
    Stage("whole passages", 5, 4, 4, 0.3, 25, advance_at=0.7),
    Stage("whole passages, more of them others'", 5, 4, 4, 0.4, 25, advance_at=2.0),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One passage, one question, its answer; `holds` says whether the passage is the right one."""

    title: str
    text: str
    question: str
    answer: str
    holds: bool


def draw_group(rng: random.Random, size: int) -> tuple[list[Entity], NameMaker]:
    names = NameMaker(rng)
    kind = rng.choices(_KINDS, _KIND_WEIGHTS)[0]
    size = min(size, 5) if kind == "office" else size
    group = draw_namesakes(kind, size, rng, names)
    if kind == "office" and rng.random() < 0.5:
        group = [change_holder(entity, rng, names) for entity in group]
    return group, names


def draw_reading(rng: random.Random, stage: Stage) -> Reading:
    """One example of a stage."""
    group, names = draw_group(rng, 2)
    entity = group[0]
    relation = rng.choice(RELATIONS[entity.kind])
    question = _question(entity, relation, group, rng, stage)
    answer = entity.facts[relation]
    if rng.random() >= stage.beside:
        text = passage_text(entity, relation, rng, names, stage)
        return Reading(entity.title, text, question, answer, True)
    mismatch = rng.choices(tuple(_MISMATCHES), tuple(_MISMATCHES.values()))[0]
    if mismatch == "named after" and entity.kind != "office":
        (article,) = draw_named_after(group, 1, rng)
        return Reading(article.title, article.text, question, answer, False)
    if mismatch == "section":
        text = " ".join(later_section(entity, rng, names)[: 4 + stage.fillers])
        return Reading(entity.title, text, question, answer, False)
    shown = _other(mismatch, entity, group, rng, names)
    text = passage_text(shown, relation, rng, names, stage)
    return Reading(shown.title, text, question, answer, False)


def draw_crowd(rng: random.Random, stage: Stage, size: int) -> list[Reading]:
    """The same question over the passages of `size` namesakes, the right one first."""
    group, names = draw_group(rng, size)
    relation = rng.choice(RELATIONS[group[0].kind])
    question = _question(group[0], relation, group, rng, stage)
    answer = group[0].facts[relation]
    return [
        Reading(e.title, passage_text(e, relation, rng, names, stage), question, answer, i == 0)
        for i, e in enumerate(group)
    ]


def passage_text(entity: Entity, relation: str, rng: random.Random, names: NameMaker, stage: Stage) -> str:
    """A passage that states `relation` and others, up to the stage's length."""
    others = [r for r in RELATIONS[entity.kind] if r != relation]
    n_others = min(
        len(others), rng.randint(max(1, stage.facts - 2), stage.facts - 1) if stage.facts > 1 else 0
    )
    relations = (relation, *rng.sample(others, n_others))
    sentences = article_sentences(
        entity, rng, names, relations, fillers=rng.randint(0, stage.fillers), wordings=stage.wordings
    )
    return " ".join(sentences if stage.opening else sentences[1:])


def draw_denoising(rng: random.Random, stage: Stage, mask: str = "<mask>") -> tuple[str, str]:
    """(noised, whole) text: about 30% of the words under masks, spans of 1-5 words (BART's infilling)."""
    group, names = draw_group(rng, 1)
    entity = group[0]
    relations = tuple(rng.sample(RELATIONS[entity.kind], min(2, stage.facts)))
    sentences = article_sentences(entity, rng, names, relations, fillers=0)
    words = " ".join(sentences if stage.opening else sentences[1:]).split()
    noised, i = [], 0
    while i < len(words):
        if rng.random() < 0.12:
            noised.append(mask)
            i += rng.randint(1, 5)
        else:
            noised.append(words[i])
            i += 1
    return " ".join(noised), " ".join(words)


def sample_texts(seed: int, n: int) -> Iterator[str]:
    """Texts for the tokenizer: passages and questions of `n` entities."""
    rng = random.Random(f"{seed}:tokenizer")
    for _ in range(n):
        reading = draw_reading(rng, CURRICULUM[-2])
        yield f"{reading.title} / {reading.text} // {reading.question}"


def _question(entity: Entity, relation: str, group: list[Entity], rng: random.Random, stage: Stage) -> str:
    cues = choose_cues(entity, group, rng) if stage.cues else ()
    return question_text(entity, relation, cues, rng, stage.wordings)


def _other(
    mismatch: str, entity: Entity, group: list[Entity], rng: random.Random, names: NameMaker
) -> Entity:
    """An entity that the question does not ask about."""
    if mismatch not in ("near", "stranger"):
        return group[1]
    other = draw_entity(entity.kind, rng, names)
    if mismatch == "stranger":
        return other
    name = names.near(entity.name)
    title = make_title(entity.kind, name, entity.sort, entity.year, entity.country)
    return replace(entity, name=name, title=title, facts=other.facts)
