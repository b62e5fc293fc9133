"""`python -m tests.scale [--sizes 10000 100000 1000000]`: the chain over generated passages, and its rates.

Every stage is a command in a process of its own, as a user starts it. Start-up is what the same command
takes over 200 passages and all the questions, the median of three; a rate is passages by the processor
seconds beyond it, so that other work on the machine changes little (of eval: the passages that were found for
some question; each is read once). A rate is not told where those seconds are fewer than five times what
start-up itself varies by. Memory is the most that one process of the stage held.
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

import pyarrow.compute as pc

from rag_core.owner import descendants
from rag_core.run_dir import read_manifest
from rag_core.stages import read_table
from tests.beam_jobs.conftest import make_tiny_encoder
from tests.runners.cluster import ROOT
from tests.scale.corpus import PASSAGES_PER_PAGE, WORDS_PER_PASSAGE, write_asked, write_dump

SMALL = 200
STAGES = ("split", "embed", "index", "retrieve", "eval")


@dataclass(frozen=True)
class Measured:
    """One stage over one corpus: passages, seconds of the whole command (clock and processors), memory."""

    passages: int
    seconds: float
    processor: float
    megabytes: float


def measure(words: list[str], threads: int, passages: int) -> Measured:
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
    return Measured(passages, seconds, used.ru_utime + used.ru_stime, peak[0] / 1024)


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


def run_chain(root: Path, size: int, questions: int, encoder: str, threads: int) -> dict:
    """All stages over `size` generated passages; `Measured` by stage."""
    directory = Path(tempfile.mkdtemp(dir=root))
    write_dump(directory / "dump", size)
    write_asked(directory / "questions.jsonl", questions, size // PASSAGES_PER_PAGE)
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
        passages = distinct_passages(at["retrieve"]) if stage == "eval" else size
        found[stage] = measure([*words, "--output", at[stage]], threads, passages)
        print(f"  {size:>9,} {stage:<9} {found[stage].seconds:8.1f} s", file=sys.stderr, flush=True)
    for stage, rows in (
        ("split", size),
        ("embed", size),
        ("index", size),
        ("retrieve", questions),
    ):
        if read_manifest(at[stage])["rows"] != rows:
            raise RuntimeError(f"{stage}: {read_manifest(at[stage])['rows']} rows, expected {rows}")
    return found


def distinct_passages(retrieved: str) -> int:
    lists = read_table(retrieved, ["passage_ids"]).column("passage_ids")
    return pc.count_distinct(pc.list_flatten(lists)).as_py()


def typical(runs: list[Measured]) -> Measured:
    """The run whose processor time is the median."""
    return sorted(runs, key=lambda m: m.processor)[len(runs) // 2]


def rate(measured: Measured, small: list[Measured]) -> float | None:
    """Passages by the processor seconds beyond start-up; None where start-up's own variation hides them."""
    times = [m.processor for m in small]
    beyond = measured.processor - typical(small).processor
    return None if beyond <= 5 * (max(times) - min(times)) else measured.passages / beyond


def table(found: dict[int, dict[str, Measured]], small: list[dict[str, Measured]]) -> list[str]:
    """A Markdown table: rates by size, their spread, start-up, memory."""
    sizes = sorted(found)
    heads = [f"{n:,}" for n in sizes]
    lines = [f"| stage | start-up, s | {' | '.join(heads)} | largest / smallest | memory, MB |"]
    lines.append("|---" * (len(sizes) + 4) + "|")
    for stage in STAGES:
        start, by_size = [run[stage] for run in small], [found[n][stage] for n in sizes]
        rates = [rate(m, start) for m in by_size]
        shown = " | ".join(
            f"{'hidden' if r is None else f'{r:,.0f} /s'} ({m.seconds:.1f} s)" for r, m in zip(rates, by_size)
        )
        told = [r for r in rates if r is not None]
        spread = f"{max(told) / min(told):.2f}" if len(told) > 1 else "–"
        memory = ", ".join(f"{m.megabytes:,.0f}" for m in by_size)
        times = sorted(m.processor for m in start)
        lines.append(
            f"| {stage} | {typical(start).processor:.1f} ({times[0]:.1f}–{times[-1]:.1f}) "
            f"| {shown} | {spread} | {memory} |"
        )
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
        small = [run_chain(root, SMALL, *how) for _ in range(3)]
        found = {n: run_chain(root, n, *how) for n in args.sizes}
    print(
        f"{date.today()}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"{args.threads} thread(s); passages of {WORDS_PER_PASSAGE} words, "
        f"{args.questions:,} questions, encoder of 2 layers and 32 numbers; rates by processor "
        f"seconds (in brackets the whole command, on the clock); {time.monotonic() - started:.0f} s in all\n"
    )
    print("\n".join(table(found, small)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
