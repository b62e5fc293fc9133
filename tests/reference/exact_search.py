"""Exact search as one reads it: float64 products of whole rows, sorted by (-score, id)."""

from __future__ import annotations

import numpy as np


def search(queries_QD, vectors_ND, ids, k):
    """Per query the best k: scores and ids."""
    queries_QD = np.asarray(queries_QD, np.float64)
    vectors_ND = np.asarray(vectors_ND, np.float64)
    scores, names = [], []
    for query_D in queries_QD:
        products_N = (vectors_ND * query_D).sum(axis=1)
        hits = sorted(zip((-products_N).tolist(), ids))[:k]
        scores.append([-s for s, _ in hits])
        names.append([i for _, i in hits])
    return scores, names


def log_partition(queries_QD, vectors_ND, scale):
    """[Q] logsumexp of scale × score over all vectors."""
    scores_QN = scale * np.asarray(queries_QD, np.float64) @ np.asarray(vectors_ND, np.float64).T
    high_Q1 = scores_QN.max(axis=1, keepdims=True)
    return high_Q1[:, 0] + np.log(np.exp(scores_QN - high_Q1).sum(axis=1))
