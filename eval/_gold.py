"""Gold passages and pages that the corpus does not hold: no retriever could have found them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_core.datasets.fever import canonical_title
from rag_core.schemas import Question
from rag_core.stages import iter_batches


def page_of(passage_id: str) -> str:
    """The page part of `{page_id}:{ordinal}`; the id itself where it has no such form."""
    page, colon, ordinal = passage_id.rpartition(":")
    return page if colon and ordinal.isdigit() else passage_id


def absent_gold(questions: Sequence[Question], passages: str) -> dict[str, Any]:
    """Gold ids missing from a passages run: counts and the first twenty, apart for passages and pages.

    A gold page is there when a passage has its page id or its canonical title.
    """
    wanted = {i for q in questions for i in q.gold_passages or ()}
    pages = {p: canonical_title(p) for q in questions for p in q.gold_pages or ()}
    seen_titles: set[str] = set()
    if wanted or pages:
        titles = set(pages.values())
        for batch in iter_batches(passages, ["passage_id", "title"]):
            ids = batch.column("passage_id").to_pylist()
            wanted.difference_update(ids)
            if pages:
                here = set(map(canonical_title, set(batch.column("title").to_pylist())))
                seen_titles |= titles & here
                for page in {page_of(i) for i in ids} & pages.keys():
                    del pages[page]
    lost = sorted(page for page, title in pages.items() if title not in seen_titles)
    return {
        "gold_passages_absent": len(wanted),
        "gold_pages_absent": len(lost),
        "first_absent": [*sorted(wanted)[:20], *lost[:20]],
    }
