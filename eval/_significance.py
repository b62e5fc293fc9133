"""Tests for two runs over the same questions, paired by id; all two-sided, all exact or seeded.

Two identical runs have p = 1, whatever the test: a replicate that ties with what was observed counts as
extreme (with a strict comparison, as in sacrebleu 2.6.0, a system differs from its own copy with p = 0.001).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from eval._cells import KeyCell, around_spread
from eval._intervals import mixed, percentile_interval, poisson_weights

REPLICATES = 9999
_EXACT_UP_TO = 16
_SWAP_STREAM = 1 << 21  # far from the bootstrap's and the half-samples' streams
_TIE = 1e-12
_Z95, _Z80 = 1.959963984540054, 0.8416212335729143


def mcnemar_exact(only_baseline: int, only_candidate: int) -> float:
    """Exact McNemar test on the questions that just one run gets right: a binomial test of one half.

    McNemar 1947; equals scipy's `binomtest`. 1 when there is no such question.
    """
    n, k = only_baseline + only_candidate, min(only_baseline, only_candidate)
    if 2 * k == n:
        return 1.0
    return min(1.0, 2 * float(np.exp(_log_binomial(n, 0.5)[: k + 1]).sum()))


def sign_flip(differences: np.ndarray, hashes: np.ndarray | None = None) -> float:
    """Sign-flip (paired randomisation) test of a mean difference of 0.

    Exact over all sign patterns when at most 16 differences are not 0; beyond that 9,999 patterns drawn
    from the questions' own hashes (needed then), so that order and threads change nothing.
    """
    differences = np.asarray(differences, np.float64)
    moved = np.flatnonzero(differences)
    observed = abs(math.fsum(differences))
    if len(moved) <= _EXACT_UP_TO:
        sums = [abs(math.fsum(s * d for s, d in zip(signs, differences[moved])))
                for signs in itertools.product((1, -1), repeat=len(moved))]  # fmt: skip
        return sum(s >= observed - _TIE for s in sums) / len(sums)
    if hashes is None:
        raise ValueError(f"{len(moved)} differences: give the questions' hashes to draw signs from")
    extreme = 0
    for signs_NB in _sign_blocks(hashes[moved]):
        extreme += int((np.abs(differences[moved] @ signs_NB) >= observed - _TIE * len(moved)).sum())
    return (1 + extreme) / (1 + REPLICATES)


Pooled = Callable[[Sequence[int]], float]
"""A pooled metric's value from the sums of its statistics."""


def swap_test(baseline_NS: np.ndarray, candidate_NS: np.ndarray, hashes: np.ndarray, score: Pooled) -> float:
    """Approximate randomisation for a pooled metric: statistics of a question change sides by a coin."""
    moved = np.flatnonzero((baseline_NS != candidate_NS).any(axis=1))
    if not len(moved):
        return 1.0
    both = baseline_NS.sum(axis=0) + candidate_NS.sum(axis=0)
    fixed = baseline_NS.sum(axis=0) - baseline_NS[moved].sum(axis=0)
    observed = abs(score(candidate_NS.sum(axis=0)) - score(baseline_NS.sum(axis=0)))
    extreme = 0
    for signs_NB in _sign_blocks(hashes[moved]):
        chosen = (signs_NB.T + 1) / 2
        sums_BS = chosen @ baseline_NS[moved] + (1 - chosen) @ candidate_NS[moved] + fixed
        extreme += sum(abs(score(both - row) - score(row)) >= observed - _TIE for row in sums_BS)
    return (1 + extreme) / (1 + REPLICATES)


def _sign_blocks(hashes: np.ndarray, block: int = 640) -> Iterator[np.ndarray]:
    """Signs ±1 [questions, replicates], 9,999 replicates in blocks."""
    return (_signs(hashes, start, min(block, REPLICATES - start)) for start in range(0, REPLICATES, block))


def _signs(hashes: np.ndarray, start: int, count: int) -> np.ndarray:
    words = [mixed(hashes, _SWAP_STREAM + start // 64 + i) for i in range(-(-count // 64))]
    bits = [((w[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).astype(np.int8) for w in words]
    return np.concatenate(bits, axis=1)[:, :count] * 2.0 - 1.0


def paired_interval(differences: np.ndarray, hashes: np.ndarray) -> tuple[float, float] | None:
    """95% Poisson-bootstrap interval of the mean difference; both runs share the weights.

    A difference may be infinite (a log-probability of −inf in one run): a replicate that holds it is too.
    """
    if not differences.any():
        return (0.0, 0.0) if len(differences) else None
    finite = np.isfinite(differences)
    columns_3N = np.stack(
        [np.where(finite, differences, 0.0), differences == math.inf, differences == -math.inf]
    )
    totals, sums_3R = 0.0, 0.0
    for start in range(0, len(differences), 4096):
        weights = poisson_weights(hashes[start : start + 4096]).astype(np.float64)
        sums_3R = sums_3R + columns_3N[:, start : start + 4096] @ weights
        totals = totals + weights.sum(axis=0)
    means_R, up_R, down_R = sums_3R[0], sums_3R[1] > 0, sums_3R[2] > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        means_R = means_R / totals
    means_R[up_R], means_R[down_R], means_R[up_R & down_R] = math.inf, -math.inf, math.nan
    return percentile_interval(means_R)


def pooled_interval(
    baseline_NS: np.ndarray, candidate_NS: np.ndarray, hashes: np.ndarray, score: Pooled
) -> tuple[float, float] | None:
    """95% paired Poisson-bootstrap interval of a pooled metric's difference."""
    sums = [0.0, 0.0]
    for start in range(0, len(hashes), 4096):
        weights = poisson_weights(hashes[start : start + 4096]).astype(np.float64)
        for side, rows in enumerate((baseline_NS, candidate_NS)):
            sums[side] = sums[side] + weights.T @ rows[start : start + 4096]
    return percentile_interval(np.array([score(c) - score(b) for b, c in zip(*sums)]))


def distinct_interval(baseline: KeyCell, candidate: KeyCell) -> tuple[float, float] | None:
    """95% interval of the difference of two shares of distinct n-grams, over the same half-samples.

    The runs' cells come from the same questions, so that half-sample h holds the same ones of both, and the
    spread of the 64 differences is the difference's own (Score intervals: `KeyCell.interval`).
    """
    before, after = baseline.value(), candidate.value()
    if before is None or after is None:
        return None
    low, high = around_spread(after - before, candidate.half_ratios() - baseline.half_ratios())
    return max(-1.0, low), min(1.0, high)


Keys = Sequence[Sequence[int]]
"""The n-gram keys of each question's output."""


def distinct_swap_test(baseline: Keys, candidate: Keys, hashes: np.ndarray) -> float:
    """Approximate randomisation for distinct n-grams: outputs change sides by a coin, 1,023 times.

    64 swaps at a time: bit r of a key's word says whether the key is there in swap r.
    """
    moved = [i for i in range(len(baseline)) if tuple(baseline[i]) != tuple(candidate[i])]
    if not moved:
        return 1.0
    same = set(range(len(baseline))).difference(moved)
    fixed = np.array(sorted({key for i in same for key in baseline[i]}), np.uint64)
    n_fixed = sum(len(baseline[i]) for i in same)
    sides = [[np.array(rows[i], np.uint64) for i in moved] for rows in (baseline, candidate)]
    lengths_2M = np.array([[len(keys) for keys in side] for side in sides])
    keys = np.concatenate([*sides[0], *sides[1]])
    order = np.argsort(keys, kind="stable")
    row_of = np.concatenate([np.repeat(np.arange(len(moved)), lengths) for lengths in lengths_2M])[order]
    is_candidate = (np.arange(len(keys)) >= lengths_2M[0].sum())[order]
    starts = np.flatnonzero(np.diff(keys[order], prepend=keys[order][:1] ^ np.uint64(1))) if len(keys) else []
    new = ~np.isin(keys[order][starts], fixed) if len(keys) else np.empty(0, bool)

    def ratios(words_M: np.ndarray) -> np.ndarray:
        """The share of distinct n-grams in each of 64 swaps; a set bit takes the row from the baseline."""
        words = np.where(is_candidate, ~words_M[row_of], words_M[row_of])
        held = np.bitwise_or.reduceat(words, starts)[new] if len(keys) else np.empty(0, np.uint64)
        distinct = len(fixed) + sum(_bit_counts(held[i : i + 65536]) for i in range(0, len(held), 65536))
        bits_M64 = _bits(words_M)
        totals = n_fixed + lengths_2M[0] @ bits_M64 + lengths_2M[1] @ (1 - bits_M64)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nan_to_num(distinct / totals)

    none = np.zeros(len(moved), np.uint64)
    observed = abs(ratios(~none)[0] - ratios(none)[0])
    extreme = 0
    for block in range(16):
        words_M = mixed(hashes[moved], _SWAP_STREAM + block)
        gaps = np.abs(ratios(words_M) - ratios(~words_M))[: 63 if block == 15 else 64]
        extreme += int((gaps >= observed - _TIE).sum())
    return (1 + extreme) / 1024


def _bits(words: np.ndarray) -> np.ndarray:
    """The bits of 64-bit words [N] as integers [N, 64]."""
    octets = np.ascontiguousarray(words, "<u8").view(np.uint8).reshape(-1, 8)
    return np.unpackbits(octets, axis=1, bitorder="little").astype(np.int64)


def _bit_counts(words: np.ndarray) -> np.ndarray:
    return _bits(words).sum(axis=0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment (1979), in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = largest
    return adjusted


def mcnemar_power(n: int, changed: float, drop: float, alpha: float = 0.05) -> float:
    """How often the exact McNemar test finds a drop, in closed form.

    `changed` is the share of the n questions whose rightness changes, `drop` the net loss (both as
    shares): discordant questions are Binomial(n, changed), losses among them Binomial(m, (1 + drop /
    changed) / 2). Summed over m and the test's own rejection region.
    """
    if not 0 <= drop <= changed <= 1 or not changed:
        raise ValueError(f"drop {drop}, changed {changed}: expected 0 <= drop <= changed <= 1, changed > 0")
    log_m = _log_binomial(n, changed)
    lost = (1 + drop / changed) / 2
    power = 0.0
    for m in np.flatnonzero(log_m > -40).tolist():
        half = 2 * np.cumsum(np.exp(_log_binomial(m, 0.5)))
        k = int(np.searchsorted(half, alpha * (1 + 1e-12), side="right")) - 1  # largest count that rejects
        if k >= 0:
            tails = np.exp(_log_binomial(m, lost))
            power += math.exp(log_m[m]) * float(tails[: k + 1].sum() + tails[m - k :].sum())
    return power


def smallest_drop(n: int, changed: float, power: float = 0.8) -> float | None:
    """The smallest drop found with the given power by the exact McNemar test; None when none is."""
    if not n or not changed or mcnemar_power(n, changed, changed) < power:
        return None
    low, high = 0.0, changed
    while high - low > 1e-5:
        middle = (low + high) / 2
        low, high = (low, middle) if mcnemar_power(n, changed, middle) >= power else (middle, high)
    return high


def smallest_mean_drop(differences: np.ndarray) -> float | None:
    """The smallest drop of a mean found with 80% power, from the differences' spread: (z.975 + z.8)·s/√n."""
    if len(differences) < 2:
        return None
    return (_Z95 + _Z80) * float(np.std(differences, ddof=1)) / math.sqrt(len(differences))


def _log_binomial(n: int, p: float) -> np.ndarray:
    """log P(X = k) for k = 0…n, X Binomial(n, p)."""
    k = np.arange(n + 1)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    with np.errstate(divide="ignore", invalid="ignore"):
        right = np.where(k > 0, k * np.log(p) if p else -np.inf, 0.0)
        wrong = np.where(k < n, (n - k) * np.log1p(-p) if p < 1 else -np.inf, 0.0)
    return log_factorial[n] - log_factorial - log_factorial[::-1] + right + wrong
