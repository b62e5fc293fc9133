"""What index does: one index from a whole run, put in place file by file, the settings last."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rag_core import files
from rag_core.digest import digest_of, file_digest
from rag_core.parts import Part, read_report
from rag_core.run_dir import WORK, report_url
from rag_core.schemas import Passage
from rag_core.stages import iter_batches

SETTINGS = "_index.json"


@dataclass(frozen=True)
class IndexTask:
    """A task for `ProcessParts` with a single part: build, put in place, report."""

    output: str
    fingerprint: str
    kind: str
    source: str

    def setup(self) -> None:
        """Nothing to load."""

    def __call__(self, part: Part) -> dict[str, Any]:
        kept = read_report(self.output, part.index, self.fingerprint)
        if kept is not None and all(_stands(self.output, name, f) for name, f in kept["files"].items()):
            return kept
        started = time.time()
        with _attempt(self.output) as directory:
            rows, settings = build_index(self.kind, self.source, directory)
            found = {}
            for info in sorted(files.list_tree(directory), key=lambda f: f.url.endswith(SETTINGS)):
                name = os.path.relpath(info.url, directory)
                found[name] = {"bytes": info.size, "sha256": file_digest(info.url)}
                _put_in_place(info.url, files.join(self.output, name))
        report = {
            "index": part.index,
            "name": "index",
            "fingerprint": self.fingerprint,
            "rows": rows,
            # The settings hold measured speeds, which differ from run to run; the rows do not.
            "row_digest": digest_of({n: f for n, f in found.items() if not n.endswith(SETTINGS)}),
            "bytes": sum(f["bytes"] for f in found.values()),
            "files": found,
            "counts": {"read": rows, "written": rows, "skipped": {}, "dead_lettered": {}},
            "seconds": round(time.time() - started, 3),
            "extra": settings,
        }
        files.write_json(report_url(self.output, part.index), report)
        return report


def build_index(kind: str, source: str, directory: str) -> tuple[int, dict[str, Any]]:
    """Build an index of `kind` from a run directory into a local one; its rows and its settings."""
    from rag_core.retrieval import Bm25Index, FaissIndex

    if kind == "bm25":
        index = Bm25Index.build(iter_passages(source), directory)
        return len(index), {"metric": "bm25"}
    settings = FaissIndex.build(source, kind, directory)
    return settings["passages"], {k: v for k, v in settings.items() if k not in ("files", "passages", "kind")}


def iter_passages(directory: str) -> Iterator[Passage]:
    """The passages of a finished split run, in order."""
    for batch in iter_batches(directory, ["passage_id", "title", "text"]):
        for row in batch.to_pylist():
            yield Passage(**row)


def _stands(output: str, name: str, state: dict[str, Any]) -> bool:
    found = files.info(files.join(output, name))
    return found is not None and found.size == state["bytes"] and file_digest(found.url) == state["sha256"]


@contextlib.contextmanager
def _attempt(output: str) -> Iterator[str]:
    """A local directory to build in, on the output's own disk where it is local: files are then moved."""
    parent = files.join(output, WORK) if files.is_local(output) else None
    if parent:
        os.makedirs(parent, exist_ok=True)
    directory = tempfile.mkdtemp(dir=parent, prefix=files.ATTEMPT)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _put_in_place(path: str, url: str) -> None:
    if files.is_local(url):
        os.makedirs(os.path.dirname(url), exist_ok=True)
        os.replace(path, url)
    else:
        files.upload_file(path, url)
