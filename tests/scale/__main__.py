"""`python -m tests.scale [--sizes 10000 100000 1000000]`: the chain over generated passages, and its rates.

Every stage is a command in a process of its own, as a user starts it. Start-up is what the same command
takes over 200 passages (and all the questions), the median of three; a rate is passages by the processor
seconds beyond it, so that other work on the machine changes little. eval's cost is its questions': its rate
is questions by all of its processor seconds. Memory is the most that one process of the stage held.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from rag_core.owner import descendants
from rag_core.run_dir import read_manifest
from tests.beam_jobs.conftest import make_tiny_encoder
from tests.runners.cluster import ROOT
from tests.scale.corpus import PASSAGES_PER_PAGE, WORDS_PER_PASSAGE, write_asked, write_dump

SMALL = 200
STAGES = ("split", "embed", "index", "retrieve", "eval")


@dataclass(frozen=True)
class Measured:
    """One stage over one corpus: seconds of the whole command, on the clock and of processors; memory."""

    seconds: float
    processor: float
    megabytes: float


def measure(words: list[str], threads: int) -> Measured:
    """Run `python -m WORDS`; raises RuntimeError with its last lines when it fails."""
    env = {**os.environ, "OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
    started = time.monotonic()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen([sys.executable, "-m", *words], cwd=ROOT, env=env, stdout=said, stderr=said)
        peak = [0]
        watch = threading.Thread(target=_watch, args=(child, peak), daemon=True)
        watch.start()
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.monotonic() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        watch.join()
        if child.returncode:
            said.seek(0)
            raise RuntimeError(
                f"{' '.join(words)}: exit code {child.returncode}\n{said.read().decode()[-3000:]}"
            )
    return Measured(seconds, used.ru_utime + used.ru_stime, peak[0] / 1024)


def _watch(child: subprocess.Popen[bytes], peak: list[int]) -> None:
    """Keep the largest `VmHWM` (kB) among the process and those below it."""
    while child.returncode is None:
        for pid in (child.pid, *descendants(child.pid)):
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            peak[0] = max(
                [peak[0], *(int(x.split()[1]) for x in status.splitlines() if x.startswith("VmHWM"))]
            )
        time.sleep(0.1)


def run_chain(root: Path, passages: int, questions: int, encoder: str, threads: int) -> dict:
    """All stages over `passages` generated passages; `Measured` by stage."""
    directory = Path(tempfile.mkdtemp(dir=root))
    write_dump(directory / "dump", passages)
    write_asked(directory / "questions.jsonl", questions, passages // PASSAGES_PER_PAGE)
    at = {name: str(directory / name) for name in STAGES}
    vectors = ["--embeddings", at["embed"]]
    asked = ["--questions", str(directory / "questions.jsonl"), "--task", "custom"]
    cut = ["--words", str(WORDS_PER_PASSAGE)]
    commands = {
        "split": ["beam_jobs.split", "--input", str(directory / "dump" / "*.xml"), *cut],
        "embed": ["beam_jobs.embed", "--passages", at["split"], "--encoder", encoder],
        "index": ["beam_jobs.index", *vectors, "--kind", "flat"],
        "retrieve": [
            "beam_jobs.retrieve",
            *asked,
            "--question-encoder",
            encoder,
            "--embeddings",
            at["embed"],
        ],
        "eval": ["eval.run", *asked, "--retrieved", at["retrieve"], "--passages", at["split"]],
    }
    commands["retrieve"] += ["--top-k", "20"]
    found = {}
    for stage, words in commands.items():
        found[stage] = measure([*words, "--output", at[stage]], threads)
        print(f"  {passages:>9,} {stage:<9} {found[stage].seconds:8.1f} s", file=sys.stderr, flush=True)
    for stage, rows in (
        ("split", passages),
        ("embed", passages),
        ("index", passages),
        ("retrieve", questions),
    ):
        if read_manifest(at[stage])["rows"] != rows:
            raise RuntimeError(f"{stage}: {read_manifest(at[stage])['rows']} rows, expected {rows}")
    return found


def typical(runs: list[dict[str, Measured]]) -> dict[str, Measured]:
    """By stage, the run whose processor time is the median."""
    return {
        stage: sorted((run[stage] for run in runs), key=lambda m: m.processor)[len(runs) // 2]
        for stage in STAGES
    }


def table(found: dict[int, dict[str, Measured]], small: dict[str, Measured], questions: int) -> list[str]:
    """A Markdown table: rates by size, their spread, start-up, memory."""
    sizes = sorted(found)
    lines = [
        "| stage | start-up, s | "
        + " | ".join(f"{n:,}" for n in sizes)
        + " | largest / smallest | memory, MB |"
    ]
    lines.append("|---" * (len(sizes) + 4) + "|")
    for stage in STAGES:
        start, by_size = small[stage], [found[n][stage] for n in sizes]
        if stage == "eval":
            rates = [questions / m.processor for m in by_size]
        else:
            rates = [n / max(m.processor - start.processor, 1e-3) for n, m in zip(sizes, by_size)]
        unit = "questions/s" if stage == "eval" else "/s"
        shown = " | ".join(f"{rate:,.0f} {unit} ({m.seconds:.1f} s)" for rate, m in zip(rates, by_size))
        memory = ", ".join(f"{m.megabytes:,.0f}" for m in by_size)
        spread = max(rates) / min(rates)
        lines.append(f"| {stage} | {start.processor:.1f} | {shown} | {spread:.2f} | {memory} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scale", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=1, help="of the one process of a stage")
    args = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ragline-scale-") as directory:
        root = Path(directory)
        encoder = make_tiny_encoder(root / "encoder")
        how = (args.questions, encoder, args.threads)
        small = typical([run_chain(root, SMALL, *how) for _ in range(3)])
        found = {n: run_chain(root, n, *how) for n in args.sizes}
    print(
        f"{date.today()}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"{args.threads} thread(s); passages of {WORDS_PER_PASSAGE} words, "
        f"{args.questions:,} questions, encoder of 2 layers and 32 numbers; rates by processor "
        f"seconds (in brackets the whole command, on the clock); {time.monotonic() - started:.0f} s in all\n"
    )
    print("\n".join(table(found, small, args.questions)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
