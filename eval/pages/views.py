"""What a report shows: runs, paired with the baseline that each is held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from eval._paired import Results, load_results, split_run
from rag_core import files
from rag_core.errors import DataError, UsageError
from rag_core.run_dir import read_manifest
from rag_core.stages import read_table, stage_manifest


@dataclass(frozen=True)
class Run:
    """One run's results, and the table of its predictions if that was given (for posteriors by token)."""

    results: Results
    predictions: pd.DataFrame | None = None
    name: str | None = None
    """How the page calls it; by default as its results do."""

    @property
    def label(self) -> str:
        return self.name or self.results.run


@dataclass(frozen=True)
class View:
    """A run beside its baseline, or alone; the same questions in both."""

    candidate: Run
    baseline: Run | None
    primary: str | None
    """The metric whose changes are shown first."""
    note: str | None = None
    """Why a run that was to be held against another stands alone."""

    @property
    def task(self) -> str:
        return self.candidate.results.task

    @property
    def runs(self) -> tuple[Run, ...]:
        return (self.candidate,) if self.baseline is None else (self.baseline, self.candidate)

    @property
    def name(self) -> str:
        return f"{self.task}: " + " → ".join(run.label for run in self.runs)

    def metrics(self) -> list[str]:
        """Metrics with a value for each example, in the candidate's order, in all runs."""
        shared = [m for m in self.candidate.results.signatures if m in self.candidate.results.rows.columns]
        return [m for m in shared if all(m in run.results.rows.columns for run in self.runs)]

    def changes(self, metric: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """By the candidate's rows: the difference (NaN where unknown), and whether the prediction changed."""
        rows = self.candidate.results.rows
        metric = metric or self.primary
        if self.baseline is None:
            return np.full(len(rows), np.nan), np.zeros(len(rows), bool)
        before = self.baseline.results.rows.loc[rows.index]
        changed = (before.prediction.fillna("\0") != rows.prediction.fillna("\0")).to_numpy()
        if metric is None:
            return np.full(len(rows), np.nan), changed
        return (rows[metric].astype(float) - before[metric].astype(float)).to_numpy(), changed


def open_runs(argument: str, predictions: Mapping[str, str]) -> list[Run]:
    """All runs of `DIR`, or one of `DIR:RUN`. `predictions` maps content digests to directories."""
    directory, name = split_run(argument)
    names = [name] if name else list(stage_manifest(directory, "eval")["runs"])
    inputs = read_manifest(directory)["inputs"].get("runs", {})
    runs = []
    for run in names:
        made = next((m["content_digest"] for m in inputs.get(run, ()) if isinstance(m, dict)), None)
        table = _predictions(predictions[made]) if made in predictions else None
        runs.append(Run(load_results(directory, run), table))
    return runs


def predictions_by_digest(directories: Sequence[str]) -> dict[str, str]:
    """Runs of `beam_jobs.generate` by the digest of their rows, which results name."""
    return {stage_manifest(d, "generate")["content_digest"]: d for d in directories}


def _predictions(directory: str) -> pd.DataFrame:
    columns = ["question_id", "passage_ids", "doc_prior", "doc_posterior", "tokens", "token_posterior"]
    table = read_table(directory, columns).to_pandas()
    if table.question_id.duplicated().any():
        raise DataError(f"{directory}: a question id is there twice")
    return table.set_index("question_id")


def make_views(
    arguments: Sequence[str],
    baselines: Sequence[str],
    verdict: Mapping[str, Any] | None,
    predictions: Sequence[str],
) -> list[View]:
    """Pair the runs: as `baselines` says, else as the verdict does, else the first run of the same questions.

    A run that is just another's baseline gets no view of its own. Raises UsageError when numbers do not fit.
    """
    digests = predictions_by_digest(predictions)
    runs = [(argument, run) for argument in arguments for run in open_runs(argument, digests)]
    if baselines:
        before = [run for argument in baselines for run in open_runs(argument, digests)]
        if len(before) != len(runs):
            raise UsageError(f"{len(before)} baselines for {len(runs)} runs; give one for each, in order")
        return [_view(run, other, verdict) for (_, run), other in zip(runs, before)]
    told = _told_baselines(verdict or {})
    paired = {argument: told[_place(argument)] for argument, _ in runs if _place(argument) in told}
    if paired:
        opened = {path: open_runs(path, digests)[0] for path in paired.values()}
        uses = {_place(path) for path in paired.values()}
        return [
            _view(run, opened[paired[argument]] if argument in paired else None, verdict)
            for argument, run in runs
            if argument in paired or _place(argument) not in uses
        ]
    return _pair_with_first([run for _, run in runs], verdict)


def _pair_with_first(runs: Sequence[Run], verdict: Mapping[str, Any] | None) -> list[View]:
    firsts: list[Run] = []
    partners: list[tuple[Run, Run | None]] = []
    for run in runs:
        other = next((f for f in firsts if same_questions(f, run)), None)
        if other is None:
            firsts.append(run)
        partners.append((run, other))
    used = {id(other) for _, other in partners}
    return [_view(run, other, verdict) for run, other in partners if other is not None or id(run) not in used]


def same_questions(a: Run, b: Run) -> bool:
    ours, theirs = a.results, b.results
    if ours.task != theirs.task or not ours.rows.index.equals(theirs.rows.index):
        return False
    return bool((ours.rows.question_hash == theirs.rows.question_hash).all())


def _view(candidate: Run, baseline: Run | None, verdict: Mapping[str, Any] | None) -> View:
    note = None
    if baseline is not None and not same_questions(baseline, candidate):
        note = (
            f"{candidate.label} ({candidate.results.path}) stands alone: {baseline.results.path} has other "
            "questions or references."
        )
        baseline = None
    if baseline is not None and baseline.label == candidate.label:
        baseline = replace(baseline, name=f"{baseline.label} (baseline)")
    view = View(candidate, baseline, None)
    metrics = view.metrics()
    named = [
        c.get("metric")
        for c in (verdict or {}).get("comparisons", ())
        if c.get("primary") and c.get("task") == view.task
    ]
    primary = next((m for m in named if m in metrics), metrics[0] if metrics else None)
    return View(candidate, baseline, primary, note)


def runs_by_task(views: Sequence[View]) -> dict[str, list[Run]]:
    """Every run once, in order. Different runs of a task under one name are told apart by their place."""
    found: dict[str, dict[tuple[str, str], Run]] = {}
    for view in views:
        for run in view.runs:
            found.setdefault(view.task, {}).setdefault((run.results.path, run.results.run), run)
    return {task: _told_apart(list(runs.values())) for task, runs in found.items()}


def _told_apart(runs: Sequence[Run]) -> list[Run]:
    labels = [run.label for run in runs]
    return [
        replace(run, name=f"{run.label}, {files.base_name(run.results.path)}")
        if labels.count(run.label) > 1
        else run
        for run in runs
    ]


def _told_baselines(verdict: Mapping[str, Any]) -> dict[str, str]:
    """Candidate → baseline, as `eval.compare` and `eval.nightly` write them."""
    pairs = [(r.get("candidate"), r.get("baseline")) for r in verdict.get("runs", ())]
    pairs += [(c.get("results"), c.get("baseline_results")) for c in verdict.get("chains", ())]
    return {_place(a): b for a, b in pairs if a and b}


def _place(argument: str) -> str:
    """A results directory, however it was written: without its run's name and a slash at the end."""
    return split_run(argument)[0].rstrip("/")
