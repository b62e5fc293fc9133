"""The scale run's own parts: a corpus of exactly so many passages, and a table with the right arithmetic."""

from __future__ import annotations

import pytest

from beam_jobs import split
from rag_core.run_dir import read_manifest
from rag_core.schemas import RETRIEVED
from tests.eval.conftest import write_stage
from tests.scale.__main__ import STAGES, Measured, distinct_passages, table
from tests.scale.corpus import WORDS_PER_PASSAGE, write_asked, write_dump


def test_a_dump_gives_exactly_so_many_passages(tmp_path):
    write_dump(tmp_path / "dump", 50)
    argv = ["--input", str(tmp_path / "dump/*.xml"), "--words", str(WORDS_PER_PASSAGE)]
    assert split.run([*argv, "--output", str(tmp_path / "passages")]) == 0
    assert read_manifest(str(tmp_path / "passages"))["rows"] == 50
    with pytest.raises(ValueError, match="51 passages: not a multiple of 5"):
        write_dump(tmp_path / "other", 51)
    write_asked(tmp_path / "q.jsonl", 7, 10)
    assert (tmp_path / "q.jsonl").read_text().count("\n") == 7


def run_of(passages: int, processor: float, clock: float = 9.0, megabytes: float = 90.0) -> dict:
    return dict.fromkeys(STAGES, Measured(passages, clock, processor, megabytes))


def test_rates_leave_start_up_out():
    small = [run_of(200, cpu) for cpu in (2.2, 2.0, 1.9)]
    found = {1000: run_of(1000, 4.0, megabytes=110.0), 8000: run_of(8000, 12.0, 19.0, 120.0)}
    lines = table(found, small)
    assert lines[2] == ("| split | 2.0 (1.9–2.2) | 500 /s (9.0 s) | 800 /s (19.0 s) | 1.60 | 110, 120 |")
    assert len(lines) == 2 + len(STAGES)


def test_what_start_up_hides_is_not_told():
    small = [run_of(200, cpu) for cpu in (2.2, 2.0, 1.9)]
    assert (
        "| hidden (9.0 s) | 800 /s (9.0 s) | – |"
        in table({1000: run_of(1000, 3.4), 8000: run_of(8000, 12.0)}, small)[-1]
    )


def test_eval_is_measured_by_the_passages_that_were_found(tmp_path):
    found = [["a", "b"], ["b", "c"], []]
    rows = [
        {"question_id": f"q{i}", "passage_ids": ids, "doc_scores": [0.0] * len(ids)}
        for i, ids in enumerate(found)
    ]
    write_stage(tmp_path / "retrieved", "retrieve", RETRIEVED, rows)
    assert distinct_passages(str(tmp_path / "retrieved")) == 3
