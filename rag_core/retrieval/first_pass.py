"""The first pass over a block of vectors: which pairs can still be among the best k.

Each pass gives cheap scores and a margin: no inner product is further from its cheap score than the
margin. A pair whose cheap score plus margin stays below the k-th best score found so far can be left
out; all others go on to `rescore`. So the pass decides the speed and never the result.

float32. A sum of D products, in any order, fused or not, is off by at most γ·Σ|q_i p_i| ≤ γ·‖q‖‖p‖,
γ = D·u/(1-D·u), u = 2^-24 (Higham, *Accuracy and Stability of Numerical Algorithms*, §3.1). Rounding
float64 input to float32 first adds at most 2u + u²; a product that underflows adds at most 2^-126.

int8. With q = s·q̂ + δq and p = t·p̂ + δp, where q̂ and p̂ hold integers in ±127,
q·p - s·t·(q̂·p̂) = δq·p + s·q̂·δp, at most ‖δq‖‖p‖ + ‖s·q̂‖‖δp‖ (Cauchy-Schwarz); the integer product
is exact. One scale t serves a tile of rows, so that a pair is tested by comparing two integers.

Shapes: Q queries · N rows of a block or tile · D numbers of a vector.
"""

from __future__ import annotations

import functools
import warnings

import numpy as np
import torch

UNIT = 2.0**-24
TINY = 2.0**-126
INT32 = np.iinfo(np.int32)
# A tile's scores should stay in cache until they are compared: 512 × 1024 numbers are 2 MiB.
TILE_QUERIES = 512
TILE_ROWS = 1024
# Columns whose maximum is compared before they are looked at one by one.
GROUP = 64
# Beyond these norms float32 products may overflow.
LARGEST_SCORE = 1e37


class Queries:
    """Queries [Q, D] with what the passes need of them; int8 parts are made when first used."""

    def __init__(self, queries_QD: np.ndarray) -> None:
        self.norm_Q = upper_norms(queries_QD)
        self.float64_QD = torch.from_numpy(np.ascontiguousarray(queries_QD, dtype=np.float64))
        self.float32_QD = float32_tensor(queries_QD)

    def __len__(self) -> int:
        return len(self.norm_Q)

    @functools.cached_property
    def int8(self) -> tuple[torch.Tensor, np.ndarray, np.ndarray, np.ndarray]:
        """q̂ [Q, D], s [Q], ‖δq‖ [Q] and ‖s·q̂‖ [Q], the last two rounded up."""
        exact_QD = self.float64_QD.numpy()
        scale_Q = np.abs(exact_QD).max(axis=1, initial=0.0) / 127
        scale_Q[scale_Q == 0] = 1.0
        hat_QD = np.rint(exact_QD / scale_Q[:, None])
        rounded_QD = hat_QD * scale_Q[:, None]
        error_Q = np.sqrt(np.square(exact_QD - rounded_QD).sum(axis=1)) + 1e-12 * self.norm_Q
        hat_norm_Q = np.sqrt(np.square(rounded_QD).sum(axis=1)) * (1 + 1e-9)
        return torch.from_numpy(hat_QD.astype(np.int8)), scale_Q, error_Q, hat_norm_Q


def float32_tensor(vectors_ND: np.ndarray) -> torch.Tensor:
    """The vectors in float32, without a copy where they are so already; only to be read."""
    with np.errstate(over="ignore"), warnings.catch_warnings():
        # Arrow's buffers are read-only, about which torch warns.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writ")
        return torch.from_numpy(np.ascontiguousarray(vectors_ND, dtype=np.float32))


def upper_norms(vectors_ND: np.ndarray) -> np.ndarray:
    """Upper bounds [N] (float64) of the rows' L2 norms, tight to a few units in 10^5.

    Inf or NaN where a row holds one, or where squares overflow float32.
    """
    rows_ND = float32_tensor(vectors_ND)
    dim = max(rows_ND.shape[1], 1)
    norms_N = torch.linalg.vector_norm(rows_ND, dim=1).numpy().astype(np.float64)
    # A component whose square underflows is below 2^-63.
    return norms_N * (1 + (dim + 8) * UNIT) + dim * 2.0**-63


def float32_candidates(
    queries: Queries,
    span: slice,
    tile_ND: torch.Tensor,
    norm: float,
    floor_Q: np.ndarray,
    k: int,
    log_z: tuple[np.ndarray, float] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(query, row) pairs of a tile that may score `floor_Q` or more, by a float32 product.

    `span` are the queries, numbered from its start in the result; `norm` bounds the rows' norms. Where
    the floor is -inf and the tile has k rows, its own k-th best score serves. `log_z`: an array [Q]
    to which the tile's logsumexp is added, and the scale of its scores.
    """
    scores_QN = queries.float32_QD[span] @ tile_ND.T
    dim = tile_ND.shape[1]
    margin_Q = float32_margin(dim) * queries.norm_Q[span] * norm + dim * TINY
    if log_z is not None:
        total_Q, scale = log_z
        part_Q = torch.logsumexp(scores_QN * scale, dim=1).double().numpy()
        total_Q[span] = np.logaddexp(total_Q[span], part_Q)
    if k == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if np.isneginf(floor_Q).any() and len(tile_ND) >= k:
        kth_Q = torch.topk(scores_QN, k, dim=1).values[:, -1].double().numpy()
        floor_Q = np.maximum(floor_Q, kth_Q - margin_Q)
    # Rounded down, so that the comparison in float32 leaves nothing out.
    least_Q = np.nextafter((floor_Q - margin_Q).astype(np.float32), np.float32(-np.inf))
    return at_least(scores_QN, torch.from_numpy(least_Q))


class Int8Tile:
    """A tile of rows as integers: p̂ [N, D], t, and the largest ‖δp‖ of its rows, rounded up."""

    def __init__(self, tile_ND: torch.Tensor, norm: float) -> None:
        dim = tile_ND.shape[1]
        self.norm = norm
        least, most = torch.aminmax(tile_ND)
        self.scale = max(-float(least), float(most)) / 127 or 1.0
        steps_ND = tile_ND * (1 / self.scale)
        hat_ND = steps_ND.round()
        self.hat_ND = hat_ND.to(torch.int8)
        # Two roundings a component (of 1/t and of the product), and those of the norm itself.
        error = float(torch.linalg.vector_norm(steps_ND.sub_(hat_ND), dim=1).max())
        self.error = error * self.scale * (1 + (dim + 8) * UNIT) + 4 * UNIT * norm

    def candidates(self, queries: Queries, span: slice, floor_Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(query, row) pairs that may score `floor_Q` or more, by an integer product."""
        hat_QD, scale_Q, error_Q, hat_norm_Q = queries.int8
        products_QN = torch._int_mm(hat_QD[span], self.hat_ND.T)
        margin_Q = error_Q[span] * self.norm + hat_norm_Q[span] * self.error
        least_Q = np.floor((floor_Q - margin_Q) / (scale_Q[span] * self.scale)) - 1
        least_Q = np.clip(least_Q, INT32.min, INT32.max).astype(np.int32)
        return at_least(products_QN, torch.from_numpy(least_Q))


def at_least(scores_QN: torch.Tensor, least_Q: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """(query, row) of scores that reach their query's threshold, sorted; NaN counts as reaching it."""
    n_queries, n_rows = scores_QN.shape
    whole = n_rows - n_rows % GROUP
    pairs = []
    if whole:
        groups_QGC = scores_QN[:, :whole].reshape(n_queries, -1, GROUP)
        near = torch.nonzero(~(groups_QGC.amax(2) < least_Q[:, None]))
        inner = torch.nonzero(~(groups_QGC[near[:, 0], near[:, 1]] < least_Q[near[:, 0], None]))
        found = near[inner[:, 0]]
        pairs.append((found[:, 0], found[:, 1] * GROUP + inner[:, 1]))
    if whole < n_rows:
        rest = torch.nonzero(~(scores_QN[:, whole:] < least_Q[:, None]))
        pairs.append((rest[:, 0], rest[:, 1] + whole))
    queries = np.concatenate([q.numpy() for q, _ in pairs])
    rows = np.concatenate([r.numpy() for _, r in pairs])
    if len(pairs) == 2:
        order = np.argsort(queries, kind="stable")
        queries, rows = queries[order], rows[order]
    return queries, rows


def float32_margin(dim: int) -> float:
    """The factor of ‖q‖‖p‖ by which a float32 inner product of rounded inputs can be off."""
    return (dim + 4) * UNIT / (1 - (dim + 4) * UNIT) * (1 + 1e-6)


@functools.cache
def int8_products_are_exact() -> bool:
    """Whether this machine has integer dot products that neither saturate nor crawl.

    Without VNNI (or AMX), kernels for int8 go through 16-bit sums that can saturate.
    """
    if not torch.backends.cpu.get_cpu_capability().startswith("AVX512") or not _has_vnni():
        return False
    extremes = torch.full((32, 256), 127, dtype=torch.int8)
    extremes[1::2] = -127
    extremes[::3, ::2] *= -1
    wide = extremes.to(torch.int64)
    return bool((torch._int_mm(extremes, extremes.T).to(torch.int64) == wide @ wide.T).all())


def _has_vnni() -> bool:
    return torch.cpu._is_vnni_supported()
