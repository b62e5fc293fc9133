"""What index does: one index from a whole run, put in place file by file, the settings last.

    train ─▶ _work/trained.faiss ─▶ shards, in parallel ─▶ _work/shard-*.faiss ─▶ merge, measure, write

A shard is a part of the embeddings. HNSW graphs cannot be merged and BM25 needs counts over all
passages: these are built in one go.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from beam_jobs.options import register_file_systems
from beam_jobs.transforms.parts import PartFn, patiently
from rag_core import files
from rag_core.digest import digest_of, file_digest
from rag_core.parts import Part, read_report
from rag_core.run_dir import WORK, report_url
from rag_core.schemas import Passage
from rag_core.stages import iter_batches, part_urls, stage_manifest

SETTINGS = "_index.json"
SEED = 0


@dataclass(frozen=True)
class IndexTask:
    """A task with a single part: build (from shards, where there are any), put in place, report."""

    output: str
    fingerprint: str
    kind: str
    source: str
    shards: tuple[Part, ...] = ()

    def setup(self) -> None:
        """Nothing to load."""

    def __call__(self, part: Part) -> dict[str, Any]:
        kept = self.kept()
        if kept is not None:
            return kept
        started = time.monotonic()
        with _attempt(self.output) as directory:
            rows, settings = self._build(directory)
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
            "seconds": round(time.monotonic() - started, 3),
            "extra": settings,
        }
        files.write_json(report_url(self.output, part.index), report)
        files.delete([self._url("trained"), *(self._url(shard.index) for shard in self.shards)])
        return report

    def kept(self) -> dict[str, Any] | None:
        """The report of an index that stands as it was written."""
        report = read_report(self.output, 0, self.fingerprint)
        found = report.get("files") if report is not None else None
        return report if found and all(_stands(self.output, n, f) for n, f in found.items()) else None

    def train(self) -> None:
        """Train the empty index that every shard starts from."""
        from rag_core.retrieval import faiss_build

        if self.kept() is None and not files.exists(self._url("trained")):
            index = faiss_build.trained_index(self.source, self.kind, SEED)
            files.write_bytes(self._url("trained"), faiss_build.to_bytes(index))

    def add_shard(self, shard: Part) -> None:
        """Add one part of the embeddings to a copy of the trained index."""
        from rag_core.retrieval import faiss_build

        if self.kept() is None and not files.exists(self._url(shard.index)):
            trained = files.read_bytes(self._url("trained"))
            url, first_row = shard.source["url"], shard.source["first_row"]
            files.write_bytes(self._url(shard.index), faiss_build.build_shard(trained, url, first_row))

    def _url(self, name: str | int) -> str:
        name = name if isinstance(name, str) else f"shard-{name:05d}"
        return files.join(self.output, WORK, f"{name}-{self.fingerprint[:12]}.faiss")

    def _build(self, directory: str) -> tuple[int, dict[str, Any]]:
        """The index in a local directory; its rows and its settings."""
        from rag_core.retrieval import Bm25Index, faiss_build

        if self.kind == "bm25":
            rows = len(Bm25Index.build(iter_passages(self.source), directory))
            return rows, {"metric": "bm25"}
        if self.shards:
            shards = ((s.source["first_row"], files.read_bytes(self._url(s.index))) for s in self.shards)
            index = faiss_build.merge_shards(shards)
        else:
            index = faiss_build.build_whole(self.source, self.kind, SEED)
        settings = faiss_build.write_index(index, self.source, self.kind, directory, seed=SEED)
        left_out = ("files", "passages", "kind")
        return settings["passages"], {k: v for k, v in settings.items() if k not in left_out}


def shards_of(kind: str, source: str) -> tuple[Part, ...]:
    """The parts of an embeddings run that are indexed apart and merged; none where the kind forbids it."""
    from rag_core.retrieval.faiss_build import MERGED_KINDS

    if kind not in MERGED_KINDS:
        return ()
    manifest = stage_manifest(source, "embed")
    firsts = itertools.accumulate((part["rows"] for part in manifest["parts"]), initial=0)
    places = zip(part_urls(source, manifest), firsts)
    return tuple(Part(i, {"url": url, "first_row": first}) for i, (url, first) in enumerate(places))


class BuildIndex(beam.PTransform):
    """An `IndexTask` → its report, by way of its shards."""

    def __init__(self, task: IndexTask) -> None:
        super().__init__()
        self._task = task

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        waiting: list[Any] = []
        if self._task.shards:
            trained = pipeline | "Train" >> beam.Create([None]) | "Fit" >> beam.Map(_train, self._task)
            added = (
                pipeline
                | "Shards" >> beam.Create(self._task.shards)
                | "Spread" >> beam.Reshuffle()
                | "Add" >> beam.Map(_add_shard, self._task, beam.pvalue.AsList(trained))
            )
            waiting = [beam.pvalue.AsList(added)]
        return (
            pipeline
            | "Index" >> beam.Create([Part(0, {})])
            | "Merge" >> beam.ParDo(_MergeFn(self._task), *waiting)
        )


class _MergeFn(PartFn):
    """`PartFn` that waits for the shards."""

    def process(self, part: Part, added: Iterable[None] = ()):
        yield from super().process(part)


def _train(_: None, task: IndexTask) -> None:
    register_file_systems()
    patiently(task.train)


def _add_shard(shard: Part, task: IndexTask, trained: list[None]) -> None:
    register_file_systems()
    assert len(trained) == 1
    patiently(task.add_shard, shard)


def iter_passages(directory: str) -> Iterator[Passage]:
    """The passages of a finished split run, in order."""
    for batch in iter_batches(directory, ["passage_id", "title", "text"]):
        for row in batch.to_pylist():
            yield Passage(**row)


def _stands(output: str, name: str, state: dict[str, Any]) -> bool:
    found = files.info(files.join(output, name))
    return (
        found is not None and found.size == state["bytes"] and file_digest(found.url) == state.get("sha256")
    )


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
