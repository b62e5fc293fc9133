"""The commands as a user types them: exit codes, one line of complaint, kills and restarts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag_core.run_dir import read_manifest
from tests.beam_jobs.conftest import write_corpus, write_questions

ROOT = Path(__file__).resolve().parents[2]
TWO_WORKERS = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]


def command(*words, cwd=ROOT):
    return [sys.executable, "-m", *map(str, words)]


def run(*words):
    return subprocess.run(command(*words), cwd=ROOT, capture_output=True, text=True, timeout=200)


@pytest.mark.parametrize(
    "words, code, complaint",
    [
        (["beam_jobs.split", "--input", "/nosuch.xml", "--output", "OUT"], 2, "no file matches"),
        (["beam_jobs.split", "--input", "EMPTY", "--output", "OUT"], 3, "empty file"),
        (["beam_jobs.split", "--input", "EMPTY", "--output", "."], 2, "nothing was deleted"),
        (["beam_jobs.split", "--inptu", "x", "--output", "OUT"], 2, "--input"),
        (
            ["beam_jobs.embed", "--passages", "EMPTY_DIR", "--encoder", "minilm", "--output", "OUT"],
            3,
            "no finished run",
        ),
        (
            ["beam_jobs.embed", "--passages", "x", "--encoder", "bert-bass", "--output", "OUT"],
            2,
            "unknown model",
        ),
        (["beam_jobs.index", "--kind", "flat", "--output", "OUT"], 2, "needs --embeddings"),
        (
            ["beam_jobs.split", "--input", "EMPTY", "--output", "OUT", "--runner=DaskRunner"],
            2,
            "lost all rows",
        ),
    ],
)
def test_one_line_no_traceback(tmp_path, words, code, complaint):
    (tmp_path / "empty.xml").touch()
    (tmp_path / "empty_dir").mkdir()
    names = {"OUT": tmp_path / "out", "EMPTY": tmp_path / "empty.xml", "EMPTY_DIR": tmp_path / "empty_dir"}
    before = sorted(os.listdir(ROOT))
    done = run(*[names.get(word, word) for word in words])
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("error: ") and complaint in done.stderr and done.stderr.count("\n") == 1
    assert sorted(os.listdir(ROOT)) == before and not (tmp_path / "out").exists()


@pytest.mark.parametrize("job", ["split", "embed", "index", "retrieve", "generate"])
def test_help(job):
    done = run(f"beam_jobs.{job}", "--help")
    assert done.returncode == 0 and done.stdout.startswith(f"usage: python -m beam_jobs.{job}")
    assert "default: None" not in done.stdout and "--output DIR" in done.stdout


def digests(directory):
    return [part["row_digest"] for part in read_manifest(str(directory))["parts"]]


def kill_after(words, output: Path, parts: int) -> int:
    """Start a job in its own process group, SIGKILL the group once `parts` parts have reported."""
    process = subprocess.Popen(
        command(*words),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.time() + 200
    while time.time() < deadline and process.poll() is None:
        reports = list((output / "_work").glob("report-*.json")) if (output / "_work").exists() else []
        if len(reports) >= parts:
            break
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return len(list((output / "_work").glob("report-*.json")))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("workers", [[], TWO_WORKERS], ids=["in_memory", "two_processes"])
def test_killed_and_started_again_gives_the_same_rows(tmp_path, tiny_encoder, workers):
    write_corpus(tmp_path / "tsv", files=12, rows=300)
    source = ["--input", tmp_path / "tsv" / "*.tsv", "--input-format", "tsv"]
    assert run("beam_jobs.split", *source, "--output", tmp_path / "undisturbed").returncode == 0
    killed = tmp_path / "killed"
    words = ["beam_jobs.split", *source, "--output", killed, *workers]
    kept = kill_after(words, killed, 2)
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert 2 <= kept and digests(killed) == digests(tmp_path / "undisturbed")

    embed = ["beam_jobs.embed", "--passages", killed, "--encoder", tiny_encoder, "--output"]
    assert run(*embed, tmp_path / "vectors").returncode == 0
    again = tmp_path / "vectors_killed"
    kill_after([*embed, again, *workers], again, 3)
    assert run(*embed, again, *workers).returncode == 0
    assert digests(again) == digests(tmp_path / "vectors")

    questions = write_questions(tmp_path / "q.jsonl", 50)
    retrieve = [
        "beam_jobs.retrieve",
        "--questions",
        questions,
        "--task",
        "custom",
        "--question-encoder",
        tiny_encoder,
    ]
    retrieve += ["--embeddings", again, "--output"]
    assert run(*retrieve, tmp_path / "found").returncode == 0
    assert run(*retrieve, tmp_path / "found_again", *workers).returncode == 0
    assert digests(tmp_path / "found_again") == digests(tmp_path / "found")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_worker_ends_the_job_with_one_line(tmp_path):
    write_corpus(tmp_path / "tsv", files=30, rows=2000)
    words = ["beam_jobs.split", "--input", tmp_path / "tsv" / "*.tsv", "--input-format", "tsv", "--output"]
    words += [tmp_path / "out", *TWO_WORKERS]
    process = subprocess.Popen(
        command(*words),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    worker = _wait_for_worker(process)
    os.kill(worker, signal.SIGKILL)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 1
    assert "Worker subprocess exited" in errors.splitlines()[-1] and "start the same command again" in errors
    assert "Traceback" not in errors
    assert run(*words).returncode == 0
    assert read_manifest(str(tmp_path / "out"))["rows"] == 60_000


def _wait_for_worker(process) -> int:
    """The pid of a worker process of the job, once there is one."""
    for _ in range(2000):
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and os.getpgid(int(entry.name)) == process.pid:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if b"apache_beam.runners.worker.sdk_worker_main" in words and words[0].endswith(b"python"):
                    return int(entry.name)
        assert process.poll() is None
        time.sleep(0.05)
    raise AssertionError("no worker process appeared")
