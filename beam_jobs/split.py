"""Cut a Wikipedia dump, or a corpus of one's own, into passages.

python -m beam_jobs.split --input 'enwiki-*.xml.bz2' --output passages/
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from beam_jobs.options import job_parser, run_job
from beam_jobs.transforms.split_pages import SplitWorker
from beam_jobs.transforms.stage import StagePlan, run_stage
from rag_core import files
from rag_core.corpora import READERS
from rag_core.digest import digest_of, file_digest
from rag_core.errors import DataError, UsageError
from rag_core.parts import Part

LOGIC_VERSION = 1
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
    found = find_inputs(args.input)
    parts = text_parts(found) if args.input_format == "text" else file_parts(found, args.input_format)
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
            "files": [[files.base_name(f.url), f.size, file_digest(f.url)] for f in found],
            "parts": digest_of([sorted(part.source.get("range", [])) for part in parts]),
        },
        models={},
        options=options,
        parts=parts,
        worker=worker,
        unit="pages" if args.input_format in ("wikipedia", "text") else "rows",
        next_step=f"python -m beam_jobs.embed --passages {args.output} --encoder minilm --output EMBEDDINGS",
    )


def find_inputs(patterns: Sequence[str]) -> list[files.FileInfo]:
    """The input files, sorted, each once. UsageError for a pattern without a match."""
    found: dict[str, files.FileInfo] = {}
    for pattern in patterns:
        matched = [f for f in files.list_files(pattern) if not _is_index(f.url)]
        if not matched:
            raise UsageError(f"--input {pattern}: no file matches")
        found.update({f.url: f for f in matched})
    return [found[url] for url in sorted(found)]


def _is_index(url: str) -> bool:
    return "-multistream-index" in files.base_name(url)


def file_parts(found: Sequence[files.FileInfo], input_format: str) -> list[Part]:
    """One part a file; a multistream dump with its index is cut into ranges of whole streams.

    Raises DataError for an empty file.
    """
    sources: list[dict] = []
    for item in found:
        if item.size == 0:
            raise DataError(f"{item.url}: empty file")
        ranges = dump_ranges(item) if input_format == "wikipedia" else []
        sources += [{"url": item.url, "range": r} for r in ranges] or [{"url": item.url}]
    return [Part(i, source) for i, source in enumerate(sources)]


def text_parts(found: Sequence[files.FileInfo]) -> list[Part]:
    """Text files in groups; a page's id is its file name, so no two may share one."""
    urls = [f.url for f in found if f.url.endswith((".txt", ".md"))]
    if not urls:
        raise UsageError("--input-format text: no .txt or .md file among the inputs")
    twice = [name for name, n in Counter(map(files.base_name, urls)).items() if n > 1]
    if twice:
        raise DataError(f"text files share the name {twice[0]!r}, which would be the page id of both")
    groups = [urls[i : i + TEXT_FILES_PER_PART] for i in range(0, len(urls), TEXT_FILES_PER_PART)]
    return [Part(i, {"urls": group}) for i, group in enumerate(groups)]


def dump_ranges(dump: files.FileInfo) -> list[list[int]]:
    """Byte ranges of a multistream dump by the index beside it, about `BYTES_PER_RANGE` each; else none.

    The cut depends on the file alone, never on the number of workers.
    """
    from rag_core.wiki import index_name, read_index

    index = index_name(dump.url)
    if index is None or not files.exists(index):
        return []
    ranges: list[list[int]] = []
    for stream in read_index(index, dump.url):
        if ranges and stream.end - ranges[-1][0] <= BYTES_PER_RANGE:
            ranges[-1][1] = stream.end
        else:
            ranges.append([stream.start, stream.end])
    return ranges


def run(argv: Sequence[str] | None = None) -> int:
    """Run the job; see `--help`."""
    return run_stage(parser(), make_plan, argv)


if __name__ == "__main__":
    run_job(run)
