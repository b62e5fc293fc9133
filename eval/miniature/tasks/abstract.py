"""Questions whose answers are whole sentences (MS MARCO's kind)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from eval.miniature.facts import Entity
from eval.miniature.phrasing import question_text
from eval.miniature.questions import choose_cues
from eval.miniature.statements import SENTENCE_PREFIX, sentence_answer


def abstract_rows(groups: Sequence[Sequence[Entity]], seed: int, per_entity: int, prefix: str) -> list[dict]:
    """For every entity some facts asked for in a sentence; both wordings are right, the first is trained."""
    rng = random.Random(f"{seed}:{prefix}")
    rows = []
    for group in groups:
        for entity in group:
            for relation in rng.sample(list(entity.facts), min(per_entity, len(entity.facts))):
                cues = choose_cues(entity, group, rng)
                rows.append({
                    "question_id": f"{prefix}-{entity.page_id}-{relation}",
                    "question": SENTENCE_PREFIX + question_text(entity, relation, cues, rng),
                    "answers": [sentence_answer(entity, relation, wording) for wording in (0, 1)],
                    "answer_kind": "text",
                    "gold_pages": [str(entity.page_id)],
                    "kind": entity.kind,
                    "relation": relation,
                })  # fmt: skip
    rng.shuffle(rows)
    return rows
