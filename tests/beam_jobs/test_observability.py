"""What a job tells a machine: JSON lines, counters that agree with the manifest, no secret anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from beam_jobs import split
from beam_jobs.transforms import parts, stage
from beam_jobs.transforms.counters import differences, manifest_counts
from beam_jobs.transforms.progress import Progress, complaint, set_up_logging
from rag_core.errors import run_command
from rag_core.run_dir import read_manifest
from tests.beam_jobs.conftest import write_corpus

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def text_again():
    yield
    set_up_logging("text")


def corpus(tmp_path, rows=10):
    directory = write_corpus(tmp_path / "tsv", files=2, rows=rows)
    with open(directory / "corpus-00.tsv", "a") as stream:
        stream.write("a record without its columns\n")
    return ["--input", str(directory / "*.tsv"), "--input-format", "tsv", "--min-words", "2"]


def events(stderr: str) -> list[dict]:
    return [json.loads(line) for line in stderr.splitlines()]


def test_each_event_is_one_json_line_with_counts_rates_and_memory(tmp_path, capsys):
    out = str(tmp_path / "out")
    assert split.run([*corpus(tmp_path), "--output", out, "--log-format", "json"]) == 0
    start, *_, end = events(capsys.readouterr().err)
    assert (start["event"], start["job"], start["parts"], start["runner"]) == (
        "start",
        "split",
        2,
        "FnApiRunner",
    )
    assert end["event"] == "end" and end["rows"] == 20 and end["parts"] == 2
    assert end["counts"] == read_manifest(out)["counts"]
    assert sum(end["counts"]["dead_lettered"].values()) == 1
    assert end["content_digest"] == read_manifest(out)["content_digest"]
    assert end["rows_per_second"] > 0 and end["rows_per_part_second"] > 0
    assert end["memory_peak_bytes"] > 1 << 20 and end["worker_memory_peak_bytes"] > 1 << 20
    expected = {"parts": 2, "rows": 20, "read": 21, "written": 20, "dead_lettered": 1}
    assert {name: end["counters"][name] for name in expected} == expected
    assert end["counters_exact"] is True and end["counters_differ"] == {}

    assert split.run([*corpus(tmp_path), "--output", out, "--log-format", "json"]) == 0
    (again,) = events(capsys.readouterr().err)
    assert again["event"] == "end" and again["already_complete"] is True and again["rows"] == 20


def test_a_counter_that_differs_is_a_warning_with_both_numbers(tmp_path, capsys, monkeypatch):
    twice = lambda report: parts_count(parts_count(report))  # noqa: E731
    parts_count = parts.count_report
    monkeypatch.setattr(parts, "count_report", twice)
    argv = [*corpus(tmp_path), "--output", str(tmp_path / "out")]
    assert split.run(argv) == 0
    told = capsys.readouterr().err
    assert (
        "the runner's counters differ from the manifest: parts 4 (manifest 2), rows 40 (manifest 20)" in told
    )


def test_where_work_is_repeated_larger_counters_are_no_fault(tmp_path, capsys, monkeypatch):
    parts_count = parts.count_report
    monkeypatch.setattr(parts, "count_report", lambda report: parts_count(parts_count(report)))
    monkeypatch.setattr(stage, "LOCAL_RUNNERS", ())
    argv = [*corpus(tmp_path), "--output", str(tmp_path / "out"), "--log-format", "json"]
    assert split.run(argv) == 0
    *before, end = events(capsys.readouterr().err)
    assert [e for e in before if e["level"] == "warning"] == []
    assert end["counters_exact"] is False
    assert end["counters_differ"]["rows"] == {"counter": 40, "manifest": 20}


def test_counters_that_cannot_be_read_do_not_fail_a_finished_run(tmp_path, capsys, monkeypatch):
    def refuse(_):
        raise NotImplementedError("this runner keeps none")

    monkeypatch.setattr(stage, "read_counters", refuse)
    assert split.run([*corpus(tmp_path), "--output", str(tmp_path / "out")]) == 0
    assert (
        "counters could not be read: NotImplementedError: this runner keeps none" in capsys.readouterr().err
    )


def test_differences():
    counts = {"read": 5, "written": 3, "skipped": {"short": 1}, "dead_lettered": {"bad": 1}}
    manifest = {"parts": [{}], "rows": 7, "counts": counts}
    assert manifest_counts(manifest) == {
        "parts": 1, "rows": 7, "read": 5, "written": 3, "skipped": 1, "dead_lettered": 1,
    }  # fmt: skip
    assert differences(manifest, manifest_counts(manifest)) == {}
    assert differences(manifest, {**manifest_counts(manifest), "rows": 9}) == {"rows": (9, 7)}


def test_progress_counts_the_reports_of_this_run(tmp_path, capsys):
    (tmp_path / "_work").mkdir()
    for name in (
        "report-00000.json",
        "report-00002.json",
        "report-00009.json",
        "_attempt-1-report-00001.json.x",
    ):
        (tmp_path / "_work" / name).touch()
    progress = Progress(str(tmp_path), "split", {0, 1, 2})
    assert progress._reported() == 2
    set_up_logging("json")
    progress._say(2, 4.0, 2.0)
    (line,) = events(capsys.readouterr().err)
    assert (line["event"], line["parts_done"], line["parts"], line["seconds_left"]) == ("progress", 2, 3, 2)
    assert line["memory_bytes"] > 1 << 20


def test_a_failed_command_ends_with_a_json_line(tmp_path, capsys):
    argv = ["--input", "/nosuch", "--output", str(tmp_path / "o"), "--log-format", "json"]
    assert run_command(split.run, argv, wording=complaint) == 2
    (line,) = events(capsys.readouterr().err)
    assert (line["event"], line["exit_code"], line["level"]) == ("failed", 2, "error")
    assert line["message"] == "--input /nosuch: no file matches"


SECRETS = ["--s3_secret_access_key=Qx7-hush", "--s3_access_key_id=Qx8-hush", "--s3_session_token=Qx9-hush"]


def test_no_secret_in_run_manifest_or_log(tmp_path, capsys):
    out = tmp_path / "out"
    argv = [*corpus(tmp_path), "--output", str(out), "--log-format", "json", "--labels=token=Qx6", *SECRETS]
    assert split.run(argv) == 0
    said = capsys.readouterr()
    for path in (out / "_run.json", out / "_manifest.json"):
        launch = json.loads(path.read_text())["launch"]
        assert launch["options"]["s3_secret_access_key"] == "***" and launch["runner"] == "FnApiRunner"
    everything = (
        said.out + said.err + "".join(p.read_text(errors="replace") for p in out.rglob("*") if p.is_file())
    )
    assert "hush" not in everything


def test_no_secret_in_a_complaint(tmp_path, capsys):
    argv = ["--input", "https://user:Qx5-hush@host/x?token=Qx4-hush", "--output", str(tmp_path / "o")]
    for extra in ([], ["--s3_secret_acess_key=Qx3-hush"], ["--log-format", "json"]):
        assert run_command(split.run, [*argv, *extra], wording=complaint) == 2
        said = capsys.readouterr()
        assert "***" in said.err and "hush" not in said.err + said.out


def test_no_secret_in_a_traceback(tmp_path):
    code = (
        "from beam_jobs.options import run_job\n"
        "def main(argv=None):\n"
        "    raise RuntimeError('--s3_secret_access_key=Qx2-hush')\n"
        "run_job(main)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" in done.stderr and "***" in done.stderr
    assert "hush" not in done.stderr
