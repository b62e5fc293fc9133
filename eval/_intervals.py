"""95% intervals: Wilson for shares, the Poisson bootstrap for the rest, half-samples for distinct-n.

Poisson bootstrap: replicate r counts example i `w(i, r)` times, w Poisson with mean 1, drawn from a hash
of (seed, question id, r). The weights are the example's own: they do not depend on order, partition or
workers, sums merge, and two runs over the same questions are resampled alike (paired by construction).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np

REPLICATES = 1000
HALF_STREAM = 1 << 20  # of half-samples: far from the bootstrap's streams
_Z = 1.959963984540054
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Wilson's score interval at 95% of a share; never leaves [0, 1], never degenerate.

    Wilson 1927; equals scipy's `proportion_ci(method="wilson")`.
    """
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"{successes} of {n}: expected 0 <= successes <= n and n >= 1")
    p, z2 = successes / n, _Z * _Z
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return low, high


def percentile_interval(replicates: np.ndarray) -> tuple[float, float] | None:
    """The 2.5% and 97.5% points of the bootstrap replicates; None when none is defined."""
    replicates = replicates[~np.isnan(replicates)]
    if not len(replicates):
        return None
    # between −inf and a number there is nothing to interpolate: the replicate itself then
    method = "linear" if np.isfinite(replicates).all() else "nearest"
    low, high = np.quantile(replicates, (0.025, 0.975), method=method)
    return float(low), float(high)


def around(interval: tuple[float, float] | None, value: float | None) -> tuple[float, float] | None:
    """The interval, stretched to hold its own value where rounding (or a handful of examples) left it out."""
    if interval is None or value is None:
        return interval
    return min(interval[0], value), max(interval[1], value)


def id_hashes(ids: Sequence[str], seed: int) -> np.ndarray:
    """One uint64 for each (seed, id), from BLAKE2b."""
    key = seed.to_bytes(8, "little", signed=True)
    data = b"".join(
        hashlib.blake2b(i.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest() for i in ids
    )
    return np.frombuffer(data, "<u8")


def mixed(values: np.ndarray, stream: int) -> np.ndarray:
    """SplitMix64's finaliser of `values + stream·golden`: independent 64-bit numbers a stream."""
    with np.errstate(over="ignore"):
        x = values + np.uint64(stream + 1) * _GOLDEN
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def _poisson_table() -> np.ndarray:
    """Poisson(1) by inversion at 2^16 equally likely points (probabilities right to 2^-16)."""
    cumulative, term, k = [], math.exp(-1), 0
    while len(cumulative) < 9:
        cumulative.append((cumulative[-1] if cumulative else 0.0) + term)
        k += 1
        term /= k
    return np.searchsorted(cumulative, (np.arange(1 << 16) + 0.5) / (1 << 16), side="right").astype(np.uint8)


_POISSON = _poisson_table()


def poisson_weights(hashes: np.ndarray, replicates: int = REPLICATES) -> np.ndarray:
    """Weights [rows, replicates] uint8 of the examples whose `id_hashes` are given."""
    streams = -(-replicates // 4)  # four 16-bit draws from each 64-bit number
    draws = np.empty((len(hashes), streams), "<u8")
    for stream in range(streams):
        draws[:, stream] = mixed(hashes, stream)
    return _POISSON[draws.view("<u2")[:, :replicates]]
