"""What the ranking metrics share: rankings and their gold, as hits and evidence sets.

A ranking is a list of ids, best first, or a KILT record (the pages of its first output). Gold is a list of
ids, a list of evidence sets, or a KILT record (a set of pages for each output with a provenance).
Ids are compared as texts without outer white space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from numbers import Integral
from typing import Any

from eval.metrics.base import is_missing, listed, shown


def hits_of(ranking: Any, gold: Any) -> list[bool]:
    """Per rank, whether it is a hit: the 0/1 values themselves without gold, else membership in any set."""
    if gold is None:
        hits = listed(ranking, "ranking without references")
        bad = [hit for hit in hits if isinstance(hit, str) or is_missing(hit) or hit not in (0, 1)]
        if bad:
            raise ValueError(f"ranking without references: expected 0/1 hits, found {shown(bad[0])}")
        return [bool(hit) for hit in hits]
    wanted = {member for group in gold_sets(gold) for member in group}
    return [name in wanted for name in _ids(ranking)]


def ranked_ids(ranking: Any) -> list[str]:
    """The ranking as texts, each id at its first rank only."""
    return list(dict.fromkeys(_ids(ranking)))


def _ids(ranking: Any) -> list[str]:
    if isinstance(ranking, Mapping):
        return _pages(ranking)
    return [_id(item) for item in listed(ranking, "ranking")]


def _id(item: Any) -> str:
    """An id as a text. ValueError for what is none: a number with a fraction, a truth value, null."""
    if isinstance(item, bool) or not isinstance(item, str | Integral):
        raise ValueError(f"id {shown(item)}: expected text or an integer")
    return str(item).strip()


def gold_sets(gold: Any, each_alone: bool = False) -> list[list[str]]:
    """Gold as evidence sets, equal ones once.

    A plain list of ids is one set, or with `each_alone` a set for each id.
    """
    if isinstance(gold, Mapping):
        groups: list[Any] = [
            [_page(item) for item in listed(output["provenance"], "provenance")]
            for output in outputs_of(gold)
            if output.get("provenance") is not None
        ] or [[]]
    elif isinstance(gold, AbstractSet):
        groups = [[item] for item in gold] if each_alone else [gold]
    else:
        groups = listed(gold, "gold (ids or evidence sets)")
        if all(isinstance(item, str | Integral) for item in groups):
            groups = [[item] for item in groups] if each_alone else [groups]
    sets: list[list[str]] = []
    for group in groups:
        items = sorted(group, key=str) if isinstance(group, AbstractSet) else listed(group, "evidence set")
        members = list(dict.fromkeys(map(_id, items)))
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


def outputs_of(record: Any) -> list[Mapping[str, Any]]:
    """The outputs of a KILT record. ValueError where it is not one."""
    if not isinstance(record, Mapping):
        raise ValueError(f"{shown(record)}: expected a row of KILT's files, with 'output'")
    outputs = record.get("output")
    if not isinstance(outputs, list | tuple) or not all(isinstance(o, Mapping) for o in outputs):
        raise ValueError(f"output {shown(outputs)}: expected a list of objects with answer and provenance")
    return list(outputs)


def _pages(record: Mapping[str, Any]) -> list[str]:
    outputs = outputs_of(record) or [{}]
    return [_page(item) for item in listed(outputs[0].get("provenance") or (), "provenance")]


def _page(item: Any) -> str:
    if not isinstance(item, Mapping) or "wikipedia_id" not in item:
        raise ValueError(f"provenance {shown(item)}: expected an object with 'wikipedia_id'")
    return _id(item["wikipedia_id"])
