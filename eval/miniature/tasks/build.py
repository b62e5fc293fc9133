"""From a world to the same world with tasks: its articles reshaped, and its sets of questions added.

    tasks/qa.test         four flavours of questions with short answers, column `set`
    tasks/abstract.test   answers in whole sentences
    tasks/clue.test       clues from titles, column `passages`
    tasks/fever3.test     claims with three labels; tasks/fever2.test: two of them
    tasks/train           one mixture of every form about the train split; tasks/dev: of the dev split

All draw from random streams of their own.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eval.miniature.facts import Entity
from eval.miniature.questions import ask
from eval.miniature.tasks.abstract import abstract_rows
from eval.miniature.tasks.articles import reshape
from eval.miniature.tasks.clue import clue_rows
from eval.miniature.tasks.qa import qa_rows
from eval.miniature.tasks.verify import claim_rows, two_way

if TYPE_CHECKING:
    from eval.miniature.world import World

ABSTRACT_PER_ENTITY = {"train": 2, "dev": 1, "test": 1}
Groups = Sequence[Sequence[Entity]]


def with_tasks(world: World) -> World:
    """The world with reshaped articles; questions about withheld facts are left out of its own sets."""
    groups = [(split, [reshape(entity, world.seed) for entity in group]) for split, group in world.groups]
    now = {entity.page_id: entity for _, group in groups for entity in group}
    changed = {
        page_id: replace(office, later=now[page_id].later, facts=_kept(office, now[page_id]))
        for page_id, office in world.changed.items()
    }
    questions = {
        name: [row for row in rows if name.startswith("leaders") or _is_stated(row, now)]
        for name, rows in world.questions.items()
    }
    of_split = {
        name: [g for split, g in groups if split == name] for name in ("train", "dev", "test", "leaders")
    }
    return replace(
        world, groups=groups, changed=changed, questions={**questions, **_sets(of_split, world.seed)}
    )


def _kept(office: Entity, now: Entity) -> dict[str, str]:
    return {relation: answer for relation, answer in office.facts.items() if relation in now.facts}


def _is_stated(row: dict, entities: dict[int, Entity]) -> bool:
    return row["answers"][0] in entities[int(row["gold_pages"][0])].facts.values()


def _sets(of_split: dict[str, Groups], seed: int) -> dict[str, list[dict]]:
    test, unseen = of_split["test"], [*of_split["test"], *of_split["leaders"]]
    claims = claim_rows(test, seed, "fever")
    return {
        "tasks/qa.test": qa_rows(test, seed),
        "tasks/abstract.test": abstract_rows(test, seed, ABSTRACT_PER_ENTITY["test"], "abstract"),
        "tasks/clue.test": clue_rows(unseen, seed, "clue"),
        "tasks/fever3.test": claims,
        "tasks/fever2.test": two_way(claims),
        **{f"tasks/{name}": mixture(of_split[name], seed, name) for name in ("train", "dev")},
    }


def mixture(groups: Groups, seed: int, split: str) -> list[dict]:
    """Every form about these entities, in random order; column `form`: qa, abstract, clue, claim.

    Every stated fact is asked for once in a question; an entity has two questions for a sentence, a clue and,
    where its article withholds a fact, three claims.
    """
    rng = random.Random(f"{seed}:mixture:{split}")
    asked = [
        {**ask(entity, relation, group, rng, f"{split}-qa-{entity.page_id}-{relation}"), "form": "qa"}
        for group in groups
        for entity in group
        for relation in entity.facts
    ]
    others = {
        "abstract": abstract_rows(groups, seed, ABSTRACT_PER_ENTITY[split], f"{split}-abstract"),
        "clue": clue_rows(groups, seed, f"{split}-clue"),
        "claim": claim_rows(groups, seed, f"{split}-fever"),
    }
    keys = ("question_id", "question", "answers", "answer_kind", "gold_pages")
    rows = asked + [
        {**{key: row[key] for key in keys}, "form": form} for form, found in others.items() for row in found
    ]
    rng.shuffle(rows)
    return rows
