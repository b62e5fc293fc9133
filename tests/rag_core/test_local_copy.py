"""Copies of stored directories: made once, made anew when the source changed, never outside the cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_core import files
from rag_core.encoders.locate import locate
from rag_core.errors import DataError, UnknownModelError
from rag_core.local_copy import local_directory, local_index, relative_name


@pytest.fixture
def shelf(memory_store, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    memory_store.objects = {"mem://b/m/config.json": b"{}", "mem://b/m/sub/w.bin": b"12345"}
    return memory_store


def names_below(directory) -> list[str]:
    return sorted(p.relative_to(directory).as_posix() for p in Path(directory).rglob("*") if p.is_file())


def test_copied_once_and_anew_when_replaced(shelf):
    first = locate("mem://b/m")
    assert names_below(first) == ["config.json", "sub/w.bin"] and shelf.opened == 2
    assert locate("mem://b/m") == first and shelf.opened == 2
    shelf.time = 2.0
    assert locate("mem://b/m") != first and shelf.opened == 4
    with pytest.raises(UnknownModelError, match="mem://b/none: no model there"):
        locate("mem://b/none")


def test_an_index_is_copied_without_its_state_files(shelf):
    shelf.objects = {f"mem://b/i/{n}": b"x" for n in ("index.faiss", "set.json", "_run.json", "_work/a")}
    assert names_below(local_index("mem://b/i", "FAISS", "set.json")) == ["index.faiss", "set.json"]
    del shelf.objects["mem://b/i/set.json"]
    with pytest.raises(
        DataError, match="mem://b/i/set.json: missing; mem://b/i is not a finished FAISS index"
    ):
        local_index("mem://b/i", "FAISS", "set.json")


@pytest.mark.parametrize("name", ["../../evil", "a/../../evil", "/etc/evil", "a//b", "..", ".\\evil", "./a"])
def test_a_hostile_object_name_writes_nothing(shelf, tmp_path, name):
    shelf.objects[f"mem://b/m/{name}"] = b"evil"
    with pytest.raises(DataError, match="not a name below mem://b/m"):
        local_directory("mem://b/m", "models", files.list_tree("mem://b/m"))
    assert names_below(tmp_path) == [] and not os.path.exists("/etc/evil")


def test_a_copy_that_arrives_cut_is_no_copy(shelf, tmp_path):
    found = [files.FileInfo("mem://b/m/config.json", 999, 1.0)]
    with pytest.raises(DataError, match="999 bytes, got 2"):
        local_directory("mem://b/m", "models", found)
    assert [n for n in names_below(tmp_path) if not n.endswith(".lock")] == []


def test_relative_name():
    assert relative_name("gs://b/m/a/b.c", "gs://b/m/") == "a/b.c"
