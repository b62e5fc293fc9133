"""The kinds of FAISS index, how each is made and trained. Inner product throughout.

kind      vectors kept as          bytes a vector (D = 768)   search
flat      float32                  3,072                      exact, linear
sq8       one byte a number          768                      linear
hnsw      float32 + graph          3,336                      graph
hnsw_sq8  one byte + graph         1,032                      graph
ivf_pq    128 codes + row number     136 (vectors on disk)    lists, then rescored exactly
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rag_core.errors import UsageError

KINDS = ("flat", "hnsw", "sq8", "hnsw_sq8", "ivf_pq")
TRAINED = ("sq8", "hnsw_sq8", "ivf_pq")
# Links a node (twice as many at the base) and candidates kept while building and searching.
HNSW_LINKS, HNSW_BUILD, HNSW_SEARCH = 32, 200, 256
TRAIN_ROWS = 262_144
# k-means wants about 40 points a centre, and product quantisation has 256 centres.
IVF_PQ_LEAST_ROWS = 10_000


def make_index(kind: str, dim: int, n_rows: int) -> Any:
    """An empty index of `kind` for `n_rows` vectors of `dim` numbers; UsageError where it cannot be."""
    import faiss

    metric = faiss.METRIC_INNER_PRODUCT
    if kind == "flat":
        return faiss.IndexFlatIP(dim)
    if kind == "sq8":
        return faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_8bit, metric)
    if kind == "hnsw":
        index = faiss.IndexHNSWFlat(dim, HNSW_LINKS, metric)
        index.hnsw.efConstruction = HNSW_BUILD
        return index
    if kind == "hnsw_sq8":
        index = faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, HNSW_LINKS, metric)
        index.hnsw.efConstruction = HNSW_BUILD
        return index
    if kind == "ivf_pq":
        if n_rows < IVF_PQ_LEAST_ROWS:
            raise UsageError(
                f"index kind 'ivf_pq' needs {IVF_PQ_LEAST_ROWS:,} vectors to be trained on, the run has "
                f"{n_rows:,}; use 'flat'"
            )
        lists = n_lists(n_rows)
        index = faiss.IndexIVFPQ(faiss.IndexFlatIP(dim), dim, lists, n_codes(dim), 8, metric)
        # Lists are told apart by inner product, so means are not to be taken on a sphere.
        index.cp.spherical = False
        return index
    raise UsageError(f"index kind {kind!r}; known are {', '.join((*KINDS, 'bm25'))}")


def n_lists(n_rows: int) -> int:
    """Inverted lists: 4·√N, and few enough that a list's mean rests on 39 training rows or more."""
    return max(1, min(int(4 * math.sqrt(n_rows)), min(n_rows, TRAIN_ROWS) // 39))


def n_codes(dim: int) -> int:
    """Bytes of a product-quantised vector: the most that divide `dim`, at 3 numbers or more each, ≤ 128."""
    return max(m for m in range(1, min(128, max(1, dim // 3)) + 1) if dim % m == 0)


def training_rows(n_rows: int, seed: int) -> np.ndarray:
    """Ascending row numbers drawn at random over the whole corpus: its order must not matter."""
    if n_rows <= TRAIN_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, TRAIN_ROWS, replace=False))


def search_parameters(kind: str, k: int, n_probe: int | None) -> Any:
    """How thoroughly one call searches; None where the kind has no choice."""
    import faiss

    if kind in ("hnsw", "hnsw_sq8"):
        return faiss.SearchParametersHNSW(efSearch=max(HNSW_SEARCH, 2 * k))
    if kind == "ivf_pq":
        return faiss.SearchParametersIVF(nprobe=n_probe)
    return None
