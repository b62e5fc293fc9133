"""Inner products of chosen pairs, in float64 and summed in one order that depends on D alone.

Products of float32 numbers are exact in float64. Each pair is summed by itself, in the order of one
vectorised loop over its D numbers, so that a pair has one score, in whatever company, block or
thread it is scored.

Shapes: Q queries · N rows · D numbers of a vector · P pairs.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch

from rag_core.retrieval.first_pass import TINY, float32_margin

# Rows turned into float64 at a time, so that no second copy of them all is held.
CONVERTED_ROWS = 256


def exact_scores(
    float64_QD: torch.Tensor, vectors_ND: np.ndarray, query_P: np.ndarray, row_P: np.ndarray
) -> np.ndarray:
    """Float64 inner products [P] of the (query, row) pairs, which are sorted by query."""
    if not len(query_P):
        return np.empty(0)
    wanted_N = np.zeros(len(vectors_ND), bool)
    wanted_N[row_P] = True
    place_N = np.cumsum(wanted_N) - 1
    rows = np.flatnonzero(wanted_N)
    exact_ND = np.empty((len(rows), vectors_ND.shape[1]))
    for start in range(0, len(rows), CONVERTED_ROWS):
        span = slice(start, start + CONVERTED_ROWS)
        exact_ND[span] = vectors_ND[rows[span]]
    return pair_products(float64_QD, torch.from_numpy(exact_ND), query_P, place_N[row_P]).numpy()


def pair_products(
    queries_QD: torch.Tensor, vectors_ND: torch.Tensor, query_P: np.ndarray, row_P: np.ndarray
) -> torch.Tensor:
    """Inner products [P], in the tensors' own type, of pairs sorted by query; rows are not copied."""
    starts = np.searchsorted(query_P, np.arange(len(queries_QD) + 1))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        pattern = torch.sparse_csr_tensor(
            torch.from_numpy(starts),
            torch.from_numpy(row_P),
            torch.zeros(len(row_P), dtype=queries_QD.dtype),
            (len(queries_QD), len(vectors_ND)),
            check_invariants=False,
        )
        return torch.sparse.sampled_addmm(pattern, queries_QD, vectors_ND.T, beta=0.0).values()


def drop_hopeless(
    queries_QD: torch.Tensor,
    vectors_ND: torch.Tensor,
    query_P: np.ndarray,
    row_P: np.ndarray,
    floor_P: np.ndarray,
    bound_P: np.ndarray,
) -> np.ndarray:
    """Which pairs [P] (bool) may still reach `floor_P`, by float32 products; `bound_P` is ‖q‖‖p‖."""
    dim = vectors_ND.shape[1]
    scores_P = pair_products(queries_QD, vectors_ND, query_P, row_P).numpy().astype(np.float64)
    return ~(scores_P + float32_margin(dim) * bound_P + dim * TINY < floor_P)
