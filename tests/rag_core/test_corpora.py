"""Corpora of one's own: rows keep their ids, nothing is lost, merged or doubled."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_core.corpora import read_jsonl, read_parquet, read_text_file, read_tsv
from rag_core.errors import DataError
from rag_core.parts import PartLog


def read(reader, path):
    log = PartLog()
    passages = [(p.passage_id, p.text, p.title) for p in reader(str(path), log)]
    log.written = len(passages)
    log.counts()
    return passages, log


def test_one_unbalanced_quote_swallows_nothing(tmp_path):
    path = tmp_path / "c.tsv"
    path.write_text('id\ttext\ttitle\n1\t"Opening quote\tA\n2\tplain\tB\n3\tclosing"\tC\n')
    passages, log = read(read_tsv, path)
    assert passages == [("1", '"Opening quote', "A"), ("2", "plain", "B"), ("3", 'closing"', "C")]
    assert log.read == 3 and not log.dead


def test_csv_quoted_fields_are_unquoted(tmp_path):
    path = tmp_path / "c.tsv"
    path.write_text('1\t"He said ""no"" twice"\tA\n2\t"Hello" and "bye"\tB\n')
    passages, _ = read(read_tsv, path)
    assert [text for _, text, _ in passages] == ['He said "no" twice', '"Hello" and "bye"']


def test_lines_end_at_newline_only(tmp_path):
    path = tmp_path / "c.tsv"
    path.write_bytes("1\ta\u2028b\x85c\x1cd\tT\r\n".encode())
    assert read(read_tsv, path)[0] == [("1", "a\u2028b\x85c\x1cd", "T")]


def test_rejected_rows_are_named_and_counted(tmp_path):
    path = tmp_path / "c.tsv"
    path.write_bytes(b"1\ttext\tT\n1\tagain\tT\n\tno id\tT\n4\ttwo columns\n5\t \tblank\n6\t\xff\tT\n")
    passages, log = read(read_tsv, path)
    assert [p[0] for p in passages] == ["1"]
    assert [(d["record"].rsplit(":", 1)[1], d["reason"]) for d in log.dead] == [
        ("2", "repeated_id"),
        ("3", "no_id"),
        ("4", "columns"),
        ("6", "not_utf8"),
    ]
    assert log.skipped == {"empty": 1}


def test_gzip_and_a_broken_gzip(tmp_path):
    path = tmp_path / "c.tsv.gz"
    path.write_bytes(gzip.compress(b"1\ta\tT\n" * 1))
    assert read(read_tsv, path)[0] == [("1", "a", "T")]
    whole = gzip.compress("".join(f"{i}\ttext {i}\tT\n" for i in range(1000)).encode())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"c\.tsv\.gz: broken after line"):
        read(read_tsv, path)


def test_jsonl(tmp_path):
    path = tmp_path / "c.jsonl"
    rows = [
        {"id": 7, "title": None, "text": "a"},
        {"_id": "b", "contents": "c", "title": "T"},
        [1],
        {"id": "x"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + '\n{"id": "y", "text": "\\ud800"}\n\n{')
    passages, log = read(read_jsonl, path)
    assert passages == [("7", "a", ""), ("b", "c", "T"), ("y", "\ufffd", "")]
    assert [d["reason"] for d in log.dead] == ["json", "no_text", "json"]


def test_parquet(tmp_path):
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"passage_id": ["1", None], "title": ["T", "U"], "text": ["a", "b"]}), path)
    passages, log = read(read_parquet, path)
    assert passages == [("1", "a", "T")] and [d["reason"] for d in log.dead] == ["no_id"]
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(DataError, match="expected passage_id, title, text"):
        read(read_parquet, path)
    path.write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="not readable as Parquet"):
        read(read_parquet, path)


def test_text_files(tmp_path):
    path = tmp_path / "My_note.md"
    path.write_text("# Hello\nworld")
    assert read_text_file(str(path)) == ("My note", "# Hello\nworld")
    path.write_bytes(b"a\xff")
    with pytest.raises(DataError, match="not UTF-8 at byte 1"):
        read_text_file(str(path))
