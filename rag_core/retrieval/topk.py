"""The one order of hits, (-score, id), and the running top-k that keeps to it.

Equal scores are ordered by id, so that a result depends neither on the order of the corpus nor on
how it is cut into shards and blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np


def merge_topk(
    results: Iterable[tuple[Sequence[float], Sequence[str]]], k: int
) -> tuple[list[float], list[str]]:
    """Merge one query's hits from several shards: `(scores, ids)` of the best k by (-score, id).

    Raises ValueError when an id comes twice (shards overlap), a score is NaN, or lengths differ.
    """
    hits: dict[str, float] = {}
    for scores, ids in results:
        if len(scores) != len(ids):
            raise ValueError(f"{len(scores)} scores but {len(ids)} ids")
        for score, passage_id in zip(scores, ids):
            if passage_id in hits:
                raise ValueError(f"passage {passage_id!r} was found by two shards; shards overlap")
            if score != score:
                raise ValueError(f"passage {passage_id!r} has score NaN")
            hits[passage_id] = float(score)
    best = sorted(hits.items(), key=lambda hit: (-hit[1], hit[0]))[:k]
    return [score for _, score in best], [passage_id for passage_id, _ in best]


class RunningTopK:
    """The best k (score, row) of each query over a stream of candidates.

    Candidates are buffered and merged together; `threshold_Q` is the k-th best score after the last
    merge (-inf while a query has fewer than k), so a candidate below it can be left out.
    Memory: O(queries × k) plus what is buffered.
    """

    def __init__(self, n_queries: int, k: int, ids_of: Callable[[np.ndarray], Sequence[str]]) -> None:
        self.n_queries = n_queries
        self.k = k
        self.threshold_Q = np.full(n_queries, -np.inf)
        self._ids_of = ids_of
        self._kept = (np.empty(0, np.int64), np.empty(0, np.float64), np.empty(0, np.int64))
        self._buffer: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.n_buffered = 0

    def add(self, queries: np.ndarray, scores: np.ndarray, rows: np.ndarray) -> None:
        """Candidates as three equally long arrays: query number, float64 score, corpus row."""
        if len(queries):
            self._buffer.append((queries, scores, rows))
            self.n_buffered += len(queries)

    def merge(self) -> None:
        """Fold the buffer into the kept hits and raise the thresholds."""
        if not self._buffer:
            return
        parts = [self._kept, *self._buffer]
        queries, scores, rows = (np.concatenate([part[i] for part in parts]) for i in range(3))
        self._buffer, self.n_buffered = [], 0
        order = _sorted_order(queries, scores, self.n_queries)
        queries, scores, rows = queries[order], scores[order], rows[order]
        order = self._settle_ties(queries, scores, rows)
        if order is not None:
            queries, scores, rows = queries[order], scores[order], rows[order]
        first_Q = np.searchsorted(queries, np.arange(self.n_queries + 1))
        rank = np.arange(len(queries)) - first_Q[queries]
        keep = rank < self.k
        self._kept = (queries[keep], scores[keep], rows[keep])
        full = rank == self.k - 1
        self.threshold_Q[queries[full]] = scores[full]

    def _settle_ties(self, queries: np.ndarray, scores: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """The order that puts equal scores in order of id, or None when there are no equal scores."""
        same = (queries[1:] == queries[:-1]) & (scores[1:] == scores[:-1])
        if not same.any():
            return None
        tied = np.zeros(len(queries), bool)
        tied[1:] |= same
        tied[:-1] |= same
        tied_rows, inverse = np.unique(rows[tied], return_inverse=True)
        names = list(self._ids_of(tied_rows))
        rank_of_row = np.empty(len(names), np.int64)
        rank_of_row[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        id_rank = np.zeros(len(queries), np.int64)
        id_rank[tied] = rank_of_row[inverse]
        return np.lexsort((id_rank, -scores, queries))

    def results(self) -> tuple[list[list[float]], list[list[str]]]:
        """`(scores, ids)`: per query a list, best first."""
        self.merge()
        queries, scores, rows = self._kept
        bounds = np.searchsorted(queries, np.arange(self.n_queries + 1)).tolist()
        unique_rows, inverse = np.unique(rows, return_inverse=True)
        names = list(self._ids_of(unique_rows))
        all_ids = [names[i] for i in inverse.tolist()]
        all_scores = scores.tolist()
        spans = list(zip(bounds, bounds[1:]))
        return [all_scores[a:b] for a, b in spans], [all_ids[a:b] for a, b in spans]


def _sorted_order(queries: np.ndarray, scores: np.ndarray, n_queries: int) -> np.ndarray:
    """The order by (query, -score); equal scores in any order. Faster than `np.lexsort` here."""
    by_score = np.argsort(-scores)
    # 16-bit keys are sorted by radix.
    keys = queries[by_score].astype(np.uint16 if n_queries <= 1 << 16 else np.int64)
    return by_score[np.argsort(keys, kind="stable")]
