"""Small runs made without Beam."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from rag_core import run_dir
from rag_core.parts import Part, write_part
from rag_core.schemas import PASSAGES, content_hash, embeddings_schema


class _Rows:
    """A part worker whose rows are given."""

    def __init__(self, schema, parts):
        self.schema = schema
        self._parts = parts

    def setup(self) -> None:
        pass

    def rows(self, source, log) -> Iterator[pa.RecordBatch]:
        batch = self._parts[source["i"]]
        log.read += batch.num_rows
        log.written += batch.num_rows
        yield batch


def _write(output, job, schema, batches, options, extra):
    run = run_dir.claim(output, job, logic_version=1, inputs={}, models={}, options=options)
    worker = _Rows(schema, batches)
    parts = [Part(i, {"i": i}) for i in range(len(batches))]
    reports = [write_part(output, part, worker, run.fingerprint) for part in parts]
    run_dir.finish_run(output, run.run, reports, len(parts), extra)
    return output


@pytest.fixture
def embeddings_run(tmp_path):
    """`make(vectors_ND, ids, n_parts=2)` writes a finished embeddings run; returns its directory."""

    def make(vectors_ND, ids, n_parts=2, name="embeddings"):
        vectors_ND = np.asarray(vectors_ND)
        dim = vectors_ND.shape[1]
        schema = embeddings_schema(dim, str(vectors_ND.dtype))
        batches = []
        for rows in np.array_split(np.arange(len(vectors_ND)), n_parts):
            flat = pa.array(vectors_ND[rows].ravel(), schema.field("vector").type.value_type)
            columns = [
                pa.array([ids[r] for r in rows], pa.string()),
                pa.array([content_hash("", ids[r]) for r in rows], pa.binary(16)),
                pa.FixedSizeListArray.from_arrays(flat, type=schema.field("vector").type),
            ]
            batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
        options = {"dtype": str(vectors_ND.dtype), "compute": "fp32"}
        extra = {"encoder": {"dim": dim, "fingerprint": "f" * 64}}
        return _write(str(tmp_path / name), "embed", schema, batches, options, extra)

    return make


@pytest.fixture
def passages_run(tmp_path):
    """`make(passages, n_parts=2)` writes a finished passages run; returns its directory."""

    def make(passages, n_parts=2, name="passages"):
        batches = []
        for rows in np.array_split(np.arange(len(passages)), n_parts):
            chosen = [passages[r] for r in rows]
            records = [
                {
                    "passage_id": p.passage_id,
                    "page_id": None,
                    "title": p.title,
                    "text": p.text,
                    "n_words": len(p.text.split()),
                    "content_hash": content_hash(p.title, p.text),
                }
                for p in chosen
            ]
            batches.append(pa.RecordBatch.from_pylist(records, schema=PASSAGES))
        return _write(str(tmp_path / name), "split", PASSAGES, batches, {}, {})

    return make
