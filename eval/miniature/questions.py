"""Questions about the world's entities, as records of the "custom" format."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from eval.miniature.facts import RELATIONS, Entity
from eval.miniature.phrasing import question_text

_CUES = ("sort", "decade", "country")


def choose_cues(entity: Entity, namesakes: Sequence[Entity], rng: random.Random) -> tuple[str, ...]:
    """Two attributes (three if need be) that no other of `namesakes` shares with `entity`."""
    if entity.kind == "office":
        return ("sort",)
    pairs = list(itertools.combinations(_CUES, 2))
    rng.shuffle(pairs)
    for cues in (*pairs, _CUES):
        if not any(_same(entity, other, cues) for other in namesakes if other is not entity):
            return cues
    raise ValueError(f"{entity.title!r}: no cue tells it apart from its {len(namesakes)} namesakes")


def ask(
    entity: Entity, relation: str, namesakes: Sequence[Entity], rng: random.Random, question_id: str
) -> dict:
    """One question with its answer and the page that holds it."""
    return {
        "question_id": question_id,
        "question": question_text(entity, relation, choose_cues(entity, namesakes, rng), rng),
        "answers": [entity.facts[relation]],
        "answer_kind": "text",
        "gold_pages": [str(entity.page_id)],
    }


def ask_group(
    group: Sequence[Entity], per_entity: int, rng: random.Random, prefix: str, per_fact: int = 1
) -> list[dict]:
    """Questions about every entity of a group of namesakes, at most `per_entity` of its facts, each
    asked `per_fact` times (in words drawn afresh)."""
    rows = []
    for entity in group:
        relations = RELATIONS[entity.kind]
        for relation in rng.sample(relations, min(per_entity, len(relations))):
            for time in range(per_fact):
                question_id = f"{prefix}-{entity.page_id}-{relation}" + (f"-{time + 1}" if time else "")
                rows.append(ask(entity, relation, group, rng, question_id))
    return rows


def _same(a: Entity, b: Entity, cues: tuple[str, ...]) -> bool:
    return all(getattr(a, cue) == getattr(b, cue) for cue in cues)
