"""Sums that add up: what crosses from part to part is counts, integers and bootstrap sums, never rows.

Shapes: N rows, S statistics of a metric, R replicates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from eval._intervals import around, percentile_interval, wilson
from eval.metrics.base import MeanMetric, Metric, Statistics

_SHIFT = 1100  # a float times 2^1100 is an integer


def _steps(metric: Metric) -> float:
    """Bootstrap sums hold values in steps of 2^-26 (of metrics that leave [0, 1], 2^-16): integers, so
    that their float64 sums are exact."""
    return float(1 << (16 if metric.unbounded else 26))


def exact_sum(values: np.ndarray) -> int:
    """The sum of finite floats without rounding, in units of 2^-1100."""
    total = 0
    for value, count in zip(*np.unique(values, return_counts=True)):
        numerator, denominator = float(value).as_integer_ratio()
        total += int(count) * ((numerator << _SHIFT) // denominator)
    return total


@dataclass
class Cell:
    """One metric over one slice and scope, in part or whole; `add` merges two."""

    n: int = 0
    n_missing: int = 0
    sums: list[int] = field(default_factory=list)
    exact: int = 0
    n_infinite: int = 0
    """Examples whose value is −inf; they are not in `exact`."""
    replicates: np.ndarray | None = None

    def add(self, other: Cell) -> Cell:
        self.n += other.n
        self.n_missing += other.n_missing
        self.exact += other.exact
        self.n_infinite += other.n_infinite
        self.sums = [a + b for a, b in zip(self.sums, other.sums)] if self.sums else list(other.sums)
        if self.replicates is None:
            self.replicates = None if other.replicates is None else other.replicates.copy()
        elif other.replicates is not None:
            self.replicates += other.replicates
        return self


@dataclass
class Counted:
    """A metric's statistics over rows, once, for all the slices they enter."""

    metric: Metric
    statistics_NS: np.ndarray
    values_N: np.ndarray | None
    """The examples' own values; of means only."""
    columns_NC: np.ndarray
    """What the bootstrap adds up; no columns where intervals need none."""

    @classmethod
    def of(cls, metric: Metric, rows: Sequence[Statistics | None]) -> Counted:
        zero = (0,) * metric.width
        whole = [zero if row is None else row for row in rows]
        statistics_NS = np.array(whole, np.int64).reshape(-1, metric.width)
        if not isinstance(metric, MeanMetric):
            return cls(metric, statistics_NS, None, statistics_NS.astype(np.float64))
        values_N = np.array([0.0 if row is None else metric.example(row) for row in rows], np.float64)
        if metric.binary:
            return cls(metric, statistics_NS, values_N, np.empty((len(rows), 0)))
        infinite_N = np.isinf(values_N)
        columns = [np.rint(np.where(infinite_N, 0.0, values_N) * _steps(metric)), np.ones(len(rows))]
        if metric.unbounded:
            columns.append(infinite_N.astype(np.float64))
        return cls(metric, statistics_NS, values_N, np.stack(columns, axis=1))


def fill_cells(requests: Sequence[tuple[Counted, np.ndarray]], weights_NR: np.ndarray) -> list[Cell]:
    """The cell of each (metric, chosen rows), with one product of matrices for all their bootstrap sums.

    `weights_NR` float64; sums of integers below 2^53, so exact in any order.
    """
    if not requests:
        return []
    cells, columns = [], []
    for counted, chosen_N in requests:
        cell = Cell(int(chosen_N.sum()))
        if counted.values_N is None:
            cell.sums = [int(total) for total in counted.statistics_NS[chosen_N].sum(axis=0)]
        else:
            values = counted.values_N[chosen_N]
            finite = values[np.isfinite(values)]
            cell.exact, cell.n_infinite = exact_sum(finite), len(values) - len(finite)
        cells.append(cell)
        columns.append(counted.columns_NC * chosen_N[:, None])
    sums_RC = weights_NR.T @ np.concatenate(columns, axis=1)
    ends = np.cumsum([c.shape[1] for c in columns])
    for cell, own in zip(cells, np.split(sums_RC, ends[:-1], axis=1)):
        cell.replicates = own.copy() if own.shape[1] else None
    return cells


def cell_value(metric: Metric, cell: Cell) -> float | None:
    """The metric's value over the cell: as `Metric.total` over its rows."""
    if isinstance(metric, MeanMetric):
        if cell.n_infinite:
            return -math.inf
        return cell.exact / (1 << _SHIFT) / cell.n if cell.n else None
    return metric.score(cell.sums or [0] * metric.width)


def cell_interval(metric: Metric, cell: Cell) -> tuple[float, float] | None:
    """The 95% interval of the cell's value; None where the value is undefined."""
    if not cell.n:
        return None
    if metric.binary:
        return wilson(round(cell.exact / (1 << _SHIFT)), cell.n)
    assert cell.replicates is not None
    if isinstance(metric, MeanMetric):
        with np.errstate(invalid="ignore", divide="ignore"):
            values = cell.replicates[:, 0] / _steps(metric) / cell.replicates[:, 1]
        if cell.n_infinite:
            values[cell.replicates[:, 2] > 0] = -math.inf
    else:
        scores = (metric.score([int(s) for s in row]) for row in cell.replicates)
        values = np.array([math.nan if s is None else s for s in scores])
    return around(percentile_interval(values), cell_value(metric, cell))


HALVES = 64


@dataclass
class KeyCell:
    """Distinct n-grams by key: for each key the half-samples (bits) that hold it, and the totals.

    A set of keys merges where a count of distinct ones would not. Each example is in half-sample b when
    bit b of its own 64-bit number is set.
    """

    n: int = 0
    n_missing: int = 0
    total: int = 0
    totals_H: np.ndarray = field(default_factory=lambda: np.zeros(HALVES, np.int64))
    pieces: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def add(self, other: KeyCell) -> KeyCell:
        self.n += other.n
        self.n_missing += other.n_missing
        self.total += other.total
        self.totals_H = self.totals_H + other.totals_H
        self.pieces = [*self.pieces, *other.pieces]
        if len(self.pieces) > 8:
            self.compact()
        return self

    def compact(self) -> tuple[np.ndarray, np.ndarray]:
        """All keys once, sorted, with the union of their bits."""
        if not self.pieces:
            return np.empty(0, np.uint64), np.empty(0, np.uint64)
        keys = np.concatenate([k for k, _ in self.pieces])
        bits = np.concatenate([b for _, b in self.pieces])
        order = np.argsort(keys, kind="stable")
        keys, bits = keys[order], bits[order]
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else []
        if len(keys):
            keys, bits = keys[starts], np.bitwise_or.reduceat(bits, starts)
        self.pieces = [(keys, bits)]
        return keys, bits

    def value(self) -> float | None:
        return len(self.compact()[0]) / self.total if self.total else None

    def interval(self) -> tuple[float, float] | None:
        """Value ± 1.96 standard deviations of the ratio over half-samples.

        Resampling with replacement repeats whole outputs and so halves their n-grams' share: it is
        biased for a count of distinct things. Half-samples without replacement (a delete-half
        jackknife, whose variance needs no factor) are not.
        """
        value = self.value()
        if value is None:
            return None
        low, high = around_spread(value, self.half_ratios())
        return max(0.0, low), min(1.0, high)

    def half_ratios(self) -> np.ndarray:
        """The ratio in each half-sample; NaN where it holds no n-gram."""
        _, bits = self.compact()
        distinct = [int(((bits >> np.uint64(half)) & np.uint64(1)).sum()) for half in range(HALVES)]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.array(distinct) / self.totals_H


def around_spread(value: float, ratios: np.ndarray) -> tuple[float, float]:
    """Value ± 1.96 standard deviations of the half-samples' own values."""
    ratios = ratios[~np.isnan(ratios)]
    spread = 1.959963984540054 * float(np.std(ratios)) if len(ratios) > 1 else 0.0
    return value - spread, value + spread


def fill_key_cell(keys: Sequence[Sequence[int]], halves_N: np.ndarray) -> KeyCell:
    """The cell of rows' n-gram keys; `halves_N` uint64 are the rows' half-sample bits."""
    lengths = np.array([len(k) for k in keys], np.int64)
    flat = np.fromiter((key for row in keys for key in row), np.uint64, int(lengths.sum()))
    member = (halves_N[:, None] >> np.arange(HALVES, dtype=np.uint64)) & np.uint64(1)
    cell = KeyCell(
        len(keys),
        total=int(lengths.sum()),
        totals_H=lengths @ member.astype(np.int64),
        pieces=[(flat, np.repeat(halves_N, lengths))],
    )
    cell.compact()
    return cell
