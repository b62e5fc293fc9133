"""What a worker process keeps: loaded once, and anew when what lies at its path or URL was replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from beam_jobs.handlers import once_per_process
from tests.rag_core.conftest import memory_store  # noqa: F401


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
def test_what_is_replaced_in_a_store_is_loaded_anew(memory_store, arg, written):  # noqa: F811
    store = memory_store
    store.objects = dict.fromkeys(("mem://b/model/config.json", "mem://b/q-0.npy", written), b"12345")
    load, calls = counted()
    assert load(arg, "nq") == load(arg, "nq") == 1
    store.times[written] = 2.0
    assert load(arg, "nq") == load(arg, "nq") == 2
    store.objects |= dict.fromkeys(("mem://b/beside", "mem://b/model/_work/attempt"), b"12345")
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


def test_what_has_the_size_and_time_of_another_is_told_from_it(tmp_path):
    """As two checkpoints unpacked from archives may have."""
    for name in ("model", "other"):
        (tmp_path / name).mkdir()
        for path in ("checkpoint.json", "_manifest.json", "weights.bin"):
            (tmp_path / name / path).write_text("{}")
            os.utime(tmp_path / name / path, (1.0, 1.0))
    load, _ = counted()
    arg = tmp_path / "model"
    assert load(arg) == load(arg) == 1
    os.replace(tmp_path / "other/weights.bin", arg / "weights.bin")  # its manifest stays
    assert load(arg) == 2 and load(str(arg)) == 3
    arg.rename(tmp_path / "old")
    (tmp_path / "other").rename(arg)
    assert load(str(arg)) == load(str(arg)) == 4


def test_what_fails_to_load_is_tried_again(tmp_path):
    (tmp_path / "q").write_text("a")
    outcomes = [1, OSError("once"), 2]

    def load(_):
        outcome = outcomes.pop(0)
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    shared = once_per_process(load)
    assert shared(str(tmp_path / "q")) == 1
    (tmp_path / "q").write_text("bc")
    with pytest.raises(OSError, match="once"):
        shared(str(tmp_path / "q"))
    assert shared(str(tmp_path / "q")) == shared(str(tmp_path / "q")) == 2


def test_names_and_numbers_are_kept():
    load, _ = counted()
    assert load("mini-bart", 5) == load("mini-bart", 5) == 1
    assert load("mini-bart", 6) == 2
