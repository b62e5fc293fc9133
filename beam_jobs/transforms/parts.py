"""Parts in, reports out, a manifest at the end: the shape of every job's pipeline."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import apache_beam as beam

from beam_jobs.options import register_file_systems
from beam_jobs.transforms.counters import count_report
from beam_jobs.transforms.progress import log
from rag_core import files
from rag_core.errors import DataError, UnreachableError, UsageError
from rag_core.masking import mask
from rag_core.parts import Part, PartWorker, write_part
from rag_core.run_dir import WORK, finish_run

T = TypeVar("T")


@dataclass
class PartTask:
    """`write_part` bound to a run: what a worker does with each part descriptor."""

    output: str
    worker: PartWorker
    fingerprint: str

    def setup(self) -> None:
        self.worker.setup()

    def __call__(self, part: Part) -> dict[str, Any]:
        return write_part(self.output, part, self.worker, self.fingerprint)


SECONDS_BETWEEN_ATTEMPTS = (1.0, 5.0)


def patiently(task: Callable[..., T], *args: Any) -> T:
    """Call a task, and again when a store could not be used; what it does must bear repeating."""
    for seconds in SECONDS_BETWEEN_ATTEMPTS:
        try:
            return task(*args)
        except UnreachableError as error:
            log.warning("%s; again in %g s", error, seconds)
            time.sleep(seconds)
    return task(*args)


class PartFn(beam.DoFn):
    """Call a task on each part. Bad data becomes a report with an `error`: repeating would not mend it.

    A store that cannot be used is asked again: on no runner may it end a run by failing once.
    """

    def __init__(self, task: Callable[[Part], dict[str, Any]]) -> None:
        self._task = task

    def setup(self) -> None:
        register_file_systems()
        with contextlib.suppress(DataError, UsageError):  # the first part will say so, as a report
            self._task.setup()

    def process(self, part: Part):
        try:
            yield count_report(patiently(self._task, part))
        except (DataError, UsageError) as error:
            yield {"index": part.index, "error": mask(str(error))}


class ProcessParts(beam.PTransform):
    """Part descriptors → one report per part. Rows never pass through Beam."""

    def __init__(self, parts: Sequence[Part], task: Callable[[Part], dict[str, Any]]) -> None:
        super().__init__()
        self._parts, self._task = parts, task

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        return (
            pipeline
            | "Parts" >> beam.Create(self._parts)
            | "Spread" >> beam.Reshuffle()
            | "Process" >> beam.ParDo(PartFn(self._task))
        )


class FinishRun(beam.PTransform):
    """Reports → the manifest, written by the pipeline itself once every part has reported."""

    def __init__(self, output: str, run: dict[str, Any], n_parts: int, extra: dict[str, Any]) -> None:
        super().__init__()
        self._arguments = (output, run, n_parts, extra)

    def expand(self, reports: beam.PCollection) -> beam.PCollection:
        return (
            reports | "Gather" >> beam.combiners.ToList() | "Manifest" >> beam.Map(_finish, *self._arguments)
        )


def failure_url(output: str) -> str:
    return files.join(output, WORK, "failure.json")


def _finish(
    reports: list[dict[str, Any]], output: str, run: dict[str, Any], n_parts: int, extra: dict[str, Any]
) -> None:
    register_file_systems()
    errors = sorted((r["index"], r["error"]) for r in reports if "error" in r)
    if not errors and not any(r["rows"] for r in reports):
        counts = [r["counts"] for r in reports]
        skipped = sum((Counter(c["skipped"]) + Counter(c["dead_lettered"]) for c in counts), Counter())
        reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(skipped.items())) or "the input is empty"
        errors = [(0, f"{output}: nothing was written: {sum(c['read'] for c in counts)} read; {reasons}")]
    if errors:
        files.write_json(failure_url(output), {"token": run["owner"]["token"], "errors": errors})
        return
    finish_run(output, run, reports, n_parts, extra)
