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
from eval._cells import fill_key_cell
from eval._gates import Gates, SliceGate, read_gates
from eval._intervals import HALF_STREAM, around, id_hashes, mixed
from eval._paired import NotComparable, Results, check_comparable, load_results, recounted, split_run
from eval._significance import (
    distinct_interval,
    distinct_swap_test,
    holm,
    mcnemar_exact,
    paired_interval,
    pooled_interval,
    sign_flip,
    smallest_drop,
    smallest_mean_drop,
    swap_test,
)
from eval._verdict import as_markdown, as_text, finite, write_parquet
from eval.metrics.base import mean
from rag_core import files
from rag_core.errors import EXIT_NOT_COMPARABLE, EXIT_REGRESSION, UsageError, run_command

SEED = 0
SWAPS = "approximate randomisation"


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
    """Paired comparison of one metric, over the questions that it scores in both runs.

    Both values, their difference, its interval and its test are of the same rows. Exact McNemar for 0/1
    metrics, sign flips for other means, swaps for what is pooled or counted over the whole set.
    """
    before, after = _slice_rows(baseline, candidate, metric, slice_)
    found = recounted(metric, before, after)
    distinct = found is not None and found[0].width == 0
    scored = (before[metric].notna() & after[metric].notna()).to_numpy()
    if (
        not distinct
    ):  # an output without an n-gram has no value of its own, and is one of the set all the same
        before, after = before[scored], after[scored]
        found = found and (found[0], [_chosen(rows, scored) for rows in found[1]])
    hashes = id_hashes(list(after.index), SEED)
    wins = int((after[metric] > before[metric]).sum())
    losses = int((after[metric] < before[metric]).sum())
    if distinct:
        pair = _distinct_pair(*found[1], hashes)
    elif found is not None:
        pair = _pooled_pair(*found, hashes)
    else:
        pair = _mean_pair(*(rows[metric].to_numpy(np.float64) for rows in (before, after)), hashes)
    low, high = around(pair.interval, pair.difference) or (None, None)
    changed = int((before.prediction.fillna("\0") != after.prediction.fillna("\0")).sum())
    counts = (len(after), changed, wins, losses)
    values = (pair.baseline, pair.candidate, pair.difference, low, high, pair.p, pair.test)
    return Comparison(candidate.task, slice_, metric, *values, *counts, pair.smallest_drop)


@dataclass(frozen=True)
class Pair:
    """Two values of one metric over the same rows, and what their difference is worth."""

    baseline: float | None
    candidate: float | None
    interval: tuple[float, float] | None
    p: float
    test: str
    smallest_drop: float | None = None

    @property
    def difference(self) -> float | None:
        if self.baseline is None or self.candidate is None:
            return None
        return 0.0 if self.baseline == self.candidate else self.candidate - self.baseline


def _mean_pair(before_N: np.ndarray, after_N: np.ndarray, hashes: np.ndarray) -> Pair:
    with np.errstate(invalid="ignore"):
        difference_N = np.where(before_N == after_N, 0.0, after_N - before_N)
    wins, losses = int((difference_N > 0).sum()), int((difference_N < 0).sum())
    values = mean(before_N), mean(after_N), paired_interval(difference_N, hashes)
    if set(np.unique(before_N)) | set(np.unique(after_N)) <= {0.0, 1.0}:
        least = smallest_drop(len(after_N), (wins + losses) / max(1, len(after_N)))
        return Pair(*values, mcnemar_exact(losses, wins), "exact McNemar", least)
    if not np.isfinite(difference_N).all():  # a mean is no match for an infinite one: how many rose and fell
        return Pair(*values, mcnemar_exact(losses, wins), "exact sign test")
    return Pair(*values, sign_flip(difference_N, hashes), "sign flip", smallest_mean_drop(difference_N))


def _pooled_pair(metric: Any, rows: Sequence[Any], hashes: np.ndarray) -> Pair:
    before_NS, after_NS = (np.array(r, np.int64).reshape(-1, metric.width) for r in rows)
    values = [metric.score([int(s) for s in r.sum(axis=0)]) for r in (before_NS, after_NS)]
    interval = pooled_interval(before_NS, after_NS, hashes, metric.score)
    return Pair(*values, interval, swap_test(before_NS, after_NS, hashes, metric.score), SWAPS)


def _distinct_pair(before: Sequence[Any], after: Sequence[Any], hashes: np.ndarray) -> Pair:
    cells = [fill_key_cell(rows, mixed(hashes, HALF_STREAM)) for rows in (before, after)]
    p = distinct_swap_test(before, after, hashes)
    return Pair(cells[0].value(), cells[1].value(), distinct_interval(*cells), p, SWAPS)


def _chosen(rows: Sequence[Any], chosen_N: np.ndarray) -> list[Any]:
    return [row for row, chosen in zip(rows, chosen_N) if chosen]


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
    _check_gates(gates, [candidate.task for _, candidate in pairs])
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
        slices += [(_slice_comparison(baseline, candidate, metrics, r), r) for r in gate.slice]
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


def _check_gates(gates: Gates, tasks: Sequence[str]) -> None:
    """A rule for a task that is not compared guards nothing: UsageError, rather than a pass."""
    idle = [task for task in gates.task if task not in tasks and task != "default"]
    if idle:
        raise UsageError(
            f"gates for task {idle[0]!r}, but the results are of {', '.join(dict.fromkeys(tasks))}"
        )


def _slice_comparison(
    baseline: Results, candidate: Results, metrics: Sequence[str], rule: SliceGate
) -> Comparison:
    if rule.metric not in metrics or rule.metric not in candidate.rows.columns:
        raise UsageError(f"slice rule: metric {rule.metric!r} is not in both results ({', '.join(metrics)})")
    found = compare_metric(baseline, candidate, rule.metric, rule.slice)
    if not found.n:
        raise UsageError(f"slice rule: no question of task {candidate.task} is in {rule.slice!r}")
    return found


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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    args: argparse.Namespace = parser().parse_args(argv)
    register_file_systems()
    if len(args.baseline) != len(args.candidate):
        raise UsageError(f"{len(args.baseline)} baselines for {len(args.candidate)} candidates")
    gates = read_gates(args.gates)
    baselines, candidates = (
        [load_results(*split_run(a)) for a in arguments] for arguments in (args.baseline, args.candidate)
    )
    pairs = list(zip(baselines, candidates))
    try:
        verdict = compare_runs(pairs, gates)
    except NotComparable as error:
        print(f"not comparable: {error}")
        return EXIT_NOT_COMPARABLE
    if args.json:
        files.write_bytes(args.json, (json.dumps(finite(verdict), indent=2, allow_nan=False) + "\n").encode())
    if args.markdown:
        files.write_bytes(args.markdown, as_markdown(verdict).encode())
    if args.parquet:
        write_parquet(args.parquet, verdict)
    print(as_text(verdict))
    return EXIT_REGRESSION if verdict["failures"] else 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
