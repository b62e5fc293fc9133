"""What every job does around its pipeline: check, claim, run, report.

A job hands over a `StagePlan` (what to do, in values) and this module does the rest in the order
that keeps the user's data safe: options, then the output, then names and inputs, and only then work.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import grpc
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, PortableOptions
from apache_beam.runners.runner import PipelineResult

from beam_jobs.options import LOCAL_RUNNERS, Parser, launch_options, make_runner, parse_job, runner_name
from beam_jobs.transforms.counters import MEMORY, differences, memory_peak, read_counters
from beam_jobs.transforms.parts import FinishRun, PartTask, ProcessParts, failure_url
from beam_jobs.transforms.progress import Progress, complaint, emit, fault_of_step, log, without_step
from rag_core import files
from rag_core.errors import EXIT_INTERNAL, DataError, UsageError, one_line
from rag_core.outputs import check_output, refuse_overlap
from rag_core.owner import descendants
from rag_core.parts import Part, PartWorker
from rag_core.run_dir import RunDir, TakenOverError, check_owner, claim


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
    describe: Callable[[Mapping[str, int], float], str] | None = None
    """The parts' counts so far and seconds of work → what to add to progress and result."""


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
    began = time.monotonic()
    args, options = parse_job(parser, argv)
    args.output = files.join(args.output)  # without slashes at its end
    if not args.dry_run:
        check_output(args.output)
    refuse_overlap(args.output, _inputs(parser, args), look=args.overwrite)
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
        launch={"runner": runner_name(options), "options": launch_options(options)},
    )
    if run.finished is not None:
        print(f"{one_line(args.output)}: already complete, nothing to do")
        _print_result(args.output, plan, run.finished)
        emit("end", **_summary(args.output, plan, run.finished), already_complete=True)
        return 0
    files.delete([failure_url(args.output)])
    runner = runner_name(options)
    emit(
        "start",
        job=plan.job,
        output=args.output,
        fingerprint=run.fingerprint,
        parts=len(plan.parts),
        runner=runner,
        startup_seconds=round(time.monotonic() - began, 3),
    )
    indices = {part.index for part in plan.parts}
    with run.alive(), Progress(args.output, plan.job, indices, plan.describe), _end_with_workers():
        pipeline = beam.Pipeline(runner=make_runner(options), options=options)
        build_pipeline(pipeline, plan, run)
        try:
            result = pipeline.run()
            result.wait_until_finish()
        except grpc.FutureTimeoutError as error:
            endpoint = options.view_as(PortableOptions).job_endpoint
            raise UsageError(f"--job_endpoint {endpoint}: no job service answers there") from error
        except RuntimeError as error:
            if "KeyboardInterrupt" in str(error):  # in memory, Beam wraps it like any error of a step
                raise KeyboardInterrupt from error
            _complain_if_taken_over(run)
            raise (fault_of_step(str(error)) or error) from error
        except (DataError, UsageError) as error:
            kind = DataError if isinstance(error, DataError) else UsageError
            raise kind(without_step(str(error))) from error
    template = options.view_as(GoogleCloudOptions).template_location
    if runner == "DataflowRunner" and template:
        print(f"{plan.job}: package, graph and template are staged; launch {template} to write {args.output}")
        return 0
    manifest = _manifest_or_failure(args.output, run)
    _print_result(args.output, plan, manifest)
    _reconcile(args.output, plan, manifest, result, exact=runner in LOCAL_RUNNERS)
    return 0


def _complain_if_taken_over(run: RunDir) -> None:
    """Raise the reason in one line where steps fail because the directory has another owner."""
    try:
        check_owner(run.output, run.run)
    except TakenOverError:
        raise
    except (OSError, ValueError, UsageError):
        return  # the steps' own error says more


def _inputs(parser: Parser, args: argparse.Namespace) -> dict[str, list[str]]:
    """The options that name what a job reads, with their values: option → paths, URLs, patterns."""
    found = {}
    for action in parser._actions:
        kinds = set((action.metavar or "").split("|")) & {"DIR", "FILE", "GLOB"}
        value = getattr(args, action.dest, None)
        if kinds and value and action.dest != "output":
            found[action.option_strings[0]] = value if isinstance(value, list) else [value]
    return found


def _reconcile(
    output: str, plan: StagePlan, manifest: dict[str, Any], result: PipelineResult, exact: bool
) -> None:
    """Query Beam's counters, compare them with the manifest, and say the last word (`end`).

    Where the runner repeats no work (`exact`) a difference is a fault and a warning with both numbers.
    Elsewhere a repeated bundle is counted again, so that larger counters are told and mean nothing.
    """
    counters: dict[str, int] | None = None
    try:
        counters = read_counters(result)
    except Exception as error:  # the run is finished and whole: a store of metrics must not fail it
        log.warning(
            "%s: the runner's counters could not be read: %s: %s", plan.job, type(error).__name__, error
        )
    differing = differences(manifest, counters) if counters and "parts" in counters else {}
    if differing and exact:
        told = ", ".join(f"{name} {a:,} (manifest {b:,})" for name, (a, b) in differing.items())
        log.warning("%s: the runner's counters differ from the manifest: %s", plan.job, told)
    emit(
        "end",
        **_summary(output, plan, manifest),
        counters=counters,
        counters_exact=exact,
        counters_differ={name: {"counter": a, "manifest": b} for name, (a, b) in differing.items()},
        memory_peak_bytes=memory_peak(),
        worker_memory_peak_bytes=(counters or {}).get(MEMORY),
    )


def _summary(output: str, plan: StagePlan, manifest: dict[str, Any]) -> dict[str, Any]:
    """Counts and rates of a finished run; `part_seconds` is what the parts took, start-up left out."""
    rows, seconds = manifest["rows"], manifest["seconds"]
    part_seconds = sum(part.get("seconds", 0.0) for part in manifest["parts"])
    return {
        "job": plan.job,
        "output": output,
        "rows": rows,
        "unit": plan.unit,
        "counts": manifest["counts"],
        "content_digest": manifest["content_digest"],
        "parts": len(manifest["parts"]),
        "seconds": seconds,
        "part_seconds": round(part_seconds, 3),
        "rows_per_second": round(rows / seconds, 1) if seconds else None,
        "rows_per_part_second": round(rows / part_seconds, 1) if part_seconds else None,
    }


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
            if fault.exc_type is not SystemExit:
                log.error("a thread failed", exc_info=(fault.exc_type, fault.exc_value, fault.exc_traceback))
            return
        text = f"{fault.exc_value}; start the same command again to go on"
        print(complaint(text, EXIT_INTERNAL), file=sys.stderr, flush=True)
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
    if plan.describe:
        others += "; " + plan.describe(counts, sum(part.get("seconds", 0.0) for part in manifest["parts"]))
    print(
        f"{plan.job}: {manifest['rows']:,} rows in {len(manifest['parts'])} parts; "
        f"{counts['read']:,} {plan.unit} read, {counts['written']:,} written, "
        f"skipped: {skipped}, dead-lettered: {dead}{others}"
    )
    next_step = f"; next: {plan.next_step}" if plan.next_step else ""
    print(one_line(output) + f"  ({manifest['seconds']:.1f} s)" + one_line(next_step))
