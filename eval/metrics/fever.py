"""What FEVER's metrics share: rows of its own files, read without being changed.

A gold row has `label` and `evidence` (groups of `[annotation, id, page, line]`), a prediction
`predicted_label` and `predicted_evidence` (`[page, line]`, best first). A row that holds both serves as its
own gold. Labels compare in upper case, untrimmed; pages by their canonical titles (bracket escapes,
underscores, NFC). Whoever predicted no sentence says so by an empty list; a row without
`predicted_evidence` says nothing about evidence and has no score for it, as in the official scorer, which
stops there. Source: sheffieldnlp/fever-scorer `src/fever/scorer.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from numbers import Integral
from typing import Any

from eval.metrics.base import is_missing, listed, shown
from rag_core.datasets.fever import canonical_title, evidence_groups

UNVERIFIABLE = "NOT ENOUGH INFO"
MAX_EVIDENCE = 5
Sentence = tuple[str | None, int | None]


def label_of(row: Any, key: str) -> str:
    """The label of a row, or the row itself when it is one; in upper case."""
    if isinstance(row, Mapping):
        row = _field(row, key)
    if not isinstance(row, str):
        raise ValueError(f"{key} {shown(row)}: expected text")
    return row.upper()


def is_missing_label(prediction: Any) -> bool:
    """No row, or a row whose label is null."""
    return is_missing(
        prediction.get("predicted_label", "") if isinstance(prediction, Mapping) else prediction
    )


def gold_groups(reference: Any) -> list[list[Sentence]]:
    """The evidence groups of a gold row as (page, line). ValueError where it holds none, or another shape."""
    groups = evidence_groups(listed(_field(_row(reference, "evidence"), "evidence"), "evidence"))
    return [[(_page(page), line) for page, line in group] for group in groups]


def predicted_sentences(prediction: Any, max_evidence: int | None) -> list[Sentence]:
    """The first `max_evidence` predicted sentences. ValueError where one is not [text, integer]."""
    given = _field(_row(prediction, "predicted_evidence"), "predicted_evidence")
    sentences = []
    for item in listed(given, "predicted evidence"):
        try:
            page, line = listed(item, "")
        except ValueError:
            page, line = None, None
        if not isinstance(page, str) or isinstance(line, bool) or not isinstance(line, Integral):
            raise ValueError(f"predicted evidence {shown(item)}: expected [page, line]")
        sentences.append((_page(page), int(line)))
    return sentences[:max_evidence]


def check_limit(max_evidence: int | None) -> None:
    if max_evidence is not None and max_evidence < 1:
        raise ValueError(f"max_evidence={max_evidence}: must be at least 1")


def _row(row: Any, key: str) -> Mapping[str, Any]:
    if not isinstance(row, Mapping):
        raise ValueError(f"{shown(row)}: expected a row of FEVER's files with {key!r}")
    return row


def _field(row: Mapping[str, Any], key: str) -> Any:
    if row.get(key) is None:
        raise ValueError(
            f"{key!r} is null" if key in row else f"no {key!r} (found {', '.join(map(str, row))})"
        )
    return row[key]


def _page(title: str | None) -> str | None:
    return None if title is None else _canonical(title)


_canonical = functools.lru_cache(maxsize=1 << 16)(canonical_title)


def is_complete(groups: list[list[Sentence]], sentences: list[Sentence]) -> bool:
    """Whether all of some gold group was predicted."""
    return any(all(sentence in sentences for sentence in group) for group in groups)
