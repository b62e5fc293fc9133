"""Speed of dump reading, cleaning and splitting, against wikiextractor and mwparserfromhell.

    python -m benchmarks.split [--dump FILE] [--copies 12]

The dump is the public English sample (gensim's test data), repeated with new page ids. Everything runs
on one core. Seconds are processor seconds, user and system, of the process and its children: on a busy
machine they keep their meaning. Needs `pip install .[bench]`; wikiextractor is only ever started as a
command.

Prints one JSON line per pair (`ratio` > 1: ours is faster); rows with `info` are not claims.
"""

from __future__ import annotations

import argparse
import bz2
import itertools
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rag_core.wiki import clean_wikitext, read_pages

SAMPLE = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
DEFAULT_DUMP = Path(__file__).resolve().parents[2] / "shared" / "data" / "wikipedia" / SAMPLE
_PAGE_ID = re.compile(rb"(</ns>\s*<id>)(\d+)")
_OTHER_TEXT = "none: the texts differ by design (docs/cleaning.md)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dump", default=str(DEFAULT_DUMP), help="a .xml.bz2 dump (default: the sample)")
    parser.add_argument("--copies", type=int, default=12, help="how often its pages are repeated")
    args = parser.parse_args()
    if not os.path.exists(args.dump):
        sys.exit(f"{args.dump}: no such dump; give one with --dump")
    with tempfile.TemporaryDirectory(prefix="bench-split-") as work:
        one, many = (os.path.join(work, f"pages{n}.xml.bz2") for n in (1, args.copies))
        megabytes = [repeat_dump(args.dump, n, path) for n, path in ((1, one), (args.copies, many))]
        rows = itertools.chain(
            command_rows(one, many, megabytes, work),
            cleaner_rows(args.dump),
            memory_rows(one, many),
            worker_rows(many, work),
        )
        for row in rows:
            print(json.dumps(row), flush=True)


def repeat_dump(dump: str, copies: int, target: str) -> float:
    """Write a dump with the pages of another `copies` times over. Returns its megabytes of XML."""
    xml = bz2.decompress(Path(dump).read_bytes())
    start, end = xml.index(b"<page>"), xml.rindex(b"</mediawiki>")
    out = [xml[:start]]
    for copy in range(copies):
        out.append(
            _PAGE_ID.sub(lambda m, copy=copy: m[1] + b"%d" % (int(m[2]) + copy * 10**8), xml[start:end])
        )
    out.append(xml[end:])
    repeated = b"".join(out)
    Path(target).write_bytes(bz2.compress(repeated))
    return len(repeated) / 1e6


def command_rows(one: str, many: str, megabytes: list[float], work: str) -> Iterator[dict]:
    """Command against command. What both spend on the small dump is start-up, stated apart."""
    ours = [run_command(_our_command(path, work, i)) for i, path in enumerate((one, many))]
    peer = [run_command(_peer_command(path, work, i)) for i, path in enumerate((one, many))]
    more = megabytes[1] - megabytes[0]
    yield row(
        "command", "wikiextractor", more / (ours[1] - ours[0]), more / (peer[1] - peer[0]), "MB of XML/s/core"
    )
    yield row(
        "command_with_startup",
        "wikiextractor",
        megabytes[1] / ours[1],
        megabytes[1] / peer[1],
        "MB of XML/s/core",
        info=True,
    )


def _our_command(dump: str, work: str, i: int) -> list[str]:
    return [
        sys.executable,
        "-m",
        "beam_jobs.split",
        "--input",
        dump,
        "--output",
        os.path.join(work, f"ours{i}"),
    ]


def _peer_command(dump: str, work: str, i: int) -> list[str]:
    output = os.path.join(work, f"peer{i}")
    return [sys.executable, "-m", "wikiextractor.WikiExtractor", "--processes", "1", "-q", "-o", output, dump]


def run_command(command: list[str]) -> float:
    """Processor seconds of a command pinned to one core."""
    core = {min(os.sched_getaffinity(0))}
    before = _children_seconds()
    done = subprocess.run(
        command, preexec_fn=lambda: os.sched_setaffinity(0, core), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed with {done.returncode}:\n{done.stderr[-2000:]}")
    return _children_seconds() - before


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cleaner_rows(dump: str) -> Iterator[dict]:
    """Function against function, over the wikitext of the articles (redirects left out)."""
    import mwparserfromhell
    from gensim.corpora.wikicorpus import filter_wiki

    texts = [page.wikitext for page in read_pages(dump) if page.redirect is None]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    ours = megabytes / min(seconds_of(clean_wikitext, texts) for _ in range(5))
    stripped = megabytes / seconds_of(lambda text: mwparserfromhell.parse(text).strip_code(), texts)
    yield row("clean", "mwparserfromhell", ours, stripped, "MB of wikitext/s/core")
    filtered = megabytes / seconds_of(filter_wiki, texts)
    yield row("clean", "gensim", ours, filtered, "MB of wikitext/s/core", info=True)


def seconds_of(clean: Callable[[str], object], texts: list[str]) -> float:
    began = time.process_time()
    for text in texts:
        clean(text)
    return time.process_time() - began


def memory_rows(one: str, many: str) -> Iterator[dict]:
    """Peak memory of reading a dump, and of one many times its size."""
    program = (
        "import resource, sys; from rag_core.wiki import read_articles\n"
        "for _ in read_articles(sys.argv[1]): pass\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    small, large = (
        int(
            subprocess.run(
                [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
            ).stdout
        )
        for path in (one, many)
    )
    yield row(
        "peak_memory_large_against_small_dump", "itself", large, small, "MiB", ratio=small / large, info=True
    )


def worker_rows(many: str, work: str) -> Iterator[dict]:
    """Wall time of two dumps read one after the other, and at once by two processes."""
    twin = os.path.join(work, "twin.xml.bz2")
    os.symlink(many, twin)
    program = (
        "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\n"
        "from rag_core.wiki import read_articles\n"
        "for path in sys.argv[2:]:\n    for _ in read_articles(path): pass"
    )
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return
    alone = wall_of([[sys.executable, "-c", program, str(cores[0]), many, twin]])
    both = wall_of(
        [[sys.executable, "-c", program, str(core), path] for core, path in zip(cores, (many, twin))]
    )
    yield row("two_workers_against_one", "itself", both, alone, "s", ratio=alone / both, info=True)


def wall_of(commands: list[list[str]]) -> float:
    began = time.perf_counter()
    running = [subprocess.Popen(command) for command in commands]
    if any(process.wait() for process in running):
        sys.exit("a worker failed")
    return time.perf_counter() - began


def row(
    case: str,
    peer_name: str,
    ours: float,
    peer: float,
    unit: str,
    ratio: float | None = None,
    info: bool = False,
) -> dict:
    result = {
        "case": case,
        "peer_name": peer_name,
        "dtype": None,
        "ours": round(ours, 2),
        "peer": round(peer, 2),
        "unit": unit,
        "ratio": round(ours / peer if ratio is None else ratio, 2),
        "same_output": None,
        "check": _OTHER_TEXT if peer_name != "itself" else "none: the same program",
    }
    return {**result, "info": True} if info else result


if __name__ == "__main__":
    main()
