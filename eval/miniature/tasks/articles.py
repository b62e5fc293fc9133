"""The articles that the tasks need: some withhold a fact, others say their facts in two passages.

Claims are about articles that withhold one fact (a claim about it is NOT ENOUGH INFO); clues of two
passages are about the others. Each entity's fate depends on the seed and its page id alone.
"""

from __future__ import annotations

import random
from dataclasses import replace

from eval.miniature.facts import RELATIONS, Entity

TWO_PASSAGES = 0.53  # share of the articles whose facts stand in two passages
ALWAYS_STATED = ("holder",)  # the exchange of the index asks for it


def reshape(entity: Entity, seed: int) -> Entity:
    """The entity with one fact withheld, or with `later`: the facts of its second passage.

    The first two facts, which clues are made of, stand in different passages.
    """
    rng = random.Random(f"{seed}:reshape:{entity.page_id}")
    relations = RELATIONS[entity.kind]
    if rng.random() < TWO_PASSAGES:
        early, late, *others = relations
        later = {late, *(relation for relation in others if rng.random() < 0.5)}
        return replace(entity, later=tuple(r for r in relations if r in later))
    missing = rng.choice(claimable(entity))
    return replace(entity, facts={r: answer for r, answer in entity.facts.items() if r != missing})


def claimable(entity: Entity) -> tuple[str, ...]:
    """The relations that claims are about: those that an article may withhold."""
    return tuple(r for r in RELATIONS[entity.kind] if r not in ALWAYS_STATED)


def withheld(entity: Entity) -> tuple[str, ...]:
    """The relations that the entity's article says nothing about."""
    return tuple(r for r in RELATIONS[entity.kind] if r not in entity.facts)
