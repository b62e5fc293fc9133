"""Counting into whatever mapping a caller hands over: a `Counter`, or a plain dict."""

from __future__ import annotations

from collections.abc import MutableMapping


def add_one(counts: MutableMapping[str, int], key: str) -> None:
    """One more under this key."""
    counts[key] = counts.get(key, 0) + 1
