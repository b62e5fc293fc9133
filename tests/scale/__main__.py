"""`python -m tests.scale [--sizes 10000 100000 1000000]`: the chain over generated passages, and its rates.

Every stage is a command in a process of its own, as a user starts it. Start-up is what the same command
takes over 200 passages (and all the questions); the rate is passages over what the rest took. Memory is the
most that one process of the stage held.
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
    """One stage over one corpus: seconds of the whole process, and the largest resident memory."""

    seconds: float
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
        code = child.wait()
        seconds = time.monotonic() - started
        watch.join()
        if code:
            said.seek(0)
            raise RuntimeError(f"{' '.join(words)}: exit code {code}\n{said.read().decode()[-3000:]}")
    return Measured(seconds, peak[0] / 1024)


def _watch(child: subprocess.Popen[bytes], peak: list[int]) -> None:
    """Keep the largest `VmHWM` (kB) among the process and those below it."""
    while child.poll() is None:
        for pid in (child.pid, *descendants(child.pid)):
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            peak[0] = max(
                [peak[0], *(int(x.split()[1]) for x in status.splitlines() if x.startswith("VmHWM"))]
            )
        time.sleep(0.1)


def run_chain(root: Path, passages: int, questions: int, encoder: str, workers: int, threads: int) -> dict:
    """All stages over `passages` generated passages; `Measured` by stage."""
    directory = root / str(passages)
    write_dump(directory / "dump", passages)
    write_asked(directory / "questions.jsonl", questions, passages // PASSAGES_PER_PAGE)
    at = {name: str(directory / name) for name in STAGES}
    apart = ["--direct_running_mode=multi_processing", f"--direct_num_workers={workers}"]
    flags = apart if workers > 1 else []
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
        found[stage] = measure([*words, "--output", at[stage], *flags], threads)
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


def table(found: dict[int, dict[str, Measured]], small: dict[str, Measured]) -> list[str]:
    """A Markdown table: rates by size, their spread, start-up, memory."""
    sizes = sorted(found)
    lines = [
        "| stage | start-up, s | "
        + " | ".join(f"{n:,}" for n in sizes)
        + " | largest / smallest | memory, MB |"
    ]
    lines.append("|---" * (len(sizes) + 4) + "|")
    for stage in STAGES:
        start = small[stage].seconds
        rates = [n / max(found[n][stage].seconds - start, 1e-3) for n in sizes]
        shown = " | ".join(
            f"{rate:,.0f}/s ({found[n][stage].seconds:.1f} s)" for n, rate in zip(sizes, rates)
        )
        memory = ", ".join(f"{found[n][stage].megabytes:,.0f}" for n in sizes)
        lines.append(f"| {stage} | {start:.1f} | {shown} | {max(rates) / min(rates):.2f} | {memory} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scale", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=1, help="processes; 1: in memory")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of each process")
    args = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ragline-scale-") as directory:
        root = Path(directory)
        encoder = make_tiny_encoder(root / "encoder")
        how = (args.questions, encoder, args.workers, args.threads)
        small = run_chain(root, SMALL, *how)
        found = {n: run_chain(root, n, *how) for n in args.sizes}
    print(
        f"{date.today()}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"{args.workers} process(es) of {args.threads} thread(s); passages of {WORDS_PER_PASSAGE} words, "
        f"{args.questions:,} questions, encoder of 2 layers and 32 numbers; passages a second beyond "
        f"start-up (seconds of the whole command); {time.monotonic() - started:.0f} s in all\n"
    )
    print("\n".join(table(found, small)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
