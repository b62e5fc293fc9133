"""One part of a run: written whole, reported, and checked again before it is kept.

A stage is a `PartWorker`: it turns a part descriptor into record batches and counts what it read,
wrote, skipped and rejected. `write_part` does the rest, the same for every stage and every runner.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from rag_core import files
from rag_core.digest import RowDigest
from rag_core.errors import DataError
from rag_core.reports import is_report
from rag_core.run_dir import DEAD_LETTER, WORK, part_name, report_url

ROWS_PER_GROUP = 8192
BYTES_PER_GROUP = 64 << 20


@dataclass(frozen=True)
class Part:
    """A piece of a stage's input: `index` names the output part, `source` is JSON that says what to read."""

    index: int
    source: dict[str, Any]


@dataclass
class PartLog:
    """What a part saw: `read = written + skipped(by reason) + dead-lettered`, in the stage's own unit."""

    read: int = 0
    written: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    dead: list[dict[str, Any]] = field(default_factory=list)
    stats: Counter[str] = field(default_factory=Counter)
    """Further counts that add up over parts (truncated passages, tokens, …)."""

    def reject(self, record: str, reason: str, detail: str = "") -> None:
        """Send one record to the dead letters: its id, a short reason (counted by it), and details."""
        self.dead.append({"record": record, "reason": reason, "detail": detail})

    def counts(self) -> dict[str, Any]:
        dead = Counter(letter["reason"] for letter in self.dead)
        if self.read != self.written + sum(self.skipped.values()) + len(self.dead):
            raise RuntimeError(
                f"counts do not add up: read {self.read}, written {self.written}, "
                f"skipped {dict(self.skipped)}, dead-lettered {dict(dead)}"
            )
        counts: dict[str, Any] = {"read": self.read, "written": self.written}
        return {**counts, "skipped": dict(self.skipped), "dead_lettered": dict(dead), **+self.stats}


class PartWorker(Protocol):
    """What a stage does with a part. Picklable before `setup`, which loads models and opens indexes."""

    @property
    def schema(self) -> pa.Schema: ...

    def setup(self) -> None: ...

    def rows(self, source: dict[str, Any], log: PartLog) -> Iterator[pa.RecordBatch]:
        """The part's rows, in an order that depends on the part alone."""


def write_part(output: str, part: Part, worker: PartWorker, fingerprint: str) -> dict[str, Any]:
    """Write part `part.index` and its report, unless the one in place is right already.

    Order: attempt in `_work/`, dead letters, the part under its name, the report. Returns the report:
    `index, name, rows, row_digest, bytes, counts, seconds`. A repeat writes the same content again.
    """
    kept = read_report(output, part.index, fingerprint)
    if kept is not None and kept["name"] == part_name(part.index) and part_stands(output, kept):
        return kept
    started = time.monotonic()
    log = PartLog()
    url = files.join(output, part_name(part.index))
    schema = worker.schema
    digest = RowDigest(schema)
    with files.put(url, work_dir=files.join(output, WORK)) as stream:
        with pq.ParquetWriter(stream, schema, **writer_options(schema)) as writer:
            for table in row_groups(worker.rows(part.source, log), schema):
                for batch in table.to_batches():
                    digest.update(batch)
                writer.write_table(table, row_group_size=max(1, table.num_rows))
            if not digest.rows:
                writer.write_table(schema.empty_table())
        counts = log.counts()
        _write_dead_letters(output, part.index, log)
    report = {
        "index": part.index,
        "name": part_name(part.index),
        "fingerprint": fingerprint,
        "rows": digest.rows,
        "row_digest": digest.hexdigest(),
        "bytes": files.size(url),
        "counts": counts,
        "seconds": round(time.monotonic() - started, 3),
    }
    files.write_json(report_url(output, part.index), report)
    return report


def read_report(output: str, index: int, fingerprint: str) -> dict[str, Any] | None:
    """The report of a part written by a run of the same fingerprint; None without one, or when damaged."""
    url = report_url(output, index)
    if not files.exists(url):
        return None
    try:
        report = files.read_json(url)
    except DataError:
        return None
    if not is_report(report) or "counts" not in report:
        return None
    ours = report.get("fingerprint") == fingerprint and report.get("index") == index
    return report if ours else None


def part_stands(output: str, report: dict[str, Any]) -> bool:
    """Whether the part in place has the rows that its report names (read again, digested again)."""
    found = files.info(files.join(output, report["name"]))
    if found is None or found.size != report["bytes"]:
        return False
    try:
        return row_digest_of(found.url) == report["row_digest"]
    except (DataError, pa.ArrowException, OSError):
        return False


def row_digest_of(url: str) -> str:
    """Row digest of one Parquet file."""
    with files.open_input(url) as stream:
        parquet = pq.ParquetFile(stream)
        digest = RowDigest(parquet.schema_arrow)
        for batch in parquet.iter_batches(ROWS_PER_GROUP):
            digest.update(batch)
    return digest.hexdigest()


def writer_options(schema: pa.Schema) -> dict[str, Any]:
    """Parquet settings: zstd, but vectors stay plain and uncompressed, so that they can be mapped."""
    vectors = {f.name for f in schema if pa.types.is_fixed_size_list(f.type)}
    if not vectors:
        return {"compression": "zstd", "write_page_checksum": True}
    return {
        "compression": "none",
        "use_dictionary": False,
        "data_page_size": 1 << 30,
        "write_page_checksum": True,
    }


def row_groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Gather batches into tables of at most `ROWS_PER_GROUP` rows and about `BYTES_PER_GROUP` bytes.

    The cap by bytes keeps every string column far below the 2 GB that 32-bit offsets can address.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        for piece in _pieces(batch):
            if waiting and (rows + piece.num_rows > ROWS_PER_GROUP or size + piece.nbytes > BYTES_PER_GROUP):
                yield pa.Table.from_batches(waiting, schema)
                waiting, rows, size = [], 0, 0
            waiting.append(piece)
            rows += piece.num_rows
            size += piece.nbytes
    if waiting:
        yield pa.Table.from_batches(waiting, schema)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Halve a batch until each piece is under the caps (a single row is never cut)."""
    if batch.num_rows > 1 and (batch.num_rows > ROWS_PER_GROUP or batch.nbytes > BYTES_PER_GROUP):
        half = batch.num_rows // 2
        yield from _pieces(batch.slice(0, half))
        yield from _pieces(batch.slice(half))
    elif batch.num_rows:
        yield batch


def _write_dead_letters(output: str, index: int, log: PartLog) -> None:
    url = files.join(output, DEAD_LETTER, f"part-{index:05d}.jsonl")
    if log.dead:
        lines = [json.dumps(letter, sort_keys=True) for letter in log.dead]
        files.write_bytes(url, ("\n".join(lines) + "\n").encode())
    elif files.exists(url):
        files.delete([url])
