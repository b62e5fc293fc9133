"""Two result directories, paired question by question, and what forbids comparing them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from eval.metrics import METRICS, get_metric
from eval.metrics.base import Metric, Statistics
from rag_core import files
from rag_core.errors import DataError, UsageError
from rag_core.run_dir import MANIFEST
from rag_core.stages import stage_manifest


class NotComparable(Exception):
    """The two results measure different things; the message names the difference (exit code 11)."""


@dataclass
class Results:
    """One run's results: rows by question id, figures, what is known of how the run was made."""

    path: str
    run: str
    task: str
    rows: pd.DataFrame
    summary: pd.DataFrame
    signatures: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def value(self, metric: str, slice_: str = "all") -> float | None:
        """The figure over all questions of a slice; None where there is none."""
        s = self.summary
        found = s[(s.metric == metric) & (s.slice == slice_) & (s.scope == "all")].value
        return None if found.empty or pd.isna(found.iloc[0]) else float(found.iloc[0])


def split_run(argument: str) -> tuple[str, str | None]:
    """`DIR:RUN` as directory and run; a directory or URL whose name holds a colon is a directory."""
    directory, colon, run = argument.rpartition(":")
    if not colon or argument.endswith("/") or run.startswith("//"):
        return argument, None
    return (argument, None) if files.exists(files.join(argument, MANIFEST)) else (directory, run)


def load_results(path: str, run: str | None = None) -> Results:
    """A finished results directory; `run` chooses one when it holds several.

    Raises NoManifestError, FileNotFoundError, and UsageError for a run that is not there, or not named.
    """
    manifest = stage_manifest(path, "eval")
    rows, summary = (_table(path, name) for name in ("per_example.parquet", "summary.parquet"))
    names = list(dict.fromkeys(summary.run))
    if run is None and len(names) > 1:
        raise UsageError(f"{path}: holds the runs {', '.join(names)}; say which with DIR:RUN")
    if run is not None and run not in names:
        raise UsageError(f"{path}: no run {run!r} (runs: {', '.join(names)})")
    run = run or names[0]
    summary = summary[summary.run == run]
    if "run" in rows.columns:
        rows = rows[rows.run == run]
    if rows.question_id.duplicated().any():
        raise DataError(f"{path}: a question id is there twice")
    signatures = dict(zip(summary.metric, summary.signature))
    return Results(
        path,
        run,
        summary.task.iloc[0],
        rows.set_index("question_id").sort_index(),
        summary,
        signatures,
        manifest["runs"][run].get("settings", {}),
    )


def _table(path: str, name: str) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    url = files.join(path, name)
    try:
        with files.open_input(url) as stream:
            return pq.read_table(stream).to_pandas()
    except pa.ArrowException as error:
        raise DataError(f"{url}: not readable as Parquet: {error}") from None


def check_comparable(baseline: Results, candidate: Results, allow: tuple[str, ...] = ()) -> list[str]:
    """The metrics of both, in the candidate's order. NotComparable names what differs.

    Questions, references and metric signatures must be equal; settings of retrieval and generation too,
    unless `allow` names them (`predictions.options.decoding`, or any prefix by dots). Models may differ:
    they are what is compared.
    """
    if baseline.task != candidate.task:
        raise NotComparable(f"task {baseline.task} against {candidate.task}")
    ours, theirs = candidate.rows, baseline.rows
    lost, new = theirs.index.difference(ours.index), ours.index.difference(theirs.index)
    if len(lost) or len(new):
        some = ", ".join([*lost[:3], *new[:3]])
        raise NotComparable(
            f"questions: {len(lost)} only in the baseline, {len(new)} only in the candidate ({some})"
        )
    changed = ours.index[ours.question_hash != theirs.question_hash]
    if len(changed):
        raise NotComparable(f"{len(changed)} questions or references were changed, such as {changed[0]!r}")
    common = [m for m in candidate.signatures if m in baseline.signatures]
    for metric in common:
        if baseline.signatures[metric] != candidate.signatures[metric]:
            raise NotComparable(
                f"metric {metric}: {baseline.signatures[metric]} against {candidate.signatures[metric]}"
            )
    if not common:
        raise NotComparable("no metric is in both")
    for key, before, after in differing(baseline.settings, candidate.settings):
        if not any(key == a or key.startswith(a + ".") for a in allow):
            raise NotComparable(f"setting {key}: {before!r} against {after!r} (gates may allow it)")
    return common


def differing(before: Any, after: Any, key: str = "") -> list[tuple[str, Any, Any]]:
    """The leaves in which two nested settings differ, by dotted name."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = sorted(before.keys() | after.keys())
        pairs = [(f"{key}.{n}" if key else n, before.get(n), after.get(n)) for n in names]
        return [found for name, b, a in pairs for found in differing(b, a, name)]
    return [] if before == after else [(key, before, after)]


def recounted(name: str, before: pd.DataFrame, after: pd.DataFrame) -> tuple[Metric, list[Any]] | None:
    """A metric that is no mean, and its statistics in both runs, counted again from the rows.

    Texts are scored again; FEVER's F1 is put together from its precision and recall, which are columns.
    None for a mean (its column is all there is to know), and where the rows do not hold what is needed.
    """
    metric = get_metric(name) if name in METRICS and "_k" not in name else None
    if metric is None or metric.is_mean:
        return None
    if metric.takes == "answer":
        return metric, [_from_texts(metric, rows) for rows in (before, after)]
    parts = ["fever_precision", "fever_recall"]
    if name == "fever_f1" and all(set(parts) <= set(rows.columns) for rows in (before, after)):
        return metric, [_from_parts(metric, rows[parts].to_numpy(np.float64)) for rows in (before, after)]
    return None


def _from_texts(metric: Metric, rows: pd.DataFrame) -> list[Statistics]:
    counted = []
    for prediction, answers in zip(rows.prediction, rows.answers):
        gold = list(answers)
        found = metric.missing(gold) if metric.is_missing(prediction) else metric.statistics(prediction, gold)
        counted.append(found or (0,) * metric.width)
    return counted


def _from_parts(metric: Any, parts_N2: np.ndarray) -> list[Statistics]:
    return [
        (0, 0, 0) if math.isnan(precision) else (round(precision * metric.unit), round(recall), 1)
        for precision, recall in parts_N2
    ]
