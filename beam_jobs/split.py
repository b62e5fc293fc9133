"""Cut a Wikipedia dump, or a corpus of one's own, into passages.

python -m beam_jobs.split --input 'enwiki-*.xml.bz2' --output passages/
"""

from __future__ import annotations

import argparse
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from shlex import quote

from beam_jobs.options import job_parser, run_job
from beam_jobs.transforms.split_pages import SplitWorker
from beam_jobs.transforms.stage import StagePlan, run_stage
from rag_core import files
from rag_core.corpora import READERS
from rag_core.digest import digest_of, file_digest
from rag_core.errors import DataError, UsageError
from rag_core.parts import Part
from rag_core.wiki import PageIds, index_name, merge_ranges, read_index

LOGIC_VERSION = 3
FORMATS = ("wikipedia", *READERS, "text")
TEXT_FILES_PER_PART = 1000
BYTES_PER_RANGE = 32 << 20

DESCRIPTION = """Cut a corpus into passages of 100 words.

wikipedia: MediaWiki XML, plain, .bz2 or .gz; a multistream index beside a dump is found by name.
tsv, jsonl, parquet: rows are passages already; kept whole under their ids.
text: .txt and .md files, one article each."""


def parser() -> argparse.ArgumentParser:
    p = job_parser("split", DESCRIPTION)
    p.add_argument("--input", required=True, nargs="+", metavar="GLOB", help="files, globs or URLs")
    p.add_argument("--input-format", choices=FORMATS, default="wikipedia")
    p.add_argument("--words", type=int, default=100, help="words in a passage")
    p.add_argument(
        "--mode",
        choices=("disjoint", "dpr"),
        default="disjoint",
        help="disjoint: title apart, last passage short; dpr: title in the text, last passage filled up",
    )
    p.add_argument("--lang", default="en", help="language of the wiki (template and namespace names)")
    p.add_argument("--namespaces", type=int, nargs="+", default=[0], metavar="N", help="namespaces to keep")
    p.add_argument("--keep-redirects", action="store_true", help="keep redirect pages")
    p.add_argument("--keep-disambiguation", action="store_true", help="keep disambiguation pages")
    p.add_argument("--keep-lists", action="store_true", help="keep the items of bulleted and numbered lists")
    p.add_argument("--min-words", type=int, default=0, help="skip articles (or rows) of fewer words")
    return p


def make_plan(args: argparse.Namespace) -> StagePlan:
    if args.words < 1:
        raise UsageError(f"--words {args.words}: must be at least 1")
    if args.min_words < 0:
        raise UsageError(f"--min-words {args.min_words}: must not be negative")
    if not re.fullmatch(r"[a-z]{2,3}(-[a-z]+)*", args.lang):
        raise UsageError(f"--lang {args.lang}: not a wiki's language code, such as en or zh-yue")
    found = find_inputs(args.input, args.input_format)
    parts = text_parts(found) if args.input_format == "text" else file_parts(found, args.input_format)
    digests = {f.url: file_digest(f.url) for f in found}
    if args.input_format != "text":
        warn_of_copies(digests)
    worker = SplitWorker(
        input_format=args.input_format,
        words=args.words,
        mode=args.mode,
        lang=args.lang,
        namespaces=tuple(args.namespaces),
        keep_redirects=args.keep_redirects,
        keep_disambiguation=args.keep_disambiguation,
        keep_lists=args.keep_lists,
        min_words=args.min_words,
    )
    options = {**vars(worker), "namespaces": list(worker.namespaces)}
    return StagePlan(
        job="split",
        logic_version=LOGIC_VERSION,
        inputs={
            "files": [[files.base_name(f.url), f.size, digests[f.url]] for f in found],
            "parts": digest_of([part.source.get("range", []) for part in parts]),
        },
        models={},
        options=options,
        parts=parts,
        worker=worker,
        unit="pages" if args.input_format in ("wikipedia", "text") else "rows",
        next_step=f"python -m beam_jobs.embed --passages {quote(args.output)} "
        "--encoder minilm --output EMBEDDINGS",
    )


def find_inputs(patterns: Sequence[str], input_format: str) -> list[files.FileInfo]:
    """The input files, sorted, each once (also when two names lead to it).

    A directory stands for its files; for `text`, for those below it too. Names that start with `.` or
    `_` are left out there. Raises UsageError for a pattern without a match.
    """
    found: dict[str, files.FileInfo] = {}
    for pattern in patterns:
        matched = _matches(pattern, input_format)
        if not matched:
            raise UsageError(f"--input {pattern}: no file matches")
        for item in matched:
            found.setdefault(os.path.realpath(item.url) if files.is_local(item.url) else item.url, item)
    return sorted(found.values(), key=lambda f: f.url)


def warn_of_copies(digests: Mapping[str, str]) -> None:
    """Warn when two files (name → digest) hold the same bytes: their passages will be there twice."""
    first: dict[str, str] = {}
    for url, digest in digests.items():
        if first.setdefault(digest, url) != url:
            warnings.warn(f"{url} is a copy of {first[digest]}: its passages come twice", stacklevel=2)


def _matches(pattern: str, input_format: str) -> list[files.FileInfo]:
    if files.is_local(pattern) and os.path.isdir(pattern):
        below = files.list_tree(pattern) if input_format == "text" else files.list_files(pattern)
        inside = [f.url[len(pattern) :].strip("/").split("/") for f in below]
        return [f for f, names in zip(below, inside) if not any(n.startswith((".", "_")) for n in names)]
    return [f for f in files.list_files(pattern) if "-multistream-index" not in files.base_name(f.url)]


def file_parts(found: Sequence[files.FileInfo], input_format: str) -> list[Part]:
    """One part a file; a multistream dump with its index is cut into ranges of whole streams.

    Raises DataError for an empty file.
    """
    sources: list[dict] = []
    for item in found:
        if item.size == 0:
            raise DataError(f"{item.url}: empty file")
        ranges = dump_ranges(item) if input_format == "wikipedia" else []
        sources += [{"url": item.url, **r} for r in ranges] or [{"url": item.url}]
    return [Part(i, source) for i, source in enumerate(sources)]


def text_parts(found: Sequence[files.FileInfo]) -> list[Part]:
    """Text files in groups; a page's id is its path below the folder that holds all of them."""
    urls = [f.url for f in found if f.url.lower().endswith((".txt", ".md"))]
    if not urls:
        raise UsageError("--input-format text: no .txt or .md file among the inputs")
    root = os.path.commonprefix([url[: len(url) - len(files.base_name(url))] for url in urls])
    root = root[: root.rfind("/") + 1]
    groups = [urls[i : i + TEXT_FILES_PER_PART] for i in range(0, len(urls), TEXT_FILES_PER_PART)]
    return [Part(i, {"urls": group, "root": root}) for i, group in enumerate(groups)]


def dump_ranges(dump: files.FileInfo) -> list[dict]:
    """Ranges of a multistream dump by the index beside it, about `BYTES_PER_RANGE` each; else none.

    Each is `{"range": [start, end], "pages": count, "ids": digest}`: what is read there is checked against
    the ids of the index, without the graph having to hold them.
    The cut depends on the file alone, never on the number of workers.
    """
    index = index_name(dump.url)
    if index is None or not files.exists(index):
        return []
    ranges = merge_ranges(read_index(index, dump.url), BYTES_PER_RANGE)
    promised = [PageIds.of(r.page_ids) for r in ranges]
    return [
        {"range": [r.start, r.end], "pages": ids.count, "ids": ids.digest} for r, ids in zip(ranges, promised)
    ]


def run(argv: Sequence[str] | None = None) -> int:
    """Run the job; see `--help`."""
    return run_stage(parser(), make_plan, argv)


if __name__ == "__main__":
    run_job(run)
