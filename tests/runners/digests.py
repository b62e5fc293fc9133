"""`python -m tests.runners.digests`: every job on every runner that one machine has, and its row digests.

In memory, two worker processes, and a job service with a worker pool apart. Prints one line a job; exit
code 1 when a runner gives other rows.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from rag_core.run_dir import read_manifest
from tests.beam_jobs.conftest import make_tiny_encoder, write_corpus, write_questions
from tests.runners.cluster import portable_cluster

TWO_PROCESSES = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]


@dataclass(frozen=True)
class Job:
    """A job whose inputs are those that the jobs before it made in memory; `argv` without its output."""

    name: str
    module: str
    argv: tuple[str, ...]

    def run(self, output: str, flags: Sequence[str] = ()) -> list[str]:
        """Run it; the row digests of its parts."""
        job = importlib.import_module(f"beam_jobs.{self.module}")
        assert job.run([*self.argv, "--output", output, *flags]) == 0
        return [part["row_digest"] for part in read_manifest(output)["parts"]]


def miniature(root: str, tsv: str, questions: str, encoder: str) -> list[Job]:
    """The whole chain under `root` (a directory or a URL): corpus and questions lie there already."""
    passages, vectors, index, words, found = (
        f"{root}/{name}" for name in ("split", "embed", "index", "bm25", "retrieve")
    )
    asked = ("--questions", questions, "--task", "custom")
    by_vectors = (*asked, "--question-encoder", encoder)
    answer = (*asked, "--checkpoint", "mini-bart", "--retrieved", found, "--passages", passages)
    return [
        Job("split", "split", ("--input", tsv, "--input-format", "tsv")),
        Job("embed", "embed", ("--passages", passages, "--encoder", encoder)),
        Job("index", "index", ("--embeddings", vectors, "--kind", "flat")),
        Job("bm25", "index", ("--passages", passages, "--kind", "bm25")),
        Job("retrieve", "retrieve", (*by_vectors, "--embeddings", vectors, "--top-k", "5")),
        Job("by_index", "retrieve", (*by_vectors, "--index", index, "--top-k", "5")),
        Job("by_bm25", "retrieve", (*asked, "--index", words, "--top-k", "5")),
        Job("generate", "generate", (*answer, "--n-docs", "2", "--kind", "token", "--max-length", "6")),
    ]


def local_miniature(root: Path) -> list[Job]:
    """Corpus, questions and encoder written under `root`, and the chain over them."""
    tsv = write_corpus(root / "tsv", files=3, rows=40) / "*.tsv"
    questions = write_questions(root / "questions.jsonl", 12)
    return miniature(f"{root}/memory", str(tsv), str(questions), make_tiny_encoder(root / "encoder"))


def main() -> int:
    argparse.ArgumentParser(prog="python -m tests.runners.digests", description=__doc__).parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="ragline-digests-") as directory:
        root = Path(directory)
        lines = []
        with portable_cluster(root / "logs") as apart:
            for job in local_miniature(root):
                found, seconds = {}, {}
                for runner, flags in (("memory", []), ("processes", TWO_PROCESSES), ("portable", apart)):
                    started = time.monotonic()
                    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
                        found[runner] = job.run(f"{root}/{runner}/{job.name}", flags)
                    seconds[runner] = time.monotonic() - started
                same = found["memory"] == found["processes"] == found["portable"]
                wrong += not same
                times = ", ".join(f"{runner} {s:.1f} s" for runner, s in seconds.items())
                shown = " ".join(digest[:12] for digest in found["memory"])
                lines.append(f"{'equal' if same else 'DIFFER'}  {job.name:<9} {shown}  ({times})")
                lines += [] if same else [f"        {runner}: {d}" for runner, d in found.items()]
    print("\n".join(["row digests, part by part, in memory / two processes / portable with a pool:", *lines]))
    return 1 if wrong else 0


if __name__ == "__main__":
    code = main()
    os._exit(code)
