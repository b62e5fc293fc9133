"""Questions with short answers in four flavours, after the paper's four open-domain sets.

plain    one right answer (NaturalQuestions)
aliases  several right answers, the article's own first (TriviaQA)
short    the shortest wording with one cue (WebQuestions)
regex    answers are patterns (CuratedTREC)

A fact is asked for once over all four.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from eval.miniature.facts import Entity
from eval.miniature.phrasing import question_text
from eval.miniature.questions import choose_cues

FLAVOURS = ("plain", "aliases", "short", "regex")

_PEOPLE = ("teacher", "spouse", "creator", "dedicatee", "founder", "holder", "first")
_PLACES = ("birthplace", "premiere", "twin")
_INSTITUTIONS = ("employer", "keeper", "landmark", "seat")  # and buildings: a name and what it is


def qa_rows(groups: Sequence[Sequence[Entity]], seed: int) -> list[dict]:
    """Rows of all flavours, equally many to within one, with a column `set`."""
    rng = random.Random(f"{seed}:qa")
    facts = [(entity, group, relation) for group in groups for entity in group for relation in entity.facts]
    rng.shuffle(facts)
    # Titles of works have no other name: they are dealt last, to the other flavours.
    facts.sort(key=lambda fact: fact[2] == "work")
    size, more = divmod(len(facts), len(FLAVOURS))
    rows = []
    at = 0
    for i, flavour in enumerate(("aliases", "plain", "short", "regex")):
        n = size + (i < more)
        rows += [_row(flavour, *fact, rng) for fact in facts[at : at + n]]
        at += n
    rng.shuffle(rows)
    return rows


def _row(flavour: str, entity: Entity, group: Sequence[Entity], relation: str, rng: random.Random) -> dict:
    answer = entity.facts[relation]
    answers = {"aliases": aliases, "regex": patterns}.get(flavour, lambda _, a: [a])(relation, answer)
    cues = ("sort",) if flavour == "short" else choose_cues(entity, group, rng)
    wordings = 1 if flavour == "short" else 99
    return {
        "question_id": f"qa-{flavour}-{entity.page_id}-{relation}",
        "question": question_text(entity, relation, cues, rng, wordings),
        "answers": answers,
        "answer_kind": "regex" if flavour == "regex" else "text",
        "gold_pages": [str(entity.page_id)],
        "set": flavour,
        "kind": entity.kind,
        "relation": relation,
    }


def aliases(relation: str, answer: str) -> list[str]:
    """Right answers for a fact, the article's own first."""
    if relation in _PEOPLE:
        given, family = answer.split(" ")
        return [answer, f"{family}, {given}", f"{given[0]}. {family}", family]
    if relation in _PLACES:
        return [answer, f"the place {answer}"]
    if relation in _INSTITUTIONS:
        name, what = answer.split(" ")
        return [answer, f"{what} of {name}"]
    if relation == "river":
        return [answer, f"{answer} River", f"River {answer}"]
    raise ValueError(f"relation {relation!r}: its answers have one name only")


def patterns(relation: str, answer: str) -> list[str]:
    """The same as regular expressions."""
    if relation in _PEOPLE:
        given, family = answer.split(" ")
        return [f"({given} )?{family}"]
    if relation in _INSTITUTIONS:
        name, what = answer.split(" ")
        return [f"{name} {what}", f"{what} of {name}"]
    if relation == "river":
        return [f"(River )?{answer}( River)?"]
    for article in ("The ", "A "):
        if answer.startswith(article):
            return [f"({article})?{answer.removeprefix(article)}"]
    return [answer]
