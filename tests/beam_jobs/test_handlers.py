"""What a worker process keeps: loaded once, and anew when what lies at its path or URL was replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from beam_jobs.handlers import once_per_process
from rag_core import files


class Store:
    """A store whose files may be replaced by others of the same size."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}

    def match(self, pattern):
        inside = pattern.removesuffix("**")
        return [
            files.FileInfo(url, 5, time)
            for url, time in self.times.items()
            if url == pattern or (pattern.endswith("**") and url.startswith(inside))
        ]


@pytest.fixture
def store(monkeypatch):
    store = Store()
    monkeypatch.setitem(files._backends, "mem", store)
    return store


def counted():
    """A loader that is kept, and the list of its calls."""
    calls = []
    return once_per_process(lambda *args: calls.append(args) or len(calls)), calls


@pytest.mark.parametrize(
    "arg, written",
    [
        ("mem://b/questions.jsonl", "mem://b/questions.jsonl"),
        ("mem://b/run", "mem://b/run/_manifest.json"),
        ("mem://b/model", "mem://b/model/weights/w.bin"),
        (("mem://b/q-0.npy", "mem://b/q-1.npy"), "mem://b/q-1.npy"),
    ],
    ids=["a file", "a run", "a model", "several files"],
)
def test_what_is_replaced_in_a_store_is_loaded_anew(store, arg, written):
    store.times = {"mem://b/model/config.json": 1.0, "mem://b/q-0.npy": 1.0, written: 1.0}
    load, calls = counted()
    assert load(arg, "nq") == load(arg, "nq") == 1
    store.times[written] = 2.0
    assert load(arg, "nq") == load(arg, "nq") == 2
    store.times["mem://b/beside"] = store.times["mem://b/model/_work/attempt"] = 3.0
    assert load(arg, "nq") == 2 and calls == [(arg, "nq")] * 2


@pytest.mark.parametrize("name", ["questions.jsonl", "run/_manifest.json", "model/weights/w.bin"])
def test_what_is_replaced_on_disk_is_loaded_anew(tmp_path, name):
    for path in ("model/config.json", name):
        Path(tmp_path, path).parent.mkdir(parents=True, exist_ok=True)
        Path(tmp_path, path).write_text("{}")
    load, _ = counted()
    arg = str(tmp_path / name.split("/")[0])
    assert load(arg) == load(arg) == 1
    os.utime(tmp_path / name, (1.0, 1.0))
    assert load(arg) == load(arg) == 2


def test_names_and_numbers_are_kept(store):
    load, _ = counted()
    assert load("mini-bart", 5) == load("mini-bart", 5) == 1
    assert load("mini-bart", 6) == 2
