"""Facts as statements: claims to verify, answers in whole sentences, clues to an entity.

A statement is a subject and a predicate. Predicates are worded apart from the sentences of articles,
in two ways each; {a} is the answer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from eval.miniature.facts import COUNTRIES, Entity
from eval.miniature.phrasing import subject_phrase
from eval.miniature.wordings import SORT_WORDS

LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")
SENTENCE_PREFIX = "In a full sentence: "  # before a question that is to be answered in one

PREDICATES: dict[str, tuple[str, str]] = {
    "birthplace": ("was born in {a}", "came from {a}"),
    "teacher": ("studied under {a}", "was taught by {a}"),
    "spouse": ("was married to {a}", "was the spouse of {a}"),
    "work": ("is famous for {a}", "is best known for {a}"),
    "employer": ("worked at {a}", "was employed by {a}"),
    "creator": ("was created by {a}", "is the work of {a}"),
    "dedicatee": ("is dedicated to {a}", "was made in honour of {a}"),
    "premiere": ("was first shown in {a}", "had its debut in {a}"),
    "keeper": ("is kept at {a}", "is owned by {a}"),
    "river": ("lies on the {a}", "stands by the {a}"),
    "founder": ("was founded by {a}", "was established by {a}"),
    "twin": ("is twinned with {a}", "is the partner of {a}"),
    "landmark": ("is known for {a}", "has its chief sight in {a}"),
    "holder": ("is held by {a}", "has been given to {a}"),
    "seat": ("is housed in {a}", "has its rooms in {a}"),
    "first": ("was first held by {a}", "began with {a}"),
}


def predicate(relation: str, answer: str, wording: int = 0) -> str:
    """What is said of the bearer, without it: "was born in Tessen"."""
    return PREDICATES[relation][wording].format(a=answer)


def claim_text(
    entity: Entity, relation: str, answer: str, cues: tuple[str, ...], rng: random.Random, wordings: int = 2
) -> str:
    """A claim that gives `answer` for a fact; the entity is called as a question calls it."""
    if entity.kind == "office":
        subject = f"the office of {rng.choice(SORT_WORDS[entity.sort][1])} of {entity.name}"
    else:
        subject = subject_phrase(entity, cues, rng)
        if "," in subject:
            subject += ","
    return _sentence(subject, predicate(relation, answer, rng.randrange(wordings)))


def sentence_answer(entity: Entity, relation: str, wording: int = 0) -> str:
    """The fact as an answer in a whole sentence: "Mara Kolven was born in Tessen."."""
    subject = f"the office of {entity.sort} of {entity.name}" if entity.kind == "office" else entity.name
    return _sentence(subject, predicate(relation, entity.facts[relation], wording))


def clue_text(entity: Entity, relations: Sequence[str], wording: int = 0) -> str:
    """A clue to the entity by its country, its sort and some facts; its name is not in it."""
    office = entity.kind == "office"
    subject = f"this {COUNTRIES[entity.country]} {'office of ' * office}{entity.sort}"
    said = [predicate(relation, entity.facts[relation], wording) for relation in relations]
    return _sentence(subject, " and ".join(said))


def _sentence(subject: str, said: str) -> str:
    return f"{subject[0].upper()}{subject[1:]} {said}."
