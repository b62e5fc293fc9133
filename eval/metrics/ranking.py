"""What the ranking metrics share: rankings and their gold, as hits and evidence sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def hits_of(ranking: Sequence[Any], gold: Sequence[Any] | None) -> list[bool]:
    """Per rank, whether it is a hit: the 0/1 values themselves without gold, else membership.

    Gold is a list of ids, or of evidence sets (lists of ids), of which any member is a hit.
    """
    if gold is None:
        bad = [hit for hit in ranking if hit not in (0, 1)]
        if bad:
            raise ValueError(f"ranking without references: expected 0/1 hits, found {bad[0]!r}")
        return [bool(hit) for hit in ranking]
    wanted = {member for group in evidence_sets(gold) for member in group}
    return [str(item).strip() in wanted for item in ranking]


def evidence_sets(gold: Sequence[Any]) -> list[list[str]]:
    """Gold as evidence sets: a list of ids is one set, a list of lists is several (equal ones once).

    Ids are compared as texts without outer white space.
    """
    if isinstance(gold, str):
        raise ValueError(f"gold {gold!r}: expected a list of ids or of evidence sets")
    nested = any(isinstance(item, list | tuple | set | frozenset) for item in gold)
    groups: list[list[str]] = []
    for group in gold if nested else [gold]:
        members = [str(item).strip() for item in group]
        members = list(dict.fromkeys(members))
        if not any(set(members) == set(other) for other in groups):
            groups.append(members)
    return groups


def unique(ranking: Sequence[Any]) -> list[str]:
    """The ranking as texts, each id at its first rank only (KILT removes repeated pages so)."""
    return list(dict.fromkeys(str(item).strip() for item in ranking))
