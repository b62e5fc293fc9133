"""`custom`: one's own questions, in the columns of the questions schema.

JSON lines, Parquet, or a TSV with a header line in which list columns hold JSON. Required:
`question`, and `answers` unless the questions are only retrieved for; `question_id`, `answer_kind`
(text, regex, label), `gold_passages`, `gold_pages` and `evidence` may be absent; a question whose list of
gold is empty has no gold, and no ranking metric scores it. Other columns are left alone.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from rag_core.datasets.fever import page_line
from rag_core.datasets.records import Collector, Source
from rag_core.datasets.tables import header_and_records
from rag_core.errors import DataError

KINDS = ("text", "regex", "label")
_LISTS = ("answers", "gold_passages", "gold_pages", "evidence")


def read(collector: Collector) -> None:
    for line, row in rows_of(collector.source):
        add_row(collector, line, row)


def add_row(collector: Collector, line: int, row: dict[str, Any]) -> None:
    """Add one row given as a mapping of column to value; null columns are absent ones."""
    error = collector.source.error
    if "question" not in row:
        raise error(line, f"no column 'question' (found {', '.join(row) or 'nothing'})")
    kind = row.get("answer_kind") or "text"
    if kind not in KINDS:
        raise error(line, f"answer_kind {kind!r}: use {', '.join(KINDS)}")
    fields: dict[str, Any] = {"answer_kind": kind}
    for column in ("gold_passages", "gold_pages"):
        if row.get(column) is not None:
            fields[column] = tuple(str(value) for value in row[column]) or None
    if row.get("evidence") is not None:
        try:
            fields["evidence"] = tuple(tuple(map(page_line, group)) for group in row["evidence"])
        except (TypeError, ValueError, KeyError):
            raise error(line, "evidence: expected groups of {page, line} or [page, line]") from None
    answers = row.get("answers")
    collector.add(line, row.get("question_id"), row["question"], [] if answers is None else answers, **fields)


def rows_of(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    if source.data.startswith(b"PAR1"):
        yield from _parquet_rows(source)
    elif source.data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        yield from source.json_lines()
    else:
        yield from _tsv_rows(source)


def _parquet_rows(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(source.data))
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{source.path}: not readable as Parquet: {error}") from error
    rows = (row for batch in table.to_batches(max_chunksize=8192) for row in batch.to_pylist())
    yield from enumerate(rows, 1)


def _tsv_rows(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    if not source.data.strip():
        return
    number, names, records = header_and_records(source.all_lines())
    if "question" not in names:
        raise source.error(number, f"no column 'question' in the header {', '.join(names)[:80]!r}")
    for number, cells in records:
        if len(cells) != len(names):
            raise source.error(number, f"{len(cells)} columns, the header has {len(names)}")
        row: dict[str, Any] = dict(zip(names, cells))
        for column in _LISTS:
            if column in row:
                row[column] = source.parse(number, row[column]) if row[column] else None
        yield number, row
