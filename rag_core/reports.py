"""The shape of parts' reports and of manifests: what was cut or edited since is not taken for one."""

from __future__ import annotations

import math
from typing import Any

from rag_core.digest import digest_of


def is_manifest(value: Any) -> bool:
    """Whether a value read from a `_manifest.json` has the shape that runs write."""
    if not isinstance(value, dict) or not isinstance(value.get("parts"), list):
        return False
    texts = all(isinstance(value.get(key), str) for key in ("job", "content_digest"))
    return (
        texts
        and _is_count(value.get("rows"))
        and all(
            isinstance(part, dict) and is_report({"rows": 0, "row_digest": "", **part})
            for part in value["parts"]
        )
    )


def adds_up(manifest: dict[str, Any]) -> bool:
    """Whether no part is missing or doubled: totals as `build_manifest` makes them.

    The manifest of a checkpoint has no parts, and one that was written by hand may have no digests.
    """
    parts = manifest["parts"]
    if not all({"rows", "row_digest"} <= part.keys() for part in parts) or not parts:
        return True
    return (
        manifest["rows"] == sum(part["rows"] for part in parts)
        and manifest["content_digest"] == digest_of([part["row_digest"] for part in parts])
        and len({part["name"] for part in parts}) == len(parts)
    )


def is_report(value: Any) -> bool:
    """Whether a part's report, or its entry in a manifest, has the shape that workers write."""
    if not isinstance(value, dict):
        return False
    seconds, states = value.get("seconds", 0.0), value.get("files", {})
    return (
        isinstance(value.get("name"), str)
        and isinstance(value.get("row_digest"), str)
        and _is_count(value.get("rows"))
        and isinstance(states, dict)
        and all(
            isinstance(state, dict) and _is_count(state.get("bytes")) for state in (value, *states.values())
        )
        and isinstance(seconds, int | float)
        and math.isfinite(seconds)
        and _are_counts(value.get("counts", {"read": 0, "written": 0, "skipped": {}, "dead_lettered": {}}))
    )


def _are_counts(value: Any) -> bool:
    """`read` and `written`, and by reason `skipped` and `dead_lettered`; a stage may add its own."""
    if not isinstance(value, dict) or not {"read", "written", "skipped", "dead_lettered"} <= value.keys():
        return False
    reasons = [n for by_reason in value.values() if isinstance(by_reason, dict) for n in by_reason.values()]
    numbers = [n for n in value.values() if not isinstance(n, dict)]
    return isinstance(value["skipped"], dict) and all(map(_is_count, (*numbers, *reasons)))


def _is_count(value: Any) -> bool:
    """A number of rows or bytes: NaN, a text, `true` and what is negative are none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
