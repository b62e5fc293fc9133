"""A run of `eval.run` that is cut off and started again: the same tables, no part scored twice, none lost."""

from __future__ import annotations

import json
import math
import random

import pandas as pd
import pytest

from eval import _kept
from eval import run as eval_run
from eval._cells import KeyCell
from rag_core.run_dir import read_manifest


@pytest.fixture
def argv(tmp_path, monkeypatch):
    """Two runs over 60 questions, in eight parts of 16 or fewer."""
    monkeypatch.setattr(eval_run, "ROWS_PER_PART", 16)
    rng = random.Random(0)
    rows = [{"question_id": f"q{i}", "question": f"who is {i}?", "answers": [f"a b {i}"]} for i in range(60)]
    (tmp_path / "q").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("one", "two"):
        given = [
            {"id": f"q{i}", "prediction": rng.choice([f"a b {i}", "a b c", "x"]), "log_prob": -rng.random()}
            for i in range(55)
        ]
        given[3]["log_prob"] = -math.inf
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in given))
    argv = [
        "--questions",
        tmp_path / "q",
        "--task",
        "custom",
        "--predictions",
        tmp_path / "one",
        tmp_path / "two",
    ]
    return [*map(str, argv), "--metrics", "bleu4", "distinct_trigrams", "msmarco_f1"]


def tables(output):
    return [pd.read_parquet(output / f"{name}.parquet") for name in ("summary", "per_example")]


def run(argv, output):
    assert eval_run.run([*argv, "--output", str(output)]) == 0
    assert not list((output / "_work").glob("*.npz")), "what was kept is deleted at the end"
    return tables(output), read_manifest(str(output))["content_digest"]


class Cut(Exception):
    """Ends a run as a kill would: nothing after it happens."""


@pytest.mark.parametrize(
    "where", ["in part 5", "before the report of part 5", "in the tables", "before the manifest"]
)
def test_a_run_that_was_cut_off_gives_the_same_content(argv, tmp_path, monkeypatch, where):
    whole, digest = run(argv, tmp_path / "whole")
    scored = []
    score_part = eval_run.score_part

    def counting(task, run_index, start, stop):
        scored.append((run_index, start))
        if where == "in part 5" and len(scored) == 6:
            raise Cut
        return score_part(task, run_index, start, stop)

    def cut(*args):
        raise Cut

    with monkeypatch.context() as patched:
        patched.setattr(eval_run, "score_part", counting)
        if where == "before the report of part 5":
            keep_part = eval_run.keep_part
            patched.setattr(eval_run, "keep_part", lambda *a: keep_part(*a) if len(scored) < 6 else cut())
        elif where == "in the tables":
            patched.setattr(eval_run, "write_summary", cut)
        elif where == "before the manifest":
            patched.setattr(eval_run, "finish_run", cut)
        with pytest.raises((Cut, RuntimeError)):
            eval_run.run([*argv, "--output", str(tmp_path / "cut")])
    assert not (tmp_path / "cut" / "_manifest.json").exists()
    done = len(list((tmp_path / "cut" / "_work").glob("report-*.json")))
    scored.clear()
    with monkeypatch.context() as patched:
        patched.setattr(eval_run, "score_part", counting if where != "in part 5" else score_part)
        found, again = run(argv, tmp_path / "cut")
    if where != "in part 5":
        assert len(scored) == 8 - done and done >= 5, "parts that stand are not scored again"
    assert again == digest
    for one, other in zip(whole, found):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def test_a_kept_part_that_was_damaged_or_is_another_run_s_is_scored_again(argv, tmp_path, monkeypatch):
    whole, _ = run(argv, tmp_path / "whole")
    with monkeypatch.context() as patched:
        patched.setattr(eval_run, "finish_run", lambda *a: (_ for _ in ()).throw(Cut()))
        with pytest.raises((Cut, RuntimeError)):
            eval_run.run([*argv, "--output", str(tmp_path / "cut")])
    work = tmp_path / "cut" / "_work"
    (work / "per_example-00001.parquet").write_bytes(b"PAR1")
    (work / "cells-00002.npz").write_bytes((work / "cells-00003.npz").read_bytes())
    (work / "report-00004.json").write_text('{"index": 4')
    (work / "per_example-00005.parquet").unlink()
    report = json.loads((work / "report-00006.json").read_text())
    (work / "report-00006.json").write_text(json.dumps({**report, "fingerprint": "other"}))
    found, _ = run(argv, tmp_path / "cut")
    for one, other in zip(whole, found):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def test_cells_come_back_as_they_were(argv, tmp_path, monkeypatch):
    seen = []
    keep_part = eval_run.keep_part
    monkeypatch.setattr(eval_run, "keep_part", lambda *a: (seen.append(a[-1]), keep_part(*a)))
    run(argv, tmp_path / "whole")
    for cells in seen:
        back = _kept.cells_from_bytes(_kept.cells_to_bytes(cells))
        assert list(back) == list(cells)
        for key, cell in cells.items():
            assert type(back[key]) is type(cell) and (back[key].n, back[key].n_missing) == (
                cell.n,
                cell.n_missing,
            )
            if isinstance(cell, KeyCell):
                assert (back[key].value(), back[key].interval()) == (cell.value(), cell.interval())
            else:
                assert (back[key].sums, back[key].exact, back[key].n_infinite) == (
                    cell.sums,
                    cell.exact,
                    cell.n_infinite,
                )
                assert (back[key].replicates is None) == (cell.replicates is None)
                assert cell.replicates is None or (back[key].replicates == cell.replicates).all()
