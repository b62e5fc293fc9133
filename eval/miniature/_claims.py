"""Claims held against what was measured: one function a kind of claim, one judge for all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eval.metrics import get_metric
from eval.metrics.base import mean
from eval.miniature._figures import AT_K, Figure, Reader
from eval.miniature._recipes import Claim, Experiment
from eval.pages.figures import figure as shown
from rag_core.errors import UsageError

CLAIMS = pa.schema(
    [
        *((name, pa.string()) for name in ("experiment", "claim", "expected", "unit")),
        *((name, pa.float64()) for name in ("value", "ci_low", "ci_high")),
        ("n", pa.int64()),
        ("holds", pa.bool_()),
        *((name, pa.string()) for name in ("why", "paper")),
    ]
)


@dataclass(frozen=True)
class Kind:
    """A kind of claim: what it measures, what it must name, the unit of its value, whether it may be of a
    slice, and whether its figure has an interval."""

    measure: Callable[[Reader, Claim, Mapping[str, Any]], Figure]
    needs: tuple[str, ...] = ()
    unit: str = "share"
    sliced: bool = False
    interval: bool = True


def _value(reader: Reader, claim: Claim, sizes: Mapping[str, Any]) -> Figure:
    return reader.value(claim.result, str(claim.metric), claim.slice)


def _difference(reader: Reader, claim: Claim, sizes: Mapping[str, Any]) -> Figure:
    return reader.difference(claim.result, str(claim.baseline), str(claim.metric), claim.slice)


def _together(reader: Reader, claim: Claim, sizes: Mapping[str, Any]) -> Figure:
    """Pearson's correlation of two figures over the points of a list."""
    pairs = []
    for k in sizes[str(claim.at)]:
        names = ((claim.result, claim.metric), (claim.baseline, claim.baseline_metric))
        found = [reader.value(at_point(r, k), at_point(m, k), claim.slice) for r, m in names]
        for f in found:
            if f.value is None:
                return f
        pairs.append([f.value for f in found])
    return Figure(correlation(pairs), n=len(pairs))


def _same_answers(reader: Reader, claim: Claim, sizes: Mapping[str, Any]) -> Figure:
    return reader.same_answers(claim.result, str(claim.baseline))


def _log_prob_gap(reader: Reader, claim: Claim, sizes: Mapping[str, Any]) -> Figure:
    return reader.log_prob_gap(claim.result, str(claim.baseline))


def _posterior_gain(reader: Reader, claim: Claim, sizes: Mapping[str, Any]) -> Figure:
    return reader.posterior_gain(claim.result, claim.slice)


def _logged(reader: Reader, claim: Claim, sizes: Mapping[str, Any]) -> Figure:
    return reader.logged(claim.result, str(claim.metric))


def _warned(reader: Reader, claim: Claim, sizes: Mapping[str, Any]) -> Figure:
    return reader.warned(claim.result)


def _more_parameters(reader: Reader, claim: Claim, sizes: Mapping[str, Any]) -> Figure:
    """How many weights a checkpoint's part has more than another's."""
    return reader.more_parameters(claim.result, str(claim.baseline), str(claim.metric))


KINDS = {
    "value": Kind(_value, ("metric",), sliced=True),
    "difference": Kind(_difference, ("metric", "baseline"), sliced=True),
    "together": Kind(_together, ("metric", "baseline", "baseline_metric", "at"), "correlation", True, False),
    "same_answers": Kind(_same_answers, ("baseline",)),
    "log_prob_gap": Kind(_log_prob_gap, ("baseline",), "nats", interval=False),
    "posterior_gain": Kind(_posterior_gain, sliced=True),
    "logged": Kind(_logged, ("metric",), "number", interval=False),
    "warned": Kind(_warned, (), "share of trainings", interval=False),
    "more_parameters": Kind(_more_parameters, ("metric", "baseline"), "weights", interval=False),
}
_NAMED = ("metric", "baseline", "baseline_metric", "at")
CHECKPOINT_KINDS = ("logged", "warned", "more_parameters")
"""Kinds whose `result` and `baseline` are checkpoints."""


def at_point(template: str | None, k: Any) -> str:
    """`{k}` in the name of results or of a metric is the point of a figure."""
    return str(template).replace("{k}", str(k))


def check_claim(path: str, claim: Claim, sizes: Mapping[str, Any]) -> None:
    """UsageError on a claim of no kind, without what its kind needs, with what it does not look at, or by a
    metric that is none."""
    where = f"{path}: claim {claim.says!r}"
    if claim.kind not in KINDS:
        raise UsageError(f"{where}: unknown kind {claim.kind!r}; kinds: {', '.join(KINDS)}")
    kind = KINDS[claim.kind]
    for name in _NAMED:
        if (getattr(claim, name) is not None) != (name in kind.needs):
            raise UsageError(
                f"{where}: kind {claim.kind!r} {'needs' if name in kind.needs else 'takes no'} {name}"
            )
    if claim.slice != "all" and not kind.sliced:
        raise UsageError(f"{where}: kind {claim.kind!r} takes no slice")
    for name in ("above", "below"):
        if name in claim.expectations and not kind.interval:
            raise UsageError(f"{where}: kind {claim.kind!r} has no interval: {name} cannot hold")
    if claim.at is not None and not isinstance(sizes.get(claim.at), list):
        raise UsageError(f"{where}: at = {claim.at!r}: no list of that name in sizes")
    if claim.kind in ("value", "difference", "together"):
        for metric in (claim.metric, claim.baseline_metric):
            if metric is not None:
                check_metric(where, at_point(metric, 1))


def check_metric(where: str, metric: str) -> None:
    """UsageError for a metric that neither `eval.run` writes nor `eval.miniature._figures` knows."""
    hits = metric.startswith("top_") and metric.endswith(("_gold_page", "_gold_passage"))
    if AT_K.fullmatch(metric) or hits:
        return
    try:
        get_metric(metric)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None


def correlation(pairs: Sequence[Sequence[float]]) -> float | None:
    """Pearson's r; None where one of the two does not move."""
    if len(pairs) < 2:
        return None
    means = [mean(column) for column in zip(*pairs)]
    moves = [[v - m for v, m in zip(pair, means)] for pair in pairs]
    spreads = [math.fsum(m[i] ** 2 for m in moves) for i in (0, 1)]
    if not all(spreads):
        return None
    return math.fsum(a * b for a, b in moves) / math.sqrt(spreads[0] * spreads[1])


def expected(claim: Claim) -> str:
    """What the claim expects, in words."""
    unit = KINDS[claim.kind].unit
    words = {
        "above": "> {}, the whole interval",
        "below": "< {}, the whole interval",
        "at_least": "≥ {}",
        "at_most": "≤ {}",
        "equals": "= {}",
    }
    parts = [words[name].format(in_unit(value, unit)) for name, value in claim.expectations.items()]
    if claim.equals is not None and claim.tolerance:
        parts[-1] += f" ± {in_unit(claim.tolerance, unit)}"
    return "; ".join(parts)


def in_unit(value: float | None, unit: str) -> str:
    """A number as the page shows it: shares in percent, weights with separators."""
    if value is None:
        return "–"
    if unit == "weights":
        return f"{value:,.0f}"
    if unit == "nats":
        return f"{value:.1e}" if value else "0"
    if unit in ("correlation", "number"):
        return f"{value:.3f}"
    return shown(value, "share")


def judge(claim: Claim, found: Figure) -> tuple[bool, str]:
    """Whether the claim holds, and why: the figure against every expectation."""
    if found.value is None:
        return False, f"not measured: {found.why or 'no value'}"
    unit = KINDS[claim.kind].unit
    text = in_unit(found.value, unit)
    if found.low is not None and found.high is not None:
        text += f" [{in_unit(found.low, unit)}, {in_unit(found.high, unit)}]"
    broken = [name for name, bound in claim.expectations.items() if not _meets(name, bound, claim, found)]
    if not broken:
        return True, text
    faults = {
        "above": "the interval does not lie above {}",
        "below": "the interval does not lie below {}",
        "at_least": "below {}",
        "at_most": "above {}",
        "equals": "not {}",
    }
    said = [faults[name].format(in_unit(claim.expectations[name], unit)) for name in broken]
    return False, f"{text}: {', '.join(said)}" + (
        f". {' '.join(claim.if_not.split())}" if claim.if_not else ""
    )


def _meets(name: str, bound: float, claim: Claim, found: Figure) -> bool:
    value = float(found.value)  # type: ignore[arg-type]
    return {
        "above": found.low is not None and found.low > bound,
        "below": found.high is not None and found.high < bound,
        "at_least": value >= bound,
        "at_most": value <= bound,
        "equals": abs(value - bound) <= claim.tolerance,
    }[name]


def claim_rows(
    experiments: Sequence[Experiment], reader: Reader, sizes: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """A row of `claims.parquet` for every claim, in the experiments' order."""
    rows = []
    for experiment in experiments:
        for claim in experiment.claim:
            found = KINDS[claim.kind].measure(reader, claim, sizes)
            holds, why = judge(claim, found)
            rows.append(
                {
                    "experiment": experiment.name,
                    "claim": claim.says,
                    "expected": expected(claim),
                    "unit": KINDS[claim.kind].unit,
                    "value": found.value,
                    "ci_low": found.low,
                    "ci_high": found.high,
                    "n": found.n,
                    "holds": holds,
                    "why": why,
                    "paper": claim.paper,
                }
            )
    return rows
