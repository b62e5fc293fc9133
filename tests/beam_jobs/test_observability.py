"""What a job tells a machine: JSON lines, counters that agree with the manifest, no secret anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from beam_jobs import embed, retrieve, split
from beam_jobs.transforms import parts, stage
from beam_jobs.transforms.counters import differences, manifest_counts
from beam_jobs.transforms.progress import Progress, complaint, set_up_logging
from rag_core.errors import DataError, UnreachableError, UsageError, run_command
from rag_core.parts import Part
from rag_core.run_dir import read_manifest
from tests.beam_jobs.conftest import split_options, write_corpus, write_questions

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
    argv = [
        *corpus(tmp_path),
        "--output",
        str(out),
        "--log-format",
        "json",
        "--labels=token=Qx6-hush",
        *SECRETS,
    ]
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


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_hostile_file_name_ends_no_line_and_steers_no_terminal(tmp_path, capsys, log_format):
    name = 'c\n{"event": "end"}\x1b[31m\u2028\u0085\u202e%s"\udcff.tsv'
    source = write_corpus(tmp_path / "tsv", files=1, rows=2)
    for target in (f"a{name}", f"b{name}"):
        (source / target).write_bytes((source / "corpus-00.tsv").read_bytes())
    out = tmp_path / f"out{name}"
    argv = split_options(source, out)
    assert split.run([*argv, "--log-format", log_format]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 2 and said.out.isascii()
    if log_format == "json":
        told = events(said.err)
        assert [e["event"] for e in told] == ["log", "log", "start", "end"] and said.err.isascii()
        assert told[2]["output"] == told[3]["output"] == str(out)
        assert str(source / f"a{name}") in told[0]["message"]
    else:
        shown = warnings.formatwarning(f"{name} is a copy", UserWarning, "x.py", 1)
        assert shown.isascii() and shown.count("\n") == 1 and "\\x1b[31m" in shown
    assert run_command(split.run, [*argv, "--mode", "x\x1by"], wording=complaint) == 2
    assert "\x1b" not in capsys.readouterr().err


class Flaky:
    """A part's task on a store that fails so many times."""

    def __init__(self, failures: int) -> None:
        self.failures, self.asked = failures, 0

    def setup(self) -> None:
        """Nothing to load."""

    def __call__(self, part):
        self.asked += 1
        if self.asked <= self.failures:
            raise UnreachableError("s3://id:Qw/quiet-hush@b/x: cannot be used: 503")
        return {
            "index": part.index,
            "rows": 1,
            "counts": {"read": 1, "written": 1, "skipped": {}, "dead_lettered": {}},
        }


@pytest.mark.parametrize("failures, reports", [(0, 1), (2, 1), (3, 0)])
def test_a_store_that_fails_once_is_asked_again(monkeypatch, caplog, failures, reports):
    """And the part is counted once."""
    counted, waited = [], []
    monkeypatch.setattr(parts, "count_report", lambda report: counted.append(report) or report)
    monkeypatch.setattr(parts.time, "sleep", waited.append)
    (found,) = parts.PartFn(Flaky(failures)).process(Part(4, {}))
    assert len(counted) == reports and waited == [1.0, 5.0][:failures]
    if not reports:
        assert found == {"index": 4, "error": "s3://***@b/x: cannot be used: 503"}


def test_a_fault_in_a_thread_is_a_line_like_any_other(capsys):
    set_up_logging("json")
    with stage._end_with_workers():
        fail = lambda: int("--token=Qv7-hush")  # noqa: E731
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
    (line,) = events(capsys.readouterr().err)
    assert "ValueError" in line["traceback"] and "hush" not in json.dumps(line)


def test_a_directory_taken_over_while_steps_fail_is_told_in_one_line(tmp_path, monkeypatch):
    """The step's own error comes from the other owner's work and says nothing."""
    out = tmp_path / "out"

    def taken(*_):
        run = json.loads((out / "_run.json").read_text())
        (out / "_run.json").write_text(json.dumps({**run, "owner": {**run["owner"], "token": "other"}}))
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(parts, "write_part", taken)
    with pytest.raises(UsageError, match="taken over by process"):
        split.run([*corpus(tmp_path), "--output", str(out)])


def test_keys_in_a_url_are_shown_nowhere(tmp_path, capsys, monkeypatch):
    """Whatever the store's client quotes of it."""

    def refuse(patterns):
        raise BeamIOError(f"invalid bucket name {patterns[0].split('//')[1]!r}")

    monkeypatch.setattr(FileSystems, "match", refuse)
    for source in ("s3://AKIA:Qt/quiet-hush@bucket/x.tsv", "gs://id:Qs-quiet-hush@bucket/*.tsv"):
        argv = ["--input", source, "--input-format", "tsv", "--output", str(tmp_path / "o"), "--dry_run"]
        assert run_command(split.run, argv, wording=complaint) == 2
        said = capsys.readouterr()
        assert "invalid bucket name" in said.err and "hush" not in said.err + said.out


def test_a_callers_fault_on_any_worker_keeps_its_words_and_its_code():
    """From another process nothing comes back but the text of a traceback."""
    text = (
        'Traceback (most recent call last):\n  File "x.py", line 3\n'
        "rag_core.errors.{}: e/part-00001.parquet: {}\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "rag_core.errors.{}: e/part-00001.parquet: {} [while running 'Retrieve/Search']\n\n"
    )
    for kind, expected in (("DataError", DataError), ("UnreachableError", UsageError)):
        fault = stage.fault_of_step(text.format(kind, "cut [1]", kind, "cut [1]"))
        assert type(fault) is expected and str(fault) == "e/part-00001.parquet: cut [1]"
    assert stage.fault_of_step("Traceback\nValueError: x") is None
    assert stage.fault_of_step("rag_core.other.Strange: x") is None


def test_a_damaged_shard_is_one_line(tmp_path, capsys, tiny_encoder):
    """A step that makes no report of its faults: the complaint alone, not Beam's log of it."""
    run, e = corpus(tmp_path), tmp_path / "e"
    assert split.run([*run, "--output", str(tmp_path / "p")]) == 0
    assert embed.run(["--passages", str(tmp_path / "p"), "--encoder", tiny_encoder, "--output", str(e)]) == 0
    part = e / "part-00001.parquet"
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 0xFF
    part.write_bytes(data)
    argv = ["--questions", str(write_questions(tmp_path / "q.jsonl", 3)), "--task", "custom"]
    argv += ["--question-encoder", tiny_encoder, "--embeddings", str(e), "--output", str(tmp_path / "o")]
    capsys.readouterr()
    assert run_command(retrieve.run, argv, wording=complaint) == 3
    told = capsys.readouterr().err
    assert told.startswith(f"error: {part}: ") and told.count("\n") == 1 and "while running" not in told
