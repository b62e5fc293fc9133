"""What every job does around its pipeline: check, claim, run, report.

A job hands over a `StagePlan` (what to do, in values) and this module does the rest in the order
that keeps the user's data safe: options, then the output, then names and inputs, and only then work.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from beam_jobs.options import Parser, make_runner, parse_job, runner_name
from beam_jobs.transforms.parts import FinishRun, PartTask, ProcessParts, failure_url
from rag_core import files
from rag_core.errors import EXIT_INTERNAL, DataError
from rag_core.owner import descendants
from rag_core.parts import Part, PartWorker
from rag_core.run_dir import RunDir, check_output, claim, report_url

log = logging.getLogger("beam_jobs")


@dataclass(frozen=True)
class StagePlan:
    """A job, resolved: all that its content depends on, and the work, cut into parts."""

    job: str
    logic_version: int
    inputs: dict[str, Any]
    models: dict[str, Any]
    options: dict[str, Any]
    parts: list[Part]
    worker: PartWorker | None
    unit: str
    """What `counts` counts: pages, passages, questions."""
    next_step: str = ""
    """Shown last: what to do with the result."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Goes into the manifest as it is."""
    seed: int = 0


BuildPipeline = Callable[[beam.Pipeline, StagePlan, RunDir], Any]


def build_part_pipeline(pipeline: beam.Pipeline, plan: StagePlan, run: RunDir) -> None:
    """The common pipeline: part i of the input makes part i of the output."""
    assert plan.worker is not None
    task = PartTask(run.output, plan.worker, run.fingerprint)
    reports = pipeline | plan.job.capitalize() >> ProcessParts(plan.parts, task)
    _ = reports | "Finish" >> FinishRun(run.output, run.run, len(plan.parts), plan.extra)


def run_stage(
    parser: Parser,
    make_plan: Callable[[argparse.Namespace], StagePlan],
    argv: Sequence[str] | None = None,
    build_pipeline: BuildPipeline = build_part_pipeline,
) -> int:
    """Run a job from its command line; returns 0. Raises UsageError (2) and DataError (3)."""
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", force=True)
    log.setLevel(logging.INFO)
    for handler in logging.getLogger().handlers:
        handler.addFilter(_worth_reading)
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    args, options = parse_job(parser, argv)
    if not args.dry_run:
        check_output(args.output)
    plan = make_plan(args)
    if args.dry_run:
        return _dry_run(args.output, plan, options, build_pipeline)
    run = claim(
        args.output,
        plan.job,
        logic_version=plan.logic_version,
        inputs=plan.inputs,
        models=plan.models,
        options=plan.options,
        seed=plan.seed,
        overwrite=args.overwrite,
    )
    if run.finished is not None:
        print(f"{args.output}: already complete, nothing to do")
        _print_result(args.output, plan, run.finished)
        return 0
    files.delete([failure_url(args.output)])
    with run.alive(), _progress(args.output, plan), _end_with_workers():
        pipeline = beam.Pipeline(runner=make_runner(options), options=options)
        build_pipeline(pipeline, plan, run)
        try:
            pipeline.run().wait_until_finish()
        except RuntimeError as error:
            if "KeyboardInterrupt" in str(error):  # in memory, Beam wraps it like any error of a step
                raise KeyboardInterrupt from error
            raise
    _print_result(args.output, plan, _manifest_or_failure(args.output, run))
    return 0


def _worth_reading(record: logging.LogRecord) -> bool:
    """Leave out a warning that every worker process of Beam prints at its start and that asks for nothing."""
    return "semi_persistent_directory" not in record.getMessage()


def _dry_run(output: str, plan: StagePlan, options: PipelineOptions, build_pipeline: BuildPipeline) -> int:
    """Build the graph and say what it holds; Dataflow's own dry run translates it to its job too."""
    run = {"owner": {"token": "dry-run"}, "started": 0.0}
    pipeline = beam.Pipeline(runner=make_runner(options), options=options)
    build_pipeline(pipeline, plan, RunDir(output, plan.job, "dry-run", run))
    graph = pipeline.to_runner_api()
    if runner_name(options) == "DataflowRunner":
        pipeline.run()
    steps = sum(1 for t in graph.components.transforms.values() if t.spec.urn)
    name = runner_name(options)
    print(f"dry run of {plan.job}: {len(plan.parts)} parts, {steps} steps, {graph.ByteSize()} bytes, {name}")
    return 0


@contextlib.contextmanager
def _end_with_workers() -> Iterator[None]:
    """End this process when a local worker process is killed: Beam would wait for its answer for ever."""
    before = threading.excepthook

    def hook(fault: threading.ExceptHookArgs) -> None:
        if "Worker subprocess exited" not in str(fault.exc_value):
            before(fault)
            return
        print(f"error: {fault.exc_value}; start the same command again to go on", file=sys.stderr, flush=True)
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # the other workers would wait for this process
        os._exit(EXIT_INTERNAL)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before


def _manifest_or_failure(output: str, run: RunDir) -> dict[str, Any]:
    manifest_url = files.join(output, "_manifest.json")
    if files.exists(manifest_url):
        return files.read_json(manifest_url)
    failure = files.read_json(failure_url(output))
    errors = failure["errors"]
    more = f" (and {len(errors) - 1} more parts; see {failure_url(output)})" if len(errors) > 1 else ""
    raise DataError(errors[0][1] + more)


def _print_result(output: str, plan: StagePlan, manifest: dict[str, Any]) -> None:
    counts = manifest["counts"]
    skipped = ", ".join(f"{n} {reason}" for reason, n in sorted(counts["skipped"].items())) or "none"
    dead = sum(counts["dead_lettered"].values())
    others = "".join(
        f", {name.replace('_', ' ')}: {n:,}" + (f" ({n / counts['read']:.1%})" if name == "reused" else "")
        for name, n in counts.items()
        if isinstance(n, int) and n and name not in ("read", "written")
    )
    print(
        f"{plan.job}: {manifest['rows']:,} rows in {len(manifest['parts'])} parts; "
        f"{counts['read']:,} {plan.unit} read, {counts['written']:,} written, "
        f"skipped: {skipped}, dead-lettered: {dead}{others}"
    )
    print(
        f"{output}  ({manifest['seconds']:.1f} s)" + (f"; next: {plan.next_step}" if plan.next_step else "")
    )


class _progress:
    """Says every few seconds how many parts have reported, and how long the rest may take."""

    EVERY_SECONDS = 10.0

    def __init__(self, output: str, plan: StagePlan) -> None:
        self._output, self._plan = output, plan
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        if sys.stderr.isatty():
            print(file=sys.stderr)

    def _watch(self) -> None:
        started, total = time.time(), len(self._plan.parts)
        every = 1.0 if sys.stderr.isatty() else self.EVERY_SECONDS
        waiting = {part.index for part in self._plan.parts}
        before: int | None = None
        while not self._stop.wait(every):
            waiting = {i for i in waiting if not files.exists(report_url(self._output, i))}
            done = total - len(waiting)
            before = done if before is None else before
            seconds = time.time() - started
            rate = (done - before) / seconds
            left = f"about {len(waiting) / rate:.0f} s left" if rate else "no estimate yet"
            self._say(f"{self._plan.job}: {done}/{total} parts, {seconds:.0f} s, {left}")

    def _say(self, line: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            log.info(line)
