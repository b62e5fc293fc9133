"""FAISS indexes over an embeddings run: open and search; `faiss_build` makes them.

An index directory holds `index.faiss` (opens in `faiss.read_index`; its ids are row numbers),
`passage_ids.parquet` (row → id), for `ivf_pq` also `vectors.npy` (mapped, for exact rescoring), and
`ragline_index.json`: kind, dimension, measurements, checksums.

Shapes: Q queries · N passages · D numbers of a vector · K hits.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rag_core import files
from rag_core.errors import DataError
from rag_core.local_copy import local_index
from rag_core.retrieval import forks
from rag_core.retrieval.exact import checked_queries
from rag_core.retrieval.faiss_kinds import search_parameters
from rag_core.retrieval.integrity import check_files

INDEX_FILE, IDS_FILE, VECTORS_FILE = "index.faiss", "passage_ids.parquet", "vectors.npy"
SETTINGS_FILE = "ragline_index.json"
# Hits that are fetched from product-quantised lists for each one wanted, before exact rescoring.
RESCORE_FACTOR = 10


class FaissIndex:
    """A FAISS index with the ids of its rows; `build` makes its directory, `open` reads it."""

    def __init__(
        self,
        index: Any,
        ids: Sequence[str] | pa.Array,
        settings: dict[str, Any],
        rescore_ND: np.ndarray | None = None,
    ) -> None:
        """`index`: a FAISS index, made here or elsewhere, whose ids are row numbers; `ids`: of its rows.

        `settings["kind"]` tells how to search: one of our kinds, or any other name for an index that is
        searched as it stands. ValueError on a metric that is not the inner product, or a wrong number of ids.
        """
        if getattr(index, "metric_type", 0) != 0:
            raise ValueError(
                f"the FAISS index has metric {index.metric_type}; it does not rank by inner product"
            )
        if index.ntotal != len(ids):
            raise ValueError(f"the FAISS index holds {index.ntotal} vectors, there are {len(ids)} ids")
        forks.guard()
        self.settings = settings
        self._index = index
        # Packed: 21 million ids as Python strings would weigh as much as half an `ivf_pq` index.
        self._ids = ids if isinstance(ids, pa.Array) else pa.array(ids, pa.large_string())
        self._rescore_ND = rescore_ND

    @classmethod
    def build(
        cls,
        embeddings_dir: str | os.PathLike[str],
        kind: str,
        out_dir: str | os.PathLike[str],
        *,
        seed: int = 0,
        queries_QD: np.ndarray | None = None,
    ) -> dict[str, Any]:
        """Build an index of `kind` over an embeddings run into a local directory; returns its settings.

        The settings hold `recall` at 1, 5, 20 and 100 against exact search, `bytes_per_vector` and
        `queries_per_second`, measured with `queries_QD`, or with 256 of the passages' own vectors.
        Training rows are drawn from the whole run by `seed`. Raises UsageError on an unknown kind, or
        too few vectors for it; DataError on an empty run.
        """
        from rag_core.retrieval import faiss_build

        embeddings_dir, out_dir = os.fspath(embeddings_dir), os.fspath(out_dir)
        index = faiss_build.build_whole(embeddings_dir, kind, seed)
        return faiss_build.write_index(index, embeddings_dir, kind, out_dir, seed=seed, queries_QD=queries_QD)

    @classmethod
    def open(cls, directory: str | os.PathLike[str]) -> FaissIndex:
        """Open a built index; its vectors, codes and graph are mapped, not read.

        One in an object store is copied to this machine first, once.
        DataError when a file is missing, cut, or differs from its checksum.
        """
        import faiss

        directory = local_index(os.fspath(directory), "FAISS", SETTINGS_FILE)
        settings = files.read_json(os.path.join(directory, SETTINGS_FILE))
        check_files(directory, settings["files"])
        index = faiss.read_index(os.path.join(directory, INDEX_FILE), faiss.IO_FLAG_MMAP_IFC)
        column = pq.read_table(os.path.join(directory, IDS_FILE)).column("passage_id")
        ids = column.cast(pa.large_string()).combine_chunks()
        if not index.ntotal == len(ids) == settings["passages"]:
            raise DataError(
                f"{directory}: {index.ntotal} vectors, {len(ids)} ids, {settings['passages']} passages"
            )
        return cls(index, ids, settings, open_vectors(directory, settings["kind"], len(ids)))

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> list[str]:
        """Passage ids in the order of the rows."""
        return self._ids.to_pylist()

    @property
    def dim(self) -> int:
        return self._index.d

    def vectors(self) -> np.ndarray:
        """The passages' vectors [N, D] in the order of `ids`, as the index keeps them."""
        if self._rescore_ND is not None:
            return self._rescore_ND
        return self._index.reconstruct_n(0, len(self))

    def search(self, queries_QD: np.ndarray, k: int) -> tuple[list[list[float]], list[list[str]]]:
        """The k best passages the index finds for each query: `(scores, ids)`, by (-score, id).

        Scores are inner products with the vectors as the index keeps them (float32; float64 with the
        original vectors for `ivf_pq`). Places that FAISS fills with id -1 are left out, so a list may
        be shorter than k.
        """
        queries_QD = np.ascontiguousarray(checked_queries(queries_QD, self.dim), dtype=np.float32)
        if k < 0:
            raise ValueError(f"k = {k}; need 0 or more")
        if k == 0 or len(queries_QD) == 0 or len(self) == 0:
            return [[] for _ in queries_QD], [[] for _ in queries_QD]
        wanted = min(len(self), k if self._rescore_ND is None else RESCORE_FACTOR * k)
        parameters = search_parameters(self.settings["kind"], wanted, self.settings.get("n_probe"))
        scores_QK, rows_QK = self._index.search(queries_QD, wanted, params=parameters)
        found_QK = rows_QK >= 0
        names = iter(self._ids.take(pa.array(rows_QK[found_QK])).to_pylist())
        all_scores, all_ids = [], []
        for query_D, scores_K, rows_K, found_K in zip(queries_QD, scores_QK, rows_QK, found_QK):
            rows_K, scores_K = rows_K[found_K], scores_K[found_K]
            if self._rescore_ND is not None:
                products = self._rescore_ND[rows_K].astype(np.float64) * query_D
                scores_K = products.sum(axis=1)
            hits = sorted(zip((-scores_K).tolist(), itertools.islice(names, len(rows_K))))[:k]
            all_scores.append([-score for score, _ in hits])
            all_ids.append([passage_id for _, passage_id in hits])
        return all_scores, all_ids


def open_vectors(directory: str, kind: str, n: int) -> np.ndarray | None:
    """The mapped vectors that `ivf_pq` rescores with; None for other kinds."""
    if kind != "ivf_pq":
        return None
    path = os.path.join(directory, VECTORS_FILE)
    vectors_ND = np.load(path, mmap_mode="r")
    if len(vectors_ND) != n:
        raise DataError(f"{path}: {len(vectors_ND)} vectors, the index has {n}")
    return vectors_ND
