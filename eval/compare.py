"""Compare two runs question by question, and say whether the candidate may pass.

    python -m eval.compare --baseline results/last --candidate results/now [--gates gates.toml]

Exit code 0: no gate is broken. 10: regression. 11: the results cannot be compared; the line says why.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from beam_jobs.options import HelpFormatter, Parser, register_file_systems
from eval._gates import Gates, SliceGate, read_gates
from eval._intervals import id_hashes
from eval._paired import NotComparable, Results, check_comparable, load_results, metric_of, pooled_statistics
from eval._significance import (
    holm,
    mcnemar_exact,
    paired_interval,
    pooled_interval,
    sign_flip,
    smallest_drop,
    smallest_mean_drop,
    swap_test,
)
from eval._verdict import as_markdown, as_text, write_parquet
from eval.metrics.base import PooledMetric
from rag_core import files
from rag_core.errors import EXIT_NOT_COMPARABLE, EXIT_REGRESSION, UsageError, run_command

SEED = 0


@dataclass(frozen=True)
class Comparison:
    """One metric over one slice of two runs. Differences are candidate − baseline."""

    task: str
    slice: str
    metric: str
    baseline: float | None
    candidate: float | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p: float
    test: str
    n: int
    n_changed: int
    wins: int
    losses: int
    smallest_drop: float | None
    """What this test set would find with 80% power; None where that is not known."""
    primary: bool = False
    p_holm: float | None = None


def compare_metric(baseline: Results, candidate: Results, metric: str, slice_: str = "all") -> Comparison:
    """Paired comparison of one metric: exact McNemar for 0/1 metrics, sign flips for other means, swaps of
    statistics for pooled ones where predictions and answers let them be counted again."""
    before, after = _slice_rows(baseline, candidate, metric, slice_)
    scored = before[metric].notna() & after[metric].notna()
    before, after = before[scored], after[scored]
    difference_N = (after[metric] - before[metric]).to_numpy(np.float64)
    hashes = id_hashes(list(after.index), SEED)
    wins, losses = int((difference_N > 0).sum()), int((difference_N < 0).sum())
    values = baseline.value(metric, slice_), candidate.value(metric, slice_)
    counted = metric_of(candidate.signatures[metric])
    least = smallest_mean_drop(difference_N)
    if isinstance(counted, PooledMetric):
        statistics = [pooled_statistics(counted, rows) for rows in (before, after)]
        p, test = swap_test(*statistics, hashes, counted.score), "approximate randomisation"
        interval = pooled_interval(*statistics, hashes, counted.score)
        least = None
    else:
        interval = paired_interval(difference_N, hashes)
        if set(np.unique(before[metric])) | set(np.unique(after[metric])) <= {0.0, 1.0}:
            p, test = mcnemar_exact(losses, wins), "exact McNemar"
            least = smallest_drop(len(after), (wins + losses) / max(1, len(after)))
        else:
            p, test = sign_flip(difference_N, hashes), "sign flip"
    low, high = interval or (None, None)
    gap = None if None in values else values[1] - values[0]
    changed = int((before.prediction.fillna("\0") != after.prediction.fillna("\0")).sum())
    counts = (len(after), changed, wins, losses)
    return Comparison(candidate.task, slice_, metric, *values, gap, low, high, p, test, *counts, least)


def _slice_rows(
    baseline: Results, candidate: Results, metric: str, slice_: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of both runs. Slices by the question hold for both; `answer_…` slices are the baseline's own."""
    before, after = baseline.rows, candidate.rows.loc[baseline.rows.index]
    if slice_ == "all":
        return before, after
    from eval._slices import question_word, rank_slice

    name, _, wanted = slice_.partition("=")
    ranks = [None if pd.isna(r) else int(r) for r in before.answer_rank]
    labels = {
        "question_word": lambda: [question_word(q) for q in before.question],
        "answer_in_passages": lambda: ["no" if r is None else "yes" for r in ranks],
        "answer_rank": lambda: [rank_slice(r) for r in ranks],
    }
    if name not in labels:
        raise UsageError(f"slice {slice_!r}: gates know {', '.join(labels)}, and 'all'")
    inside = np.array([label == wanted for label in labels[name]()])
    return before[inside], after[inside]


def compare_runs(pairs: Sequence[tuple[Results, Results]], gates: Gates) -> dict[str, Any]:
    """The verdict: comparisons of every metric, broken gates, remarks. Raises NotComparable."""
    comparisons: list[Comparison] = []
    slices: list[tuple[Comparison, SliceGate]] = []
    for baseline, candidate in pairs:
        metrics = check_comparable(baseline, candidate, gates.allow)
        gate = gates.of(candidate.task)
        primary = gate.primary or metrics[0]
        if primary not in metrics:
            raise UsageError(f"primary metric {primary!r} is not in both results ({', '.join(metrics)})")
        for metric in metrics:
            if metric in candidate.rows.columns:
                found = compare_metric(baseline, candidate, metric)
                comparisons.append(Comparison(**{**asdict(found), "primary": metric == primary}))
        slices += [(compare_metric(baseline, candidate, r.metric, r.slice), r) for r in gate.slice]
    primaries = [c for c in comparisons if c.primary]
    adjusted = dict(zip(map(id, primaries), holm([c.p for c in primaries])))
    comparisons = [Comparison(**{**asdict(c), "p_holm": adjusted.get(id(c))}) for c in comparisons]
    failures, remarks = [], []
    for c in comparisons:
        if not c.primary:
            continue
        gate = gates.of(c.task)
        if is_drop(c, gate.max_drop) and (c.p_holm or 0.0) <= gates.alpha:
            allowed = f"{gate.max_drop:.4f} is allowed"
            failures.append(f"{c.task}: {c.metric} fell by {-c.difference:.4f}, {allowed}")
        if gate.floor is not None and (c.candidate is None or c.candidate < gate.floor):
            failures.append(f"{c.task}: {c.metric} is {c.candidate}, below the floor {gate.floor}")
        quiet = (c.p_holm or 0.0) > gates.alpha
        if quiet and c.smallest_drop is not None and c.smallest_drop > max(gate.max_drop, 0.005):
            remarks.append(
                f"{c.task}: underpowered: with so many changed answers {c.n} questions show drops from "
                f"{c.smallest_drop:.4f} upwards in 80% of runs"
            )
    for c, rule in slices:
        if is_drop(c, rule.max_drop):
            failures.append(f"{c.task}: {c.metric} on {c.slice} fell by {-c.difference:.4f}")
    return {
        "verdict": "regression" if failures else "pass",
        "failures": failures,
        "remarks": remarks,
        "alpha": gates.alpha,
        "runs": [{"baseline": f"{b.path}:{b.run}", "candidate": f"{c.path}:{c.run}"} for b, c in pairs],
        "comparisons": [asdict(c) for c in (*comparisons, *(c for c, _ in slices))],
    }


def is_drop(c: Comparison, allowed: float) -> bool:
    """Whether the metric fell by more than is allowed and the interval excludes 0."""
    return c.difference is not None and -c.difference > allowed and c.ci_high is not None and c.ci_high < 0


def parser() -> Parser:
    p = Parser(
        prog="python -m eval.compare", description=__doc__, formatter_class=HelpFormatter, allow_abbrev=False
    )
    p.add_argument("--baseline", nargs="+", required=True, metavar="DIR[:RUN]", help="results, a task each")
    p.add_argument("--candidate", nargs="+", required=True, metavar="DIR[:RUN]", help="in the same order")
    p.add_argument("--gates", metavar="FILE", help="TOML; without it no significant drop is allowed")
    p.add_argument("--json", metavar="FILE", help="write the verdict as JSON")
    p.add_argument("--markdown", metavar="FILE", help="write it for a pull request")
    p.add_argument("--parquet", metavar="FILE", help="write the comparisons as a table")
    return p


def _open(argument: str) -> Results:
    directory, colon, run = argument.rpartition(":")
    if colon and not argument.endswith("/") and not files.exists(files.join(argument, "_manifest.json")):
        return load_results(directory, run)
    return load_results(argument)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    args: argparse.Namespace = parser().parse_args(argv)
    register_file_systems()
    if len(args.baseline) != len(args.candidate):
        raise UsageError(f"{len(args.baseline)} baselines for {len(args.candidate)} candidates")
    gates = read_gates(args.gates)
    pairs = [(_open(b), _open(c)) for b, c in zip(args.baseline, args.candidate)]
    try:
        verdict = compare_runs(pairs, gates)
    except NotComparable as error:
        print(f"not comparable: {error}")
        return EXIT_NOT_COMPARABLE
    if args.json:
        files.write_bytes(args.json, (json.dumps(verdict, indent=2) + "\n").encode())
    if args.markdown:
        files.write_bytes(args.markdown, as_markdown(verdict).encode())
    if args.parquet:
        write_parquet(args.parquet, verdict)
    print(as_text(verdict))
    return EXIT_REGRESSION if verdict["failures"] else 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
