"""Seeded trials: a job is struck by a fault, started again, and must end as if nothing had happened."""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_core import files
from rag_core.errors import DataError, run_command
from rag_core.run_dir import read_manifest
from tests.beam_jobs.conftest import write_corpus, write_questions
from tests.faults.inject import KINDS, Calls, Fault

RESTARTS = 3  # a fault strikes once; the rest is for a job that is refused because another one lives


@dataclass(frozen=True)
class Job:
    """A command to be struck; its output comes last."""

    name: str
    module: str
    argv: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What a trial came to; `error` is None where all is as it should be."""

    job: str
    fault: Fault
    struck: bool
    rows_expected: int
    rows_found: int
    error: str | None


def prepare(root: Path, encoder: str) -> list[Job]:
    """Inputs of every job, made by the jobs before it, each undisturbed."""
    write_corpus(root / "tsv", files=4, rows=25)
    with open(root / "tsv" / "corpus-00.tsv", "a") as corpus:
        corpus.write("a record without its columns\n")  # the poisoned one: dead-lettered, always
    questions = str(write_questions(root / "questions.jsonl", 12))
    asked = ("--questions", questions, "--task", "custom")
    passages, vectors, words, found = (
        str(root / "whole" / n) for n in ("split", "embed", "bm25", "retrieve")
    )
    source = ("--input", str(root / "tsv" / "*.tsv"), "--input-format", "tsv")
    search = (*asked, "--question-encoder", encoder, "--embeddings", vectors, "--top-k", "5")
    read = (*asked, "--checkpoint", "mini-bart", "--retrieved", found, "--passages", passages)
    predictions = str(root / "whole" / "generate")
    learn = (*asked, "--preset", "tiny", "--question-encoder", encoder, "--embeddings", vectors)
    learn += (
        "--passages",
        passages,
        "--n-docs",
        "2",
        "--batch-size",
        "4",
        "--steps",
        "4",
        "--save-every",
        "1",
    )
    jobs = [
        Job("split", "beam_jobs.split", source),
        Job("embed", "beam_jobs.embed", ("--passages", passages, "--encoder", encoder)),
        Job("index", "beam_jobs.index", ("--embeddings", vectors, "--kind", "flat")),
        Job("bm25", "beam_jobs.index", ("--passages", passages, "--kind", "bm25")),
        Job("retrieve", "beam_jobs.retrieve", search),
        Job("search_bm25", "beam_jobs.retrieve", (*asked, "--index", words, "--top-k", "5")),
        Job(
            "generate", "beam_jobs.generate", (*read, "--n-docs", "2", "--kind", "token", "--max-length", "6")
        ),
        Job("train", "rag_core.train", learn),
        Job("eval", "eval.run", (*asked, "--predictions", predictions, "--retrieved", found)),
    ]
    for job in jobs:
        code = run_child(job, str(root / "whole" / job.name), None, root / "logs" / f"{job.name}.log")[0]
        if code:
            raise RuntimeError(f"{job.name} failed undisturbed; see {root / 'logs' / job.name}.log")
    return jobs


def run_child(job: Job, output: str, fault: Fault | None, log: Path) -> tuple[int, bool]:
    """The job in a process of its own; (exit code or minus the signal, whether the fault struck)."""
    log.parent.mkdir(parents=True, exist_ok=True)
    ticket = log.with_suffix(".struck")
    pid = os.fork()
    if not pid:
        code = 1
        try:
            with open(log, "ab", 0) as stream:
                os.dup2(stream.fileno(), 1)
                os.dup2(stream.fileno(), 2)
            calls = Calls(fault)
            module = importlib.import_module(job.module)
            start = getattr(module, "run", None) or module.main
            code = run_command(start, [*job.argv, "--output", output])
            ticket.write_text(json.dumps(calls.struck))
        except BaseException:
            traceback.print_exc()
            ticket.write_text(json.dumps(calls.struck))
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    struck = code < 0 or (ticket.exists() and json.loads(ticket.read_text()))
    ticket.unlink(missing_ok=True)
    return code, struck


def draw_fault(rng: random.Random) -> Fault:
    """Early calls are as likely as late ones on a logarithmic scale: both ends of a job are visited."""
    return Fault(rng.choice(KINDS), int(2 ** rng.uniform(0, 8)), rng.randint(1, 9))


def run_trial(job: Job, fault: Fault, root: Path, name: str) -> Outcome:
    """Strike, look, start again; compare with the undisturbed run."""
    output, log = str(root / "struck" / name), root / "logs" / f"{name}.log"
    whole = read_manifest(str(root / "whole" / job.name))
    code, struck = run_child(job, output, fault, log)
    error = None
    if code:
        error = _looks_finished(output)
        for _ in range(RESTARTS):
            code, _ = run_child(job, output, None, log)
            if not code:
                break
        if code:
            error = f"not finished after {RESTARTS} restarts, exit code {code}; see {log}"
    found = 0
    if error is None:
        again = read_manifest(output)
        found, error = again["rows"], _difference(whole, again, output)
    if error is None:
        shutil.rmtree(output)
    return Outcome(job.name, fault, struck, whole["rows"], found, error)


def _looks_finished(output: str) -> str | None:
    """A job that failed must not look finished, unless only its last words failed after the manifest."""
    try:
        manifest = read_manifest(output)
    except (DataError, FileNotFoundError):
        return None
    missing = [p["name"] for p in manifest["parts"] if not _is_there(output, p)]
    return f"unfinished, but read as finished: {missing}" if missing else None


def _is_there(output: str, part: dict) -> bool:
    return all(os.path.exists(os.path.join(output, n)) for n in part.get("files", {part["name"]: None}))


def _difference(whole: dict, again: dict, output: str) -> str | None:
    """What differs between two runs that should be equal; None when nothing does."""
    digests = [[m["content_digest"], *(p["row_digest"] for p in m["parts"])] for m in (whole, again)]
    if digests[0] != digests[1]:
        return f"{output}: row digests differ"
    for key in ("counts", "ids_seen"):
        if whole.get(key) != again.get(key):
            return f"{output}: {key} {again.get(key)}, undisturbed {whole.get(key)}"
    left = [name for name in os.listdir(output) if name.startswith(files.ATTEMPT)]
    return f"{output}: left behind {left}" if left else None


def run_trials(jobs: Sequence[Job], trials: int, seed: int, root: Path) -> list[Outcome]:
    """`trials` trials, the jobs in turn."""
    outcomes = []
    for n in range(trials):
        rng = random.Random(f"{seed}:{n}")
        job = jobs[n % len(jobs)]
        outcomes.append(run_trial(job, draw_fault(rng), root, f"{n:04d}-{job.name}"))
    return outcomes


def two_at_once(job: Job, root: Path, name: str) -> str | None:
    """Two processes, one directory: one works, the other is refused or finds it finished; rows as ever."""
    output = str(root / "struck" / name)
    pids = []
    for i in range(2):
        pid = os.fork()
        if not pid:
            os._exit(min(run_child(job, output, None, root / "logs" / f"{name}-{i}.log")[0] % 256, 255))
        pids.append(pid)
    codes = sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids)
    if codes not in ([0, 0], [0, 2]):
        return f"{output}: exit codes {codes}"
    return _difference(read_manifest(str(root / "whole" / job.name)), read_manifest(output), output)
