"""Finished runs of earlier stages, written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rag_core.parts import Part, write_part
from rag_core.run_dir import claim, finish_run
from rag_core.schemas import PASSAGES, PREDICTIONS, RETRIEVED, content_hash


@dataclass
class Rows:
    """A worker that has its rows already."""

    schema: pa.Schema
    rows_by_part: list[list[dict[str, Any]]]

    def setup(self) -> None:
        pass

    def rows(self, source: dict[str, Any], log: Any):
        rows = self.rows_by_part[source["part"]]
        log.read = log.written = len(rows)
        yield pa.RecordBatch.from_pylist(rows, self.schema)


def write_stage(directory: Path, job: str, schema: pa.Schema, rows: Sequence[dict], parts: int = 2) -> str:
    worker = Rows(schema, [list(rows[i::parts]) for i in range(parts)])
    run = claim(str(directory), job, logic_version=1, inputs={}, models={}, options={"rows": str(rows)})
    reports = [write_part(run.output, Part(i, {"part": i}), worker, run.fingerprint) for i in range(parts)]
    with run.alive():
        finish_run(run.output, run.run, reports, parts, {})
    return run.output


@pytest.fixture
def write_predictions():
    def write(directory: Path, rows: Sequence[dict], parts: int = 2) -> str:
        lists = ("candidates", "passage_ids", "doc_prior", "doc_posterior", "tokens")
        whole = [{"status": "ok", **dict.fromkeys(lists, []), **row} for row in rows]
        return write_stage(directory, "generate", PREDICTIONS, whole, parts)

    return write


@pytest.fixture
def write_retrieved():
    def write(directory: Path, rows: Sequence[dict], parts: int = 2) -> str:
        return write_stage(directory, "retrieve", RETRIEVED, rows, parts)

    return write


@pytest.fixture
def write_passages():
    def write(directory: Path, rows: Sequence[tuple[str, str, str]], parts: int = 2) -> str:
        whole = [
            {
                "passage_id": i,
                "page_id": i.split(":")[0],
                "title": title,
                "text": text,
                "n_words": len(text.split()),
                "content_hash": content_hash(title, text),
            }
            for i, title, text in rows
        ]
        return write_stage(directory, "split", PASSAGES, whole, parts)

    return write
