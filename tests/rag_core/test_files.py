"""`rag_core.files`: what is written is there whole or not at all."""

from __future__ import annotations

import os

import pytest

from rag_core import files
from rag_core.errors import DataError, UsageError


def test_put_appears_only_when_complete(tmp_path):
    url = str(tmp_path / "a.bin")
    with files.put(url) as stream:
        stream.write(b"half")
        assert not os.path.exists(url)
    assert files.read_bytes(url) == b"half"


def test_a_failed_put_leaves_the_old_file_and_nothing_else(tmp_path):
    url = str(tmp_path / "a.bin")
    files.write_bytes(url, b"old")
    with pytest.raises(OSError, match="disk full"), files.put(url) as stream:
        stream.write(b"new")
        raise OSError("disk full")
    assert files.read_bytes(url) == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_list_files_is_sorted_and_takes_existing_names_literally(tmp_path):
    for name in ("b.txt", "a.txt", "a[1].txt"):
        files.write_bytes(str(tmp_path / name), b"x")
    names = [files.base_name(f.url) for f in files.list_files(str(tmp_path / "*.txt"))]
    assert names == ["a.txt", "a[1].txt", "b.txt"]
    assert [f.size for f in files.list_files(str(tmp_path / "a[1].txt"))] == [1]
    assert [files.base_name(f.url) for f in files.list_files(str(tmp_path))] == names
    assert files.list_files(str(tmp_path / "none*")) == []


def test_json_errors_name_the_file(tmp_path):
    url = str(tmp_path / "x.json")
    files.write_bytes(url, b"{")
    with pytest.raises(DataError, match=r"x\.json: not valid JSON"):
        files.read_json(url)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "1" * 100_000, "\xff", "", "\0", '"\n"'])
def test_json_that_cannot_be_read_is_bad_data(tmp_path, text):
    url = str(tmp_path / "x.json")
    files.write_bytes(url, text.encode("latin-1"))
    with pytest.raises(DataError, match=r"x\.json: not valid JSON"):
        files.read_json(url)


def test_a_scheme_without_a_backend_is_a_usage_error():
    with pytest.raises(UsageError, match="no backend for nowhere://"):
        files.open_input("nowhere://bucket/a")


def test_delete_ignores_what_is_gone(tmp_path):
    url = str(tmp_path / "a")
    files.write_bytes(url, b"")
    files.delete([url, url])
    assert not files.exists(url)


def test_another_store_through_its_backend(memory_store):
    files.write_json("mem://b/d/x.json", {"n": 1})
    assert files.read_json("mem://b/d/x.json") == {"n": 1}
    assert files.size("mem://b/d/x.json") == len(b'{\n  "n": 1\n}\n')
    assert [f.url for f in files.list_files("mem://b/d")] == ["mem://b/d/x.json"]
    assert [f.url for f in files.list_tree("mem://b/d")] == ["mem://b/d/x.json"]
    with files.local_copy("mem://b/d/x.json") as path:
        assert files.read_json(path) == {"n": 1}
    files.delete(["mem://b/d/x.json"])
    assert not files.exists("mem://b/d/x.json")


def test_lines_end_at_newline_only(tmp_path):
    url = str(tmp_path / "lines.txt")
    files.write_bytes(url, "a\u2028b\x85c\x1cd\ne\r\n".encode())
    with files.open_text(url) as stream:
        assert list(stream) == ["a\u2028b\x85c\x1cd\n", "e\r\n"]
