"""Score runs over a whole test set: predictions, retrieved passages, or both.

python -m eval.run --predictions predictions/rag --questions nq.jsonl --task nq --output results/rag
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq

from beam_jobs.options import job_parser, parse_job, register_file_systems, run_job
from beam_jobs.transforms.parts import failure_url
from beam_jobs.transforms.stage import StagePlan, run_stage
from eval._cells import Cell, KeyCell
from eval._examples import EvalTask, RunSpec, load_inputs
from eval._kept import delete_kept, keep_part, kept_cells, rows_url
from eval._score import CellKey, score_part
from eval._summary import join_parts, merge_cells, summary_rows, write_batches, write_summary
from eval.metrics import get_metric
from rag_core import files
from rag_core.datasets import TASKS
from rag_core.digest import file_digest
from rag_core.errors import DataError, UsageError
from rag_core.parts import Part
from rag_core.run_dir import MANIFEST, RunDir, finish_run, read_manifest, run_input

LOGIC_VERSION = 3
ROWS_PER_PART = 4096

DESCRIPTION = """Score predictions, retrieved passages, or both, against a test set; joined by id.

Writes per_example.parquet (a row for each question) and summary.parquet (run, slice, scope, metric,
value, 95% interval). scope=all counts a missing or failed prediction as wrong; scope=answered leaves it
out. Several runs are scored into one summary: give --predictions several paths, and --run as many names.

Predictions made elsewhere are read too: {id: answer} JSON, JSON lines, CSV, TSV, Parquet, KILT, FEVER;
without ids they join by the letters and digits of the question."""


def parser() -> argparse.ArgumentParser:
    p = job_parser("run", DESCRIPTION)
    p.prog = "python -m eval.run"
    several = {"nargs": "+", "default": []}
    p.add_argument("--questions", required=True, metavar="FILE", help="test set")
    p.add_argument("--task", required=True, choices=TASKS, metavar="TASK", help=", ".join(TASKS))
    p.add_argument("--predictions", **several, metavar="DIR|FILE", help="of beam_jobs.generate, or others'")
    p.add_argument("--retrieved", **several, metavar="DIR", help="of beam_jobs.retrieve; one serves all runs")
    p.add_argument("--passages", metavar="DIR", help="texts, for top-k accuracy by the answer's words")
    p.add_argument("--run", **several, metavar="NAME", help="names of the runs (default: the output's)")
    p.add_argument("--metrics", **several, metavar="NAME", help="further metrics of the predictions")
    p.add_argument("--slice-by", **several, metavar="COLUMN", help="own columns of a custom test set")
    p.add_argument("--seed", type=int, default=0, help="of the bootstrap")
    return p


def run_specs(args: argparse.Namespace) -> tuple[RunSpec, ...]:
    """Pair predictions, rankings and names by their order. UsageError when the numbers do not fit."""
    n = max(len(args.predictions), len(args.retrieved))
    if not n:
        raise UsageError("nothing to score: give --predictions, --retrieved, or both")
    retrieved = args.retrieved * n if len(args.retrieved) == 1 else args.retrieved
    for option, values in (("--predictions", args.predictions), ("--retrieved", retrieved)):
        if values and len(values) != n:
            raise UsageError(f"{option}: {len(values)} paths for {n} runs")
    paths = args.predictions or retrieved
    default = [files.base_name(args.output)] if n == 1 else [files.base_name(p).split(".")[0] for p in paths]
    names = args.run or default
    if len(names) != n or len(set(names)) != n:
        raise UsageError(f"--run: {n} different names are needed, found {', '.join(names)}")
    nothing: list[str | None] = [None] * n
    return tuple(map(RunSpec, names, args.predictions or nothing, retrieved or nothing))


Cells = dict[CellKey, Cell | KeyCell]
Total = tuple[list[tuple[int, str]], Cells]
"""Errors by part, and the cells of all others."""


class ScorePart(beam.DoFn):
    """A part's rows are written, its sums kept and passed on (or the error of bad data).

    A part that this run has scored before it was killed is not scored again.
    """

    def __init__(self, output: str, fingerprint: str) -> None:
        self._output, self._fingerprint = output, fingerprint

    def setup(self) -> None:
        register_file_systems()

    def process(self, part: Part) -> Iterator[Total]:
        kept = kept_cells(self._output, part.index, self._fingerprint)
        if kept is not None:
            yield [], kept
            return
        task = EvalTask.from_json(part.source["task"])
        try:
            batches, cells = score_part(task, *part.source["rows"])
        except DataError as error:
            yield [(part.index, str(error))], {}
            return
        written = write_batches(rows_url(self._output, part.index), load_inputs(task).schema(), batches)
        keep_part(self._output, part.index, self._fingerprint, written, cells)
        yield [], cells


class MergeParts(beam.CombineFn):
    """Sums add up, in whatever order and grouping; errors are kept."""

    def create_accumulator(self) -> Total:
        return [], {}

    def add_input(self, total: Total, part: Total) -> Total:
        return total[0] + part[0], merge_cells(total[1], part[1])

    def merge_accumulators(self, totals: Iterable[Total]) -> Total:
        merged = self.create_accumulator()
        for total in totals:
            merged = self.add_input(merged, total)
        return merged

    def extract_output(self, total: Total) -> Total:
        return total


def finish(total: Total, task: EvalTask, output: str, run: dict[str, Any], n_parts: int) -> None:
    """Write the two tables and the manifest, or the failure for the process that started the job.

    The parts go last: whatever ends this step before, a retry or a restart finds them all.
    """
    register_file_systems()
    if files.exists(files.join(output, MANIFEST)):  # a runner that runs the step twice
        return
    errors, cells = total
    if errors:
        files.write_json(failure_url(output), {"token": run["owner"]["token"], "errors": sorted(errors)})
        return
    inputs = load_inputs(task)
    urls = [rows_url(output, number) for number in range(n_parts)]
    report = join_parts(output, run["fingerprint"], inputs.schema(), urls)
    write_summary(output, summary_rows(task, inputs, cells))
    extra = {"runs": {r.spec.name: run_counts(r) for r in inputs.runs}, **inputs.about}
    finish_run(output, run, [report], 1, extra)
    delete_kept(output, n_parts)


def run_counts(run: Any) -> dict[str, Any]:
    """What the join found, for the manifest: counts, and the first unknown ids."""
    joined = {"predictions": run.predictions, "retrieved": run.retrieved}
    counts: dict[str, Any] = {
        what: {**j.counts, "joined": len(j.rows), "unknown_ids": list(j.unknown_ids)}
        for what, j in joined.items()
        if j is not None
    }
    settings = {what: made_with(getattr(run.spec, what)) for what in counts}
    return {**counts, "settings": settings, "not_computed": run.not_computed}


def made_with(path: str) -> dict[str, Any]:
    """How a run was made, for `eval.compare`: its options, and the index it searched. No models."""
    if files.exists(path):
        return {}
    manifest = read_manifest(path)
    index = {k: v for k, v in manifest["inputs"].items() if k in ("index", "embeddings", "passages")}
    return {"options": manifest["options"], "inputs": index}


def build_pipeline(pipeline: beam.Pipeline, plan: StagePlan, run: RunDir) -> Any:
    """Parts → sums → one total → the two tables."""
    task = EvalTask.from_json(plan.parts[0].source["task"])
    return (
        pipeline
        | "Parts" >> beam.Create(plan.parts)
        | "Spread" >> beam.Reshuffle()
        | "Score" >> beam.ParDo(ScorePart(run.output, run.fingerprint))
        | "Merge" >> beam.CombineGlobally(MergeParts())
        | "Finish" >> beam.Map(finish, task, run.output, run.run, len(plan.parts))
    )


def make_plan(args: argparse.Namespace) -> StagePlan:
    specs = run_specs(args)
    own = tuple(args.slice_by)
    for name in args.metrics:
        try:
            get_metric(name)
        except ValueError as error:
            raise UsageError(f"--metrics: {error}") from None
    task = EvalTask(args.questions, args.task, specs, args.passages, tuple(args.metrics), own, args.seed)
    load_inputs.cache_clear()  # the files may have changed since this process read them
    inputs = load_inputs(task)
    n = len(inputs.questions)
    starts = [(run, start) for run in range(len(specs)) for start in range(0, n, ROWS_PER_PART)]
    return StagePlan(
        job="eval",
        logic_version=LOGIC_VERSION,
        inputs={
            "questions": input_mark(args.questions),
            "runs": {s.name: [p and input_mark(p) for p in (s.predictions, s.retrieved)] for s in specs},
            "passages": args.passages and input_mark(args.passages),
        },
        models={c.name: c.metric.signature for r in inputs.runs for c in r.columns},
        options={"task": args.task, "slice_by": args.slice_by, "seed": args.seed},
        parts=[
            Part(i, {"task": asdict(task), "rows": [run, start, min(start + ROWS_PER_PART, n)]})
            for i, (run, start) in enumerate(starts)
        ],
        worker=None,
        unit="questions",
        seed=args.seed,
    )


def input_mark(path: str) -> Any:
    """How an input enters the fingerprint: a run by its rows, a file by its bytes."""
    return file_digest(path) if files.exists(path) else run_input(read_manifest(path))


def run(argv: Sequence[str] | None = None) -> int:
    """Run the job; see `--help`."""
    args, options = parse_job(parser(), argv)
    dry_run = args.dry_run
    code = run_stage(parser(), make_plan, argv, build_pipeline)
    if not dry_run:
        _show(args.output, read_manifest(args.output))
    return code


def _show(output: str, manifest: dict[str, Any]) -> None:
    """The whole set's figures, and what was missing, on the terminal."""
    with files.open_input(files.join(output, "summary.parquet")) as stream:
        rows = pq.read_table(stream).to_pylist()
    line = "{:20} {:22} {:>9} {:>19} {:>8} {:>8} {:>9}".format
    print(line("run", "metric", "value", "95% interval", "n", "missing", "answered"))
    whole = [r for r in rows if r["slice"] == "all"]
    answered = {(r["run"], r["metric"]): r["value"] for r in whole if r["scope"] == "answered"}
    for row in whole:
        if row["scope"] == "all":
            interval = f"[{_figure(row['ci_low'])}, {_figure(row['ci_high'])}]"
            names, ours = (row["run"][:20], row["metric"][:22]), answered[row["run"], row["metric"]]
            print(line(*names, _figure(row["value"]), interval, row["n"], row["n_missing"], _figure(ours)))
    absent = {what: manifest.get(f"gold_{what}_absent") for what in ("passages", "pages")}
    for what, count in absent.items():
        if count:
            print(f"{count} gold {what} are not in the corpus, such as {manifest['first_absent'][:3]}")
    if manifest["rejected_questions"]:
        print(f"questions left out: {manifest['rejected_questions']}")
    for name, found in manifest["runs"].items():
        for reason in dict.fromkeys(found["not_computed"].values()):
            metrics = ", ".join(m for m, why in found["not_computed"].items() if why == reason)
            print(f"{name}: not computed: {metrics}: {reason}")
        for what in found.keys() & {"predictions", "retrieved"}:
            quiet = ("joined", "ok", "unknown_ids")
            odd = {k: v for k, v in found[what].items() if v and k not in quiet}
            if odd:
                print(f"{name}: {what}: " + ", ".join(f"{v} {k}" for k, v in sorted(odd.items())))
    print(f"{output}  next: pandas.read_parquet({os.path.join(output, 'per_example.parquet')!r})")


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


if __name__ == "__main__":
    run_job(run)
