"""What every night found: `history.parquet`, one row per night, task, checkpoint and metric."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rag_core import files
from rag_core.errors import DataError

HISTORY = pa.schema(
    [
        *((name, pa.string()) for name in ("night", "time", "task", "checkpoint", "verdict")),
        ("results", pa.string()),  # the results directory, below the nightly's own
        ("baseline", pa.string()),  # the night it was compared with
        ("metric", pa.string()),
        *((name, pa.float64()) for name in ("value", "ci_low", "ci_high")),
        *((name, pa.int64()) for name in ("n", "n_missing")),
    ]
)
GREEN = ("pass", "first")
"""Verdicts a later night may be measured by; `first` had nothing to be compared with."""


def read_history(url: str) -> list[dict[str, Any]]:
    """All rows, oldest first; none where there is no history yet. DataError when it cannot be read."""
    if not files.exists(url):
        return []
    try:
        with files.open_input(url) as stream:
            table = pq.read_table(stream)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{url}: not readable ({error}); restore it, or move it away to begin anew") from None
    if table.schema.names != HISTORY.names:
        raise DataError(f"{url}: columns {table.schema.names}, expected {HISTORY.names}; move it away")
    return table.to_pylist()


def add_to_history(url: str, rows: list[dict[str, Any]]) -> None:
    """Put a new file in the place of the old one, whole: a full disk leaves the old one."""
    table = pa.Table.from_pylist([*read_history(url), *rows], HISTORY)
    with files.put(url) as stream:
        pq.write_table(table, stream)


def nights_of(rows: list[dict[str, Any]], task: str, checkpoint: str) -> Iterator[dict[str, Any]]:
    """One row for each night of a task and checkpoint, newest first, in the order they were written:
    a clock that was set back does not make an old night the newest."""
    seen = set()
    for row in reversed(rows):
        if (row["task"], row["checkpoint"]) == (task, checkpoint) and row["night"] not in seen:
            seen.add(row["night"])
            yield row
