"""One walk over the vectors: pieces, tiles, thresholds, and which first pass each tile gets.

Shapes: Q queries · N rows of a piece or tile · D numbers of a vector · P (query, row) pairs.
"""

from __future__ import annotations

import numpy as np
import torch

from rag_core.retrieval.first_pass import (
    LARGEST_SCORE,
    TILE_QUERIES,
    TILE_ROWS,
    Int8Tile,
    Queries,
    float32_candidates,
    float32_tensor,
    int8_products_are_exact,
)
from rag_core.retrieval.rescore import drop_hopeless, exact_scores
from rag_core.retrieval.topk import RunningTopK
from rag_core.retrieval.vectors import Block

# Rows between two rescorings: long enough to share a row's float64 form among queries.
PIECE_ROWS = 4096
# Candidate pairs held before they are scored and merged.
MAX_PAIRS = 1 << 20
# Below this many queries, turning rows into integers costs more than it saves.
INT8_QUERIES = 64
# Where the integer pass lets more than this share of pairs through, float32 is cheaper.
INT8_MAX_SHARE = 0.02

Pairs = tuple[np.ndarray, np.ndarray]


class Scan:
    """A search in progress: feed it blocks in any order, then read `top` and `log_z_Q`."""

    def __init__(
        self,
        queries: Queries,
        top: RunningTopK,
        *,
        score_scale: float | None = None,
        first_pass: str | None = None,
    ) -> None:
        """`score_scale`: accumulate the log-partition of scaled scores, or None. `first_pass`:
        "float32" or "int8" throughout; None chooses by what each tile lets through."""
        self.queries = queries
        self.top = top
        self.log_z_Q = np.full(len(queries), -np.inf)
        self._scale = score_scale
        self._rows_seen = 0
        self._merged_at = 0
        self._forced = first_pass
        # Integers tell too little of the scores for a log-partition.
        self._may_use_int8 = score_scale is None and (
            first_pass == "int8"
            or (first_pass is None and len(queries) >= INT8_QUERIES and int8_products_are_exact())
        )
        # Tiles to give to float32 before integers are tried again; doubles at each failure, up to 8.
        self._pause, self._next_pause = 0, 1

    def add(self, block: Block) -> None:
        """Fold in a block, in pieces that start short: thresholds should rise early."""
        start = 0
        while start < len(block.vectors_ND):
            size = min(PIECE_ROWS, max(TILE_ROWS, self._rows_seen))
            piece = block[start : start + size]
            self._add_piece(piece)
            self._rows_seen += len(piece.vectors_ND)
            start += size
            if self._rows_seen >= 2 * self._merged_at:
                self.top.merge()
                self._merged_at = self._rows_seen

    def _add_piece(self, piece: Block) -> None:
        rows_ND = float32_tensor(piece.vectors_ND)
        norms_N = piece.norms_N
        tiles = [slice(i, min(i + TILE_ROWS, len(rows_ND))) for i in range(0, len(rows_ND), TILE_ROWS)]
        largest = float(self.queries.norm_Q.max(initial=0.0))
        integers = {}
        for tile in tiles:
            norm = float(norms_N[tile].max())
            if norm * largest <= LARGEST_SCORE and self._int8_turn():
                integers[tile.start] = Int8Tile(rows_ND[tile], norm)
        n_found = dict.fromkeys(integers, 0)
        waiting: list[Pairs] = []
        for q0 in range(0, len(self.queries), TILE_QUERIES):
            span = slice(q0, min(q0 + TILE_QUERIES, len(self.queries)))
            found: list[Pairs] = []
            for tile in tiles:
                norm = float(norms_N[tile].max())
                if tile.start in integers:
                    floor_Q = self.top.threshold_Q[span]
                    query_P, row_P = integers[tile.start].candidates(self.queries, span, floor_Q)
                    n_found[tile.start] += len(query_P)
                    query_P, row_P = self._narrow(rows_ND[tile], norms_N[tile], span, query_P, row_P)
                elif norm * largest > LARGEST_SCORE:
                    query_P, row_P = self._all_pairs(piece.vectors_ND[tile], span)
                else:
                    query_P, row_P = float32_candidates(
                        self.queries,
                        span,
                        rows_ND[tile],
                        norm,
                        self.top.threshold_Q[span],
                        self.top.k,
                        None if self._scale is None else (self.log_z_Q, self._scale),
                    )
                found.append((query_P + q0, row_P + tile.start))
            waiting.append(_by_query(found))
            if sum(len(query_P) for query_P, _ in waiting) > MAX_PAIRS:
                self._rescore(piece, waiting)
                waiting = []
        self._rescore(piece, waiting)
        for start, n in n_found.items():
            self._judge_int8(n, min(TILE_ROWS, len(rows_ND) - start))

    def _int8_turn(self) -> bool:
        if not self._may_use_int8 or not np.isfinite(self.top.threshold_Q).all():
            return False
        if self._forced is None and self._pause > 0:
            self._pause -= 1
            return False
        return True

    def _judge_int8(self, n_found: int, n_rows: int) -> None:
        if n_found > INT8_MAX_SHARE * n_rows * len(self.queries):
            self._pause, self._next_pause = self._next_pause, min(2 * self._next_pause, 8)

    def _narrow(
        self,
        rows_ND: torch.Tensor,
        norms_N: np.ndarray,
        span: slice,
        query_P: np.ndarray,
        row_P: np.ndarray,
    ) -> Pairs:
        """Of the pairs that integers let through, those that float32 lets through as well."""
        if not len(query_P):
            return query_P, row_P
        near_P = drop_hopeless(
            self.queries.float32_QD[span],
            rows_ND,
            query_P,
            row_P,
            floor_P=self.top.threshold_Q[span][query_P],
            bound_P=self.queries.norm_Q[span][query_P] * norms_N[row_P],
        )
        return query_P[near_P], row_P[near_P]

    def _all_pairs(self, vectors_ND: np.ndarray, span: slice) -> Pairs:
        """Every pair: numbers so large that float32 may overflow are scored in float64 alone."""
        n_queries, n_rows = span.stop - span.start, len(vectors_ND)
        if self._scale is not None:
            exact_ND = torch.from_numpy(vectors_ND.astype(np.float64))
            scores_QN = self.queries.float64_QD[span] @ exact_ND.T * self._scale
            part_Q = torch.logsumexp(scores_QN, dim=1).numpy()
            self.log_z_Q[span] = np.logaddexp(self.log_z_Q[span], part_Q)
        return np.repeat(np.arange(n_queries), n_rows), np.tile(np.arange(n_rows), n_queries)

    def _rescore(self, piece: Block, waiting: list[Pairs]) -> None:
        """Score pairs, sorted by query, in float64 and keep those that reach the threshold."""
        query_P = np.concatenate([q for q, _ in waiting]) if waiting else np.empty(0, np.int64)
        if not len(query_P) or self.top.k == 0:
            return
        row_P = np.concatenate([r for _, r in waiting])
        scores_P = exact_scores(self.queries.float64_QD, piece.vectors_ND, query_P, row_P)
        if not np.isfinite(scores_P).all():
            raise ValueError("an inner product overflows float64; vectors of such size have no scores")
        near_P = scores_P >= self.top.threshold_Q[query_P]
        self.top.add(query_P[near_P], scores_P[near_P], row_P[near_P] + piece.first_row)
        if self.top.n_buffered > max(MAX_PAIRS, 2 * self.top.k * len(self.queries)):
            self.top.merge()


def _by_query(found: list[Pairs]) -> Pairs:
    """Pairs of several tiles, each sorted by query, as one list sorted by query."""
    query_P = np.concatenate([q for q, _ in found])
    row_P = np.concatenate([r for _, r in found])
    order = np.argsort(query_P, kind="stable")
    return query_P[order], row_P[order]
