"""From merged cells to `summary.parquet`, and the two tables written put-when-complete."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eval._cells import Cell, KeyCell, cell_interval, cell_value
from eval._examples import EvalTask, Inputs
from eval._score import CellKey
from rag_core import files
from rag_core.digest import RowDigest
from rag_core.parts import row_groups, writer_options
from rag_core.schemas import SUMMARY
from rag_core.stages import read_part

PER_EXAMPLE = "per_example.parquet"
SUMMARY_FILE = "summary.parquet"


def merge_cells(
    into: dict[CellKey, Cell | KeyCell], cells: dict[CellKey, Cell | KeyCell]
) -> dict[CellKey, Cell | KeyCell]:
    """Add cells to a total, in place; in any order the totals are the same."""
    for key, cell in cells.items():
        if key in into:
            into[key].add(cell)  # type: ignore[arg-type]
        else:
            into[key] = cell
    return into


def summary_rows(
    task: EvalTask, inputs: Inputs, cells: dict[CellKey, Cell | KeyCell]
) -> list[dict[str, Any]]:
    """One row for each run, metric, slice and scope that has examples; the whole set first."""
    rows = []
    for index, run in enumerate(inputs.runs):
        slices = sorted({s for r, s, _, _ in cells if r == index}, key=lambda s: (s != "all", s))
        for name in slices:
            for column in run.columns:
                for scope in ("all", "answered"):
                    cell = cells.get((index, name, scope, column.name))
                    if cell is None or (not cell.n and name != "all"):
                        continue
                    keyed = isinstance(cell, KeyCell)
                    value = cell.value() if keyed else cell_value(column.metric, cell)
                    interval = cell.interval() if keyed else cell_interval(column.metric, cell)
                    low, high = interval or (None, None)
                    rows.append(
                        {
                            "run": run.spec.name,
                            "task": task.task,
                            "slice": name,
                            "scope": scope,
                            "metric": column.name,
                            "value": value,
                            "ci_low": low,
                            "ci_high": high,
                            "n": cell.n,
                            "n_missing": cell.n_missing,
                            "signature": column.metric.signature,
                        }
                    )
    return rows


def write_summary(output: str, rows: list[dict[str, Any]]) -> None:
    with files.put(files.join(output, SUMMARY_FILE)) as stream:
        pq.write_table(pa.Table.from_pylist(rows, SUMMARY), stream, **writer_options(SUMMARY))


def write_batches(url: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> dict[str, Any]:
    """Write record batches as one Parquet file; returns its rows, row digest and bytes."""
    digest = RowDigest(schema)
    with files.put(url) as stream, pq.ParquetWriter(stream, schema, **writer_options(schema)) as writer:
        for table in row_groups(batches, schema):
            for batch in table.to_batches():
                digest.update(batch)
            writer.write_table(table)
    return {"rows": digest.rows, "row_digest": digest.hexdigest(), "bytes": files.size(url)}


def join_parts(output: str, fingerprint: str, schema: pa.Schema, urls: list[str]) -> dict[str, Any]:
    """Put the parts' rows into `per_example.parquet`, in order, and give the report of that one part."""
    started = time.time()
    batches = (batch for url in urls for batch in read_part(url))
    written = write_batches(files.join(output, PER_EXAMPLE), schema, batches)
    counts = {"read": written["rows"], "written": written["rows"], "skipped": {}, "dead_lettered": {}}
    return {
        "index": 0,
        "name": PER_EXAMPLE,
        "fingerprint": fingerprint,
        "counts": counts,
        "seconds": round(time.time() - started, 3),
        **written,
    }
