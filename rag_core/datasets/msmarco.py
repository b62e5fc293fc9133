"""`msmarco`: MS MARCO question answering (v2.1), questions and answers only.

Formats: the published object of columns (`query`, `answers`, `query_id`, each `{row: value}`), or
JSON lines with `query_id`, `query`, `answers`. `No Answer Present.` is an answer like any other here;
the metrics know it (unanswerable questions enter the official F1 and nothing else).
"""

from __future__ import annotations

from typing import Any

from rag_core.datasets.records import Collector
from rag_core.errors import DataError

NO_ANSWER = "No Answer Present."


def read(collector: Collector) -> None:
    source = collector.source
    whole = _columns(collector)
    rows = enumerate(whole, 1) if whole is not None else source.json_lines()
    for line, row in rows:
        if "answers" not in row or "query_id" not in row:
            raise source.error(line, f"expected query_id, query and answers, found {', '.join(row)}")
        answers = row["answers"]
        answers = [] if answers in ("", "[]", None) else answers
        collector.add(line, row["query_id"], row.get("query", ""), answers)


def _columns(collector: Collector) -> list[dict[str, Any]] | None:
    """The rows of the published object of columns; None for JSON lines."""
    source = collector.source
    if not source.data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return None
    first = next(iter(source.lines()))[1]
    if not source.is_document() and not _is_columns(source.parse(1, first)):
        return None
    document = source.document()
    if not _is_columns(document):
        raise DataError(f"{source.path}: expected columns query_id, query, answers as objects")
    names = ("query_id", "query", "answers")
    missing = [name for name in names if set(document.get(name, ())) != set(document["query_id"])]
    if missing:
        raise DataError(f"{source.path}: column {missing[0]!r} has other rows than 'query_id'")
    return [{name: document[name][key] for name in names} for key in document["query_id"]]


def _is_columns(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("query_id"), dict)
