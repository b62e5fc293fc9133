"""Inner products in float64, each summed in one order that depends on the dimension alone."""

from __future__ import annotations

import numpy as np

# Pairs scored at a time: their vectors, widened, should stay in cache.
PAIRS = 4096


def exact_scores(
    queries_QD: np.ndarray, vectors_ND: np.ndarray, query_of_pair: np.ndarray, row_of_pair: np.ndarray
) -> np.ndarray:
    """Float64 inner products of the given (query, row) pairs.

    Products of float32 numbers are exact in float64; they are added along the contiguous axis of an
    array, which NumPy does pairwise, in an order that the dimension alone decides. So a pair has one
    score, in whatever company it is scored.
    """
    scores = np.empty(len(query_of_pair))
    for start in range(0, len(query_of_pair), PAIRS):
        span = slice(start, start + PAIRS)
        products = queries_QD[query_of_pair[span]].astype(np.float64)
        products *= vectors_ND[row_of_pair[span]]
        scores[span] = products.sum(axis=1)
    return scores
