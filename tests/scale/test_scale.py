"""The scale run's own parts: a corpus of exactly so many passages, and a table with the right arithmetic."""

from __future__ import annotations

import pytest

from beam_jobs import split
from rag_core.run_dir import read_manifest
from tests.scale.__main__ import STAGES, Measured, table, typical
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


def test_rates_leave_start_up_out():
    small = typical([dict.fromkeys(STAGES, Measured(9.0, cpu, 90.0)) for cpu in (3.0, 2.0, 1.0)])
    large = {1000: Measured(9.0, 4.0, 110.0), 8000: Measured(19.0, 12.0, 120.0)}
    found = {n: dict.fromkeys(STAGES, measured) for n, measured in large.items()}
    lines = table(found, small, 600)
    assert lines[2] == "| split | 2.0 | 500 /s (9.0 s) | 800 /s (19.0 s) | 1.60 | 110, 120 |"
    assert lines[-1] == (
        "| eval | 2.0 | 150 questions/s (9.0 s) | 50 questions/s (19.0 s) | 3.00 | 110, 120 |"
    )
    assert len(lines) == 2 + len(STAGES)
