"""Clue generation (Jeopardy's kind): an entity's title is given, a clue to it is wanted.

A clue says the country, the sort and the first two facts that the article states. In the column
`passages`, "two" marks the entities whose two facts stand in different passages of the article.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from eval.miniature.facts import Entity
from eval.miniature.statements import clue_text


def clue_rows(groups: Sequence[Sequence[Entity]], seed: int, prefix: str) -> list[dict]:
    """One row an entity; both wordings are references, the first is trained."""
    rows = [
        {
            "question_id": f"{prefix}-{entity.page_id}",
            "question": entity.title,
            "answers": [clue_text(entity, list(entity.facts)[:2], wording) for wording in (0, 1)],
            "answer_kind": "text",
            "gold_pages": [str(entity.page_id)],
            "passages": "two" if entity.later else "one",
            "kind": entity.kind,
        }
        for group in groups
        for entity in group
    ]
    random.Random(f"{seed}:{prefix}").shuffle(rows)
    return rows
