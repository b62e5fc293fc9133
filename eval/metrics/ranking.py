"""What the ranking metrics share: rankings and their gold, as hits and evidence sets.

A ranking is a list of ids, best first, or a KILT record (the pages of its first output). Gold is a list of
ids, a list of evidence sets, or a KILT record (a set of pages for each output with a provenance).
Ids are compared as texts without outer white space.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def hits_of(ranking: Any, gold: Any) -> list[bool]:
    """Per rank, whether it is a hit: the 0/1 values themselves without gold, else membership in any set."""
    if gold is None:
        bad = [hit for hit in ranking if hit not in (0, 1)]
        if bad:
            raise ValueError(f"ranking without references: expected 0/1 hits, found {bad[0]!r}")
        return [bool(hit) for hit in ranking]
    wanted = {member for group in gold_sets(gold) for member in group}
    ids = _pages(ranking) if isinstance(ranking, dict) else ranking
    return [str(item).strip() in wanted for item in ids]


def ranked_ids(ranking: Any) -> list[str]:
    """The ranking as texts, each id at its first rank only."""
    ids = _pages(ranking) if isinstance(ranking, dict) else ranking
    if isinstance(ids, str):
        raise ValueError(f"ranking {ids!r}: expected a list of ids")
    return list(dict.fromkeys(str(item).strip() for item in ids))


def gold_sets(gold: Any, each_alone: bool = False) -> list[list[str]]:
    """Gold as evidence sets, equal ones once.

    A plain list of ids is one set, or with `each_alone` a set for each id.
    """
    if isinstance(gold, dict):
        groups = [o["provenance"] for o in gold["output"] if o.get("provenance") is not None]
        gold = [[item["wikipedia_id"] for item in group] for group in groups] or [[]]
    elif isinstance(gold, str) or gold is None:
        raise ValueError(f"gold {gold!r}: expected a list of ids or of evidence sets")
    elif not any(isinstance(item, list | tuple | set | frozenset) for item in gold):
        gold = [[item] for item in gold] if each_alone else [gold]
    sets: list[list[str]] = []
    for group in gold:
        members = list(dict.fromkeys(str(item).strip() for item in group))
        if not any(set(members) == set(other) for other in sets):
            sets.append(members)
    return sets


def set_ranking(ranking: Any, sets: Sequence[Sequence[str]]) -> list[bool]:
    """The ranking with each evidence set as one point, at its last page; True where a set is complete.

    A page outside all sets is a point by itself; the earlier pages of a set that is not yet complete
    hold a place until its next page comes.
    """
    waiting = [set(group) for group in sets]
    points: list[bool | int] = []  # an integer: the set of that number, so far incomplete
    for page in ranked_ids(ranking):
        inside = [i for i, group in enumerate(waiting) if page in group]
        for i in inside:
            points = [p for p in points if p is True or p is False or p != i]
            waiting[i].discard(page)
            points.append(i if waiting[i] else True)
        if not inside:
            points.append(False)
    return [point is True for point in points]


def _pages(record: dict[str, Any]) -> list[str]:
    outputs = record.get("output") or [{}]
    return [item["wikipedia_id"] for item in outputs[0].get("provenance") or ()]
