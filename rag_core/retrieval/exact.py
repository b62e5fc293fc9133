"""Exact inner-product search: a fast first pass that can be wrong by a known margin, then float64.

Every result is that of comparing float64 scores summed in one fixed order, whatever the first pass,
the block size, the number of shards and of threads. The margins are proved in `first_pass`.

Shapes: Q queries · N passages · D numbers of a vector.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from rag_core.retrieval import forks
from rag_core.retrieval.first_pass import Queries
from rag_core.retrieval.scan import Scan
from rag_core.retrieval.topk import RunningTopK
from rag_core.retrieval.vectors import ArrayVectors, RunVectors, VectorSource, checked_norms


class ExactIndex:
    """Search over all vectors of an array, or of an embeddings run, with nothing to build.

    Raises ValueError on NaN or Inf (naming the row's id), repeated ids, or a shape that does not fit.
    Zero vectors are vectors like any other and score 0.
    """

    def __init__(self, vectors_ND: np.ndarray, ids: Sequence[str]) -> None:
        forks.guard()
        self._source: VectorSource = ArrayVectors(vectors_ND, ids)

    @classmethod
    def open(cls, embeddings_dir: str | os.PathLike[str]) -> ExactIndex:
        """An index over an embeddings run; vectors are streamed at each search, never all in memory."""
        forks.guard()
        index = cls.__new__(cls)
        index._source = RunVectors(os.fspath(embeddings_dir))
        return index

    def __len__(self) -> int:
        return self._source.n

    @property
    def ids(self) -> list[str]:
        """Passage ids in the order of the rows."""
        return list(self._source.ids_of(np.arange(len(self))))

    @property
    def dim(self) -> int:
        return self._source.dim

    def search(
        self,
        queries_QD: np.ndarray,
        k: int,
        log_partition: bool = False,
        score_scale: float = 1.0,
    ) -> tuple:
        """The k best passages of each query: `(scores, ids)`, per query a list, best first.

        Scores are inner products in float64; order is (-score, id); a list is shorter than k only
        when the corpus is. With `log_partition` a third value comes back: float64 [Q], the logsumexp
        of score_scale × score over the *whole* corpus (-inf for an empty one), from float32 scores.
        """
        queries_QD = checked_queries(queries_QD, self.dim)
        if k < 0:
            raise ValueError(f"k = {k}; need 0 or more")
        source = self._source
        top = RunningTopK(len(queries_QD), min(k, source.n), source.ids_of)
        scan = Scan(Queries(queries_QD), top, score_scale=score_scale if log_partition else None)
        if len(queries_QD) and (k or log_partition):
            for block in source.blocks():
                scan.add(block)
        scores, ids = top.results()
        return (scores, ids, scan.log_z_Q) if log_partition else (scores, ids)


def checked_queries(queries_QD: np.ndarray, dim: int) -> np.ndarray:
    """The queries as a float array [Q, dim]; ValueError on another shape, NaN or Inf."""
    queries_QD = np.asarray(queries_QD)
    if queries_QD.ndim != 2 or queries_QD.shape[1] != dim:
        raise ValueError(f"queries have shape {queries_QD.shape}, the index needs [queries, {dim}]")
    if queries_QD.dtype not in (np.float16, np.float32, np.float64):
        raise ValueError(f"queries are {queries_QD.dtype}, need float16, float32 or float64")
    checked_norms(queries_QD, range(len(queries_QD)), "query")
    return queries_QD
