"""`python -m eval.miniature` around its steps: what is kept, what is started again, the page, the options."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from eval._steps import Step, StepError
from eval.miniature import __main__ as command
from eval.miniature import _recipes
from eval.miniature._ledger import kept, read_ledger, run_kept
from eval.pages.curves import Point, Series, curves
from eval.pages.miniature import Chart, Heatmap, Made, Part, miniature_page
from rag_core.errors import DataError, run_command
from tests.eval.report_data import HOSTILE
from tests.eval.test_report import Page

MODULE = """
import pathlib, sys
argv = sys.argv[1:]
out = pathlib.Path(argv[argv.index("--output") + 1])
out.parent.mkdir(parents=True, exist_ok=True)
with open(pathlib.Path(__file__).parent / "calls", "a") as calls:
    calls.write(out.name + " ")
if "--fail" in argv:
    sys.exit("error: it fails")
out.write_text("made")
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A command that writes its output and notes that it was called."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "mini_step.py").write_text(MODULE)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(tmp_path / "code"), *filter(None, [os.environ.get("PYTHONPATH")])])
    )
    monkeypatch.setattr("eval._warm.PRELOADED", ())  # it imports nothing of what commands do
    return lambda: (tmp_path / "code" / "calls").read_text().split()


def steps_at(out: Path, **changed: tuple[str, ...]) -> list[Step]:
    def step(name, *needs):
        return Step(name, ("mini_step", *changed.get(name, ()), "--output", str(out / name)), needs)

    return [step("a"), step("b", "a"), step("c")]


def test_what_is_finished_is_not_started_again(module, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    first = run_kept(steps_at(out), out, 1)
    assert module() == ["a", "b", "c"] or module() == ["a", "c", "b"]
    again = run_kept(steps_at(out), out, 1)
    assert len(module()) == 3 and again == first, "seconds and commands are those of the first time"
    run_kept(steps_at(out, a=("--x",)), out, 1)
    assert sorted(module()[3:]) == ["a", "b"], "a changed, so what needs it is asked again; c is not"
    (out / "c").unlink()
    run_kept(steps_at(out, a=("--x",)), out, 1)
    assert module()[5:] == ["c"]


def test_what_lies_there_gives_way_when_told(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("eval.miniature._ledger.run_steps", lambda steps, *_, **__: seen.extend(steps))
    steps = [
        Step("a", ("beam_jobs.split", "--output", "x")),
        Step("b", ("eval.miniature.gather", "--output", "y")),
    ]
    for overwrite, wanted in ((False, ()), (True, ("--overwrite",))):
        seen.clear()
        with pytest.raises(KeyError):  # nothing ran, so nothing is recorded
            run_kept(steps, tmp_path, 1, overwrite)
        assert [s.argv for s in seen] == [(*steps[0].argv, *wanted), steps[1].argv]


def test_what_is_begun_anew_is_not_finished_before_it_is(module, tmp_path, monkeypatch):
    """Killed while it overwrites, a run leaves no record of what it was overwriting."""
    out = tmp_path / "out"
    out.mkdir()
    run_kept(steps_at(out), out, 1)

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("eval.miniature._ledger.run_steps", killed)
        run_kept(steps_at(out, a=("--x",)), out, 1)
    assert kept(steps_at(out), read_ledger(out)) == ["c"]


def test_a_failure_keeps_what_was_done(module, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(StepError, match="step b ended with code 1: error: it fails"):
        run_kept(steps_at(out, b=("--fail",)), out, 1)
    assert "a" in read_ledger(out) and "b" not in read_ledger(out)
    run_kept(steps_at(out), out, 1)
    assert module().count("a") == 1 and module()[-1] == "b" or module().count("c") <= 2
    assert kept(steps_at(out), read_ledger(out)) == ["a", "b", "c"]


def test_steps_of_other_experiments_stay_known(module, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    run_kept(steps_at(out), out, 1)
    run_kept(steps_at(out)[2:], out, 1)
    assert set(read_ledger(out)) == {"a", "b", "c"}
    row = {"argv": ["a"], "seconds": 1.0, "ended": 2.0}
    (out / "steps.json").write_text(json.dumps({"a": row}))
    assert read_ledger(out)["a"].threads == 1
    for damaged in ("[1]", '{"a":', "\xff", json.dumps({"a": 1}), json.dumps({"a": {**row, "more": 1}}),
                    *(json.dumps({"a": {**row, name: "x"}}) for name in row)):  # fmt: skip
        (out / "steps.json").write_text(damaged, "latin-1")
        with pytest.raises(DataError, match="steps.json: not a record of steps"):
            read_ledger(out)


COMMON = """
order = ["one", "two"]
[sizes.quick]
seeds = 1
n = 3
[sizes.full]
seeds = 2
n = 4
[[step]]
name = "log_{which}"
each = { which = ["one", "two"] }
command = "mini_log --n {n} --output {out}/checkpoints/{which}"
"""
ONE = """
title = "<b>One</b>"
about = "What it is."
[[claim]]
says = "The last figure is the size"
kind = "logged"
metric = "n"
result = "NAME"
equals = 3
"""
LOG = """
import json, pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--output") + 1])
out.mkdir(parents=True, exist_ok=True)
(out / "_log.jsonl").write_text(json.dumps({"step": 1, "n": int(sys.argv[2])}) + "\\n")
"""


@pytest.fixture
def book(tmp_path, module, monkeypatch):
    directory = tmp_path / "experiments"
    directory.mkdir()
    (directory / "common.toml").write_text(COMMON)
    for name in ("one", "two"):
        (directory / f"{name}.toml").write_text(ONE.replace("NAME", name))
    (tmp_path / "code" / "mini_log.py").write_text(LOG)
    monkeypatch.setattr(command, "read_book", lambda: _recipes.read_book(directory))
    return directory


def test_a_whole_run_and_only_a_part_of_it(book, tmp_path, capsys):
    import pandas as pd

    out = tmp_path / "out"
    assert command.main(["--output", str(out), "--only", "two"]) == 0
    assert [p.name for p in (out / "seed-0" / "checkpoints").iterdir()] == ["two"]
    assert pd.read_parquet(out / "claims.parquet").experiment.tolist() == ["two"]
    assert command.main(["--output", str(out), "--set", "n=5"]) == 0
    claims = pd.read_parquet(out / "claims.parquet")
    assert claims.holds.tolist() == [False, False] and claims.value.tolist() == [5, 5]
    assert "0 of 2 claims hold" in capsys.readouterr().out
    page = (out / "paper.html").read_text()
    assert "&lt;b&gt;One&lt;/b&gt;" in page and "--set n=5" in page and "log_two" in page
    assert command.main(["--output", str(out), "--full", "--seed", "7"]) == 0
    assert json.loads((out / "steps.json").read_text())["log_one.8"]["argv"][2] == "4"


@pytest.mark.parametrize(
    "argv, message",
    [
        (["--only", "three"], "error: --only three: no such experiment; there are one, two"),
        (["--set", "m=1"], "error: --set m=1: no such size; there are seeds, n"),
        (["--quick", "--full"], "error: argument --full: not allowed with argument --quick"),
        (["--at-once", "0"], "error: --at-once 0: must be at least 1"),
        (["--seed", "-1"], "error: --seed -1: must be at least 0"),
        (["--set", "seeds=0"], "error: --set seeds=0: must be above 0"),
        (
            ["--output", "gs://bucket/out"],
            "error: --output gs://bucket/out: expected a directory of this machine",
        ),
    ],
)
def test_wrong_options_are_one_line(book, tmp_path, capsys, argv, message):
    assert run_command(command.main, ["--output", str(tmp_path / "out"), *argv]) == 2
    assert capsys.readouterr().err.startswith(message) and not (tmp_path / "out").exists()


def test_a_file_is_no_place_for_a_run(book, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        assert run_command(command.main, ["--output", str(path)]) == 2
        assert capsys.readouterr().err == f"error: --output {path}: not a directory\n"
    assert (tmp_path / "file").read_text() == "mine"


def test_the_directory_may_have_any_name(book, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("with space", "Ünïcode-{n}<b>'\"", "."):
        assert command.main(["--output", name]) == 0
        assert (tmp_path / name / "seed-0" / "checkpoints" / "two").is_dir()
        page = Page((tmp_path / name / "paper.html").read_text("utf-8"))
        assert page.open == [] and "b" not in [tag for tag, _ in page.tags]
    capsys.readouterr()


def test_the_plan_can_be_read_without_running_it(book, tmp_path, capsys):
    assert command.main(["--output", str(tmp_path / "o"), "--plan"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"python -m mini_log --n 3 --output {tmp_path}/o/seed-0/checkpoints/{n}" for n in ("one", "two")
    ]
    assert not (tmp_path / "o").exists()


def cell(**values):
    row = {"experiment": "e", "title": "T", "row": "ours", "column": "EM", "metric": "exact_match",
           "slice": "all",
           "value": 0.441, "ci_low": 0.4, "ci_high": 0.48, "n": 10, "paper": "44.5"}  # fmt: skip
    return {**row, **values}


def claim(**values):
    row = {"claim": "It holds", "expected": "> 0", "holds": True, "why": "1.0", "n": 12345, "paper": "44"}
    return {**row, **values}


def test_the_page_has_the_papers_layout():
    figures = [
        cell(),
        cell(row="theirs", value=None, n=0, paper="40.7"),
        cell(row="empty", value=None, paper=""),
    ]
    parts = [Part("e", "Table", "About.", figures, [claim(), claim(claim="Not", holds=False)])]
    text = miniature_page(
        parts, Made("python -m eval.miniature", [("Seeds", "0")], {"ks": [1, 2]}, [("a", 2.0, "x")])
    )
    page = Page(text)
    assert page.open == [] and len(set(page.ids)) == len(page.ids)
    assert {a["href"][1:] for t, a in page.tags if t == "a"} <= set(page.ids)
    for wanted in ("44.1", "[40.0, 48.0]", "44.5", "ours (paper)", "theirs (paper)", "40.7",
                   "1 of 2 claims hold",
                   "12,345", "✗ does not hold", "1, 2"):  # fmt: skip
        assert wanted in page.text
    assert "theirs " in page.text and page.text.count("theirs") == 1, (
        "a row of the paper alone has no row of ours"
    )


def test_the_page_runs_nothing_and_asks_for_nothing():
    hostile = Part(
        HOSTILE, HOSTILE, HOSTILE, [cell(title=HOSTILE, row=HOSTILE, column=HOSTILE, paper=HOSTILE)],
        [claim(claim=HOSTILE, why=HOSTILE, paper=HOSTILE)], [Chart("other", HOSTILE, "")],
        [Heatmap(HOSTILE, HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), ((0.5,),), (HOSTILE,)), Heatmap("none", "")],
    )  # fmt: skip
    text = miniature_page(
        [hostile], Made(HOSTILE, [(HOSTILE, HOSTILE)], {HOSTILE: 1}, [(HOSTILE, 1.0, HOSTILE)])
    )
    page = Page(text)
    tags = [t for t, _ in page.tags]
    assert page.open == [] and "script" not in tags and "img" not in tags
    assert not [a for _, a in page.tags if "src" in a or "style" in a or any(k.startswith("on") for k in a)]
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'; script-src 'none'; style-src 'sha256-")
    assert "no answer with a posterior by token" in page.text


def test_curves_show_every_point_and_its_interval():
    lines = [
        Series("<a>", (Point("1", 0.25, 0.2, 0.3), Point("2", 0.75, 0.7, 0.8))),
        Series("b", (Point("1", None), Point("2", 0.5))),
    ]
    page = Page(curves("Fig", "K", lines, "note"))
    assert page.open == []
    marks = [t for t, a in page.tags if t in ("circle", "path") and a.get("class") != "way"]
    assert len(marks) == 2 + 3, "two in the legend, three points"
    for wanted in ("25.0", "[20.0, 30.0]", "75.0", "50.0", "note", "<a>, 2: 75.0 [70.0, 80.0]"):
        assert wanted in page.text
    assert Page(curves("Fig", "K", [Series("none", (Point("1", None),))])).open == []
