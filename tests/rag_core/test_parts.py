"""Parts: row groups by bytes, declared schemas, empty parts."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_core import parts
from rag_core.parts import Part, PartLog, row_digest_of, row_groups, write_part
from rag_core.schemas import RETRIEVED, content_hash, embeddings_schema
from rag_core.stages import vectors_of


class Rows:
    """A stage that writes given rows."""

    def __init__(self, schema, rows):
        self.schema, self._rows = schema, rows

    def setup(self):
        pass

    def rows(self, source, log: PartLog):
        log.read += len(self._rows)
        log.written += len(self._rows)
        if self._rows:
            yield pa.RecordBatch.from_pylist(self._rows, self.schema)


def write(out, index, schema, rows):
    return write_part(str(out), Part(index, {}), Rows(schema, rows), "f")


def test_row_groups_stay_under_the_cap_in_bytes(monkeypatch):
    monkeypatch.setattr(parts, "BYTES_PER_GROUP", 1 << 16)
    schema = pa.schema([("texts", pa.list_(pa.string()))])
    batch = pa.RecordBatch.from_pylist([{"texts": ["x" * 2000] * 10} for _ in range(40)], schema)
    groups = list(row_groups([batch], schema))
    assert len(groups) > 5 and sum(g.num_rows for g in groups) == 40
    assert max(g.nbytes for g in groups) <= 1 << 16
    assert pa.concat_tables(groups).to_pylist() == batch.to_pylist()


def test_a_single_row_is_never_cut(monkeypatch):
    monkeypatch.setattr(parts, "BYTES_PER_GROUP", 10)
    schema = pa.schema([("text", pa.string())])
    batch = pa.RecordBatch.from_pylist([{"text": "long " * 100}, {"text": "b"}], schema)
    assert [g.num_rows for g in row_groups([batch], schema)] == [1, 1]


def test_an_all_null_first_part_opens_with_the_others_everywhere(tmp_path):
    empty = {"question_id": "1", "passage_ids": [], "doc_scores": [], "log_partition": None}
    full = {"question_id": "2", "passage_ids": ["p"], "doc_scores": [0.5], "log_partition": 1.5}
    write(tmp_path, 0, RETRIEVED, [empty])
    write(tmp_path, 1, RETRIEVED, [full])
    write(tmp_path, 2, RETRIEVED, [])
    frame = pd.read_parquet(tmp_path)
    assert frame.question_id.tolist() == ["1", "2"]
    assert frame.passage_ids.map(list).tolist() == [[], ["p"]]
    assert pl.read_parquet(tmp_path / "*.parquet")["log_partition"].to_list() == [None, 1.5]
    found = duckdb.sql(f"select doc_scores from '{tmp_path}/*.parquet' order by question_id").fetchall()
    assert found == [([],), ([0.5],)]


def test_text_that_looks_missing_stays_apart_from_null(tmp_path):
    schema = pa.schema([("answer", pa.string())])
    answers = ["a", None, "", "nan", "None", "NA"]
    write(tmp_path, 0, schema, [{"answer": a} for a in answers])
    assert pq.read_table(tmp_path / "part-00000.parquet")["answer"].to_pylist() == answers


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_vectors_are_stored_plain_and_come_back_bit_for_bit(tmp_path, dtype):
    schema = embeddings_schema(3, dtype)
    vectors = np.array([[1.5, -2, 0.25], [0, 3, 7]], dtype)
    rows = [
        {"passage_id": str(i), "content_hash": content_hash("t", str(i)), "vector": v}
        for i, v in enumerate(vectors)
    ]
    report = write(tmp_path, 0, schema, rows)
    column = pq.ParquetFile(tmp_path / "part-00000.parquet").metadata.row_group(0).column(2)
    assert column.compression == "UNCOMPRESSED" and "DICTIONARY" not in str(column.encodings)
    batch = pq.read_table(tmp_path / "part-00000.parquet").to_batches()[0]
    assert vectors_of(batch).dtype == dtype
    np.testing.assert_array_equal(vectors_of(batch), vectors)
    assert row_digest_of(str(tmp_path / "part-00000.parquet")) == report["row_digest"]


def test_a_retried_part_is_not_doubled(tmp_path):
    schema = pa.schema([("n", pa.int64())])
    first = write(tmp_path, 0, schema, [{"n": 1}])
    assert write(tmp_path, 0, schema, [{"n": 1}]) == first
    assert pd.read_parquet(tmp_path).n.tolist() == [1]


def test_content_hash_keeps_title_and_text_apart():
    assert content_hash("ab", "c") != content_hash("a", "bc")
    assert len(content_hash("", "")) == 16
    assert content_hash("\ud800", "x") != content_hash("\ufffd", "x")
