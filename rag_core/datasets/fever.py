"""`fever3` and `fever2`: FEVER's JSON lines (`id`, `claim`, `label`, `evidence`).

The claim is the question, the label the answer (`answer_kind` label). `evidence` holds the gold
groups as (page, line); an annotation without a page (unverifiable claims) stays null, which is not
an empty page, and a claim whose row has no `evidence` has none, which is not an empty list.
`gold_pages` are the pages of all groups by their canonical titles; a claim that names no page has
none. `fever2` leaves out the claims labelled NOT ENOUGH INFO (Thorne and Vlachos 2020; Lewis et al.
2020, section 3.4).
"""

from __future__ import annotations

import unicodedata
from numbers import Integral
from typing import Any

from rag_core.datasets.records import Collector

LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-COLON-": ":"}


def canonical_title(title: str) -> str:
    """One spelling for a page title: bracket escapes undone, underscores as spaces, NFC.

    `Beyonce_-LRB-album-RRB-` and `Beyonce (album)` are the same page, whichever Unicode form the
    accents have. Apply it to both sides of a comparison.
    """
    for escape, character in _BRACKETS.items():
        title = title.replace(escape, character)
    return " ".join(unicodedata.normalize("NFC", title.replace("_", " ")).split())


def read(collector: Collector) -> None:
    source = collector.source
    for line, row in source.json_lines():
        if "claim" not in row:
            raise source.error(line, f"no 'claim' (found {', '.join(row)})")
        label = row.get("label") or ""
        if label and label.upper() not in LABELS:
            raise source.error(line, f"label {label!r}: expected one of {', '.join(LABELS)}")
        if source.task == "fever2" and label.upper() == LABELS[2]:
            collector.reject(line, "NOT ENOUGH INFO is left out of the 2-way task")
            continue
        try:
            evidence = None if row.get("evidence") is None else evidence_groups(row["evidence"])
        except (TypeError, ValueError) as error:
            raise source.error(line, f"evidence: {error}") from None
        pages = dict.fromkeys(
            canonical_title(page) for group in evidence or () for page, _ in group if page is not None
        )
        collector.add(
            line,
            row.get("id"),
            row["claim"],
            [label] if label else [],
            answer_kind="label",
            gold_pages=tuple(pages) or None,
            evidence=evidence,
        )


def evidence_groups(evidence: Any) -> tuple[tuple[tuple[str | None, int | None], ...], ...]:
    """FEVER's `[[[annotation, id, page, line], …], …]` as groups of (page, line).

    Raises ValueError on another shape, with the offending value; a line is an integer, never its text.
    """
    groups = []
    for group in _listed(evidence, f"{evidence!r}: expected a list of groups"):
        members = []
        for item in _listed(group, f"group {group!r}: expected a list of annotations"):
            wanted = f"{item!r}: expected [annotation, id, page, line]"
            cells = _listed(item, wanted)
            if len(cells) < 2:
                raise ValueError(wanted)
            members.append(page_line(cells[-2:]))
        groups.append(tuple(members))
    return tuple(groups)


def page_line(item: Any) -> tuple[str | None, int | None]:
    """`[page, line]` or `{page, line}` as a pair; ValueError unless a text and an integer, or null."""
    page, line = (item.get("page"), item.get("line")) if isinstance(item, dict) else item
    if not isinstance(page, str | None) or isinstance(line, bool) or not isinstance(line, Integral | None):
        raise ValueError(f"{item!r}: page must be text or null, line an integer or null")
    return page, None if line is None else int(line)


def _listed(value: Any, message: str) -> list[Any]:
    """A list, tuple or array (as pandas makes them) as a list."""
    if not isinstance(value, list | tuple) and not hasattr(value, "tolist"):
        raise ValueError(message)
    return list(value)
