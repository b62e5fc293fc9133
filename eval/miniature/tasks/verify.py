"""Fact verification (FEVER's kind): a claim is supported, refuted or left open by an article.

Every entity whose article withholds a fact gets one claim of each label, so that labels are balanced
over entities and relations, and nothing but the article tells them apart: what is claimed wrongly, or
of the withheld fact, is the same relation's answer for another entity of the split.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from eval.miniature.facts import Entity
from eval.miniature.questions import choose_cues
from eval.miniature.statements import LABELS, claim_text
from eval.miniature.tasks.articles import claimable, withheld

SUPPORTS, REFUTES, NOT_ENOUGH_INFO = LABELS


def claim_rows(groups: Sequence[Sequence[Entity]], seed: int, prefix: str) -> list[dict]:
    """Three claims for every entity that withholds a fact, gold page included, in random order.

    Where a split is so small that no other entity has an answer to claim wrongly, the entity has none.
    """
    rng = random.Random(f"{seed}:{prefix}")
    answers: dict[str, list[str]] = {}
    for group in groups:
        for entity in group:
            for relation, answer in entity.facts.items():
                answers.setdefault(relation, []).append(answer)
    rows = []
    for group in groups:
        for entity in group:
            for missing in withheld(entity):
                rows += _three(entity, missing, group, answers, rng, prefix)
    rng.shuffle(rows)
    return rows


def two_way(rows: Sequence[dict]) -> list[dict]:
    """The claims that are supported or refuted."""
    return [row for row in rows if row["answers"] != [NOT_ENOUGH_INFO]]


def _three(
    entity: Entity,
    missing: str,
    group: Sequence[Entity],
    answers: dict[str, list[str]],
    rng: random.Random,
    prefix: str,
) -> list[dict]:
    """One claim of each label; none where one of them cannot be made."""
    stated = [relation for relation in claimable(entity) if relation in entity.facts]
    rows = []
    for label in LABELS:
        relation = missing if label == NOT_ENOUGH_INFO else rng.choice(stated)
        true = entity.facts.get(relation)
        others = [answer for answer in answers.get(relation, ()) if answer != true]
        if label != SUPPORTS and not others:
            return []
        claimed = true if label == SUPPORTS else rng.choice(others)
        cues = choose_cues(entity, group, rng)
        rows.append({
            "question_id": f"{prefix}-{entity.page_id}-{label.split()[0].lower()}",
            "question": claim_text(entity, relation, claimed, cues, rng),
            "answers": [label],
            "answer_kind": "label",
            "gold_pages": [str(entity.page_id)],
            "kind": entity.kind,
            "relation": relation,
        })  # fmt: skip
    return rows
