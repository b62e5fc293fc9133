"""What FEVER's metrics share: rows of its own files, read without being changed.

A gold row has `label` and `evidence` (groups of `[annotation, id, page, line]`), a prediction
`predicted_label` and `predicted_evidence` (`[page, line]`, best first). A row that holds both serves as its
own gold. Labels compare in upper case, pages by their canonical titles (bracket escapes, underscores,
NFC). Source: sheffieldnlp/fever-scorer `src/fever/scorer.py`.
"""

from __future__ import annotations

import functools
from typing import Any

from eval.metrics.base import is_missing
from rag_core.datasets.fever import canonical_title

UNVERIFIABLE = "NOT ENOUGH INFO"
MAX_EVIDENCE = 5
Sentence = tuple[str | None, int | None]


def label_of(row: Any, key: str) -> str:
    """The label of a row, or the row itself when it is one; in upper case."""
    if isinstance(row, dict):
        if key not in row:
            raise ValueError(f"no {key!r} (found {', '.join(row)})")
        row = row[key]
    if not isinstance(row, str):
        raise ValueError(f"{key} {row!r}: expected text")
    return row.strip().upper()


def is_missing_label(prediction: Any) -> bool:
    """No row, or a row whose label is null."""
    return is_missing(prediction.get("predicted_label", "") if isinstance(prediction, dict) else prediction)


def gold_groups(reference: dict[str, Any]) -> list[list[Sentence]]:
    """The evidence groups of a gold row as (page, line)."""
    return [[(_page(item[-2]), item[-1]) for item in group] for group in reference["evidence"]]


def predicted_sentences(prediction: dict[str, Any], max_evidence: int | None) -> list[Sentence]:
    """The first `max_evidence` predicted sentences. ValueError where one is not [text, integer]."""
    sentences = []
    for item in prediction.get("predicted_evidence") or ():
        page, line = item if isinstance(item, list | tuple) and len(item) == 2 else (None, None)
        if not isinstance(page, str) or isinstance(line, bool) or not isinstance(line, int):
            raise ValueError(f"predicted evidence {item!r}: expected [page, line]")
        sentences.append((_page(page), line))
    return sentences[:max_evidence]


def _page(title: str | None) -> str | None:
    return None if title is None else _canonical(title)


_canonical = functools.lru_cache(maxsize=1 << 16)(canonical_title)


def is_complete(groups: list[list[Sentence]], sentences: list[Sentence]) -> bool:
    """Whether all of some gold group was predicted."""
    return any(all(sentence in sentences for sentence in group) for group in groups)
