"""FAISS indexes over an embeddings run: build, measure, open, search.

An index directory holds `index.faiss` (opens in `faiss.read_index`; its ids are row numbers),
`passage_ids.parquet` (row → id), for `ivf_pq` also `vectors.npy` (mapped, for exact rescoring), and
`ragline_index.json`: kind, dimension, measurements, checksums.

Shapes: Q queries · N passages · D numbers of a vector · K hits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rag_core import files
from rag_core.errors import DataError, UsageError
from rag_core.retrieval import forks
from rag_core.retrieval.exact import ExactIndex, checked_queries
from rag_core.retrieval.faiss_kinds import (
    KINDS,
    TRAINED,
    make_index,
    search_parameters,
    training_rows,
)
from rag_core.retrieval.integrity import check_files, file_digests
from rag_core.retrieval.vectors import RunVectors

INDEX_FILE, IDS_FILE, VECTORS_FILE = "index.faiss", "passage_ids.parquet", "vectors.npy"
SETTINGS_FILE = "ragline_index.json"
RECALL_AT = (1, 5, 20, 100)
RECALL_QUERIES = 256
# Hits that are fetched from product-quantised lists for each one wanted, before exact rescoring.
RESCORE_FACTOR = 10
IVF_RECALL_AT_20 = 0.99


class FaissIndex:
    """A FAISS index with the ids of its rows; `build` makes its directory, `open` reads it."""

    def __init__(
        self,
        index: Any,
        ids: Sequence[str],
        settings: dict[str, Any],
        rescore_ND: np.ndarray | None = None,
    ) -> None:
        forks.guard()
        self.settings = settings
        self.ids = list(ids)
        self._index = index
        self._ids = np.array(self.ids, dtype=object)
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
        import faiss

        if kind not in KINDS:
            raise UsageError(f"index kind {kind!r}; known are {', '.join((*KINDS, 'bm25'))}")
        embeddings_dir, out_dir = os.fspath(embeddings_dir), os.fspath(out_dir)
        source = RunVectors(embeddings_dir)
        if not source.n:
            raise DataError(f"{embeddings_dir}: no vectors to index")
        os.makedirs(out_dir, exist_ok=True)
        index = make_index(kind, source.dim, source.n)
        started = time.perf_counter()
        if kind in TRAINED:
            index.train(source.rows(training_rows(source.n, seed)).astype(np.float32))
        for block in source.blocks():
            index.add(np.ascontiguousarray(block.vectors_ND, dtype=np.float32))
        if index.ntotal != source.n:
            raise RuntimeError(f"index holds {index.ntotal} vectors, the run has {source.n}")
        seconds = time.perf_counter() - started
        names = [INDEX_FILE, IDS_FILE]
        faiss.write_index(index, os.path.join(out_dir, INDEX_FILE))
        ids = list(source.ids_of(np.arange(source.n)))
        with files.put(os.path.join(out_dir, IDS_FILE)) as stream:
            pq.write_table(pa.table({"passage_id": pa.array(ids, pa.string())}), stream)
        if kind == "ivf_pq":
            names.append(VECTORS_FILE)
            _write_vectors(source, os.path.join(out_dir, VECTORS_FILE))
        settings = {
            "kind": kind,
            "metric": "inner_product",
            "dim": source.dim,
            "passages": source.n,
            "seed": seed,
            "threads": faiss.omp_get_max_threads(),
            "build_seconds": round(seconds, 3),
            "bytes_per_vector": os.path.getsize(os.path.join(out_dir, INDEX_FILE)) / source.n,
            "files": file_digests(out_dir, names),
        }
        if queries_QD is None:
            chosen = np.random.default_rng(seed).permutation(source.n)[:RECALL_QUERIES]
            queries_QD = source.rows(np.sort(chosen))
            settings["recall_queries"] = f"{len(queries_QD)} passages of the run"
        else:
            settings["recall_queries"] = f"{len(queries_QD)} questions"
        built = cls(index, ids, settings, _open_vectors(out_dir, kind, source.n))
        settings |= _measure(built, ExactIndex.open(embeddings_dir), queries_QD)
        files.write_json(os.path.join(out_dir, SETTINGS_FILE), settings)
        return settings

    @classmethod
    def open(cls, directory: str | os.PathLike[str]) -> FaissIndex:
        """Open a built index. DataError when a file is missing, cut, or differs from its checksum."""
        import faiss

        directory = os.fspath(directory)
        settings_path = os.path.join(directory, SETTINGS_FILE)
        if not os.path.isfile(settings_path):
            raise DataError(f"{settings_path}: missing; {directory} is not a finished FAISS index")
        settings = files.read_json(settings_path)
        check_files(directory, settings["files"])
        index = faiss.read_index(os.path.join(directory, INDEX_FILE))
        ids = pq.read_table(os.path.join(directory, IDS_FILE)).column("passage_id").to_pylist()
        if not index.ntotal == len(ids) == settings["passages"]:
            raise DataError(
                f"{directory}: {index.ntotal} vectors, {len(ids)} ids, {settings['passages']} passages"
            )
        return cls(index, ids, settings, _open_vectors(directory, settings["kind"], len(ids)))

    def __len__(self) -> int:
        return len(self.ids)

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
        all_scores, all_ids = [], []
        for query_D, scores_K, rows_K in zip(queries_QD, scores_QK, rows_QK):
            found_K = rows_K >= 0
            rows_K, scores_K = rows_K[found_K], scores_K[found_K]
            if self._rescore_ND is not None:
                products = self._rescore_ND[rows_K].astype(np.float64) * query_D
                scores_K = products.sum(axis=1)
            hits = sorted(zip((-scores_K).tolist(), self._ids[rows_K].tolist()))[:k]
            all_scores.append([-score for score, _ in hits])
            all_ids.append([passage_id for _, passage_id in hits])
        return all_scores, all_ids


def _measure(index: FaissIndex, exact: ExactIndex, queries_QD: np.ndarray) -> dict[str, Any]:
    """`recall` and `queries_per_second`; for `ivf_pq` also the least `n_probe` that serves."""
    depth = min(max(RECALL_AT), len(index))
    _, right = exact.search(queries_QD, depth)
    measured: dict[str, Any] = {}
    lists = index._index.nlist if index.settings["kind"] == "ivf_pq" else 0
    n_probe = min(8, lists)
    while True:
        if lists:
            index.settings["n_probe"] = measured["n_probe"] = n_probe
        started = time.perf_counter()
        _, found = index.search(queries_QD, depth)
        seconds = time.perf_counter() - started
        measured["recall"] = {str(k): recall(found, right, k) for k in RECALL_AT if k <= depth}
        measured["queries_per_second"] = round(len(queries_QD) / seconds, 1)
        if n_probe >= lists or measured["recall"].get("20", 1.0) >= IVF_RECALL_AT_20:
            return measured
        n_probe = min(2 * n_probe, lists)


def recall(found: Sequence[Sequence[str]], right: Sequence[Sequence[str]], k: int) -> float:
    """Mean share of each query's true best k that are among the k found."""
    shares = [len(set(f[:k]) & set(r[:k])) / min(k, len(r)) for f, r in zip(found, right) if r]
    return sum(shares) / len(shares) if shares else 1.0


def _write_vectors(source: RunVectors, path: str) -> None:
    dtype = source.dtype
    mapped_ND = np.lib.format.open_memmap(path, "w+", dtype, (source.n, source.dim))
    for block in source.blocks():
        mapped_ND[block.first_row : block.first_row + len(block.vectors_ND)] = block.vectors_ND
    mapped_ND.flush()


def _open_vectors(directory: str, kind: str, n: int) -> np.ndarray | None:
    if kind != "ivf_pq":
        return None
    path = os.path.join(directory, VECTORS_FILE)
    vectors_ND = np.load(path, mmap_mode="r")
    if len(vectors_ND) != n:
        raise DataError(f"{path}: {len(vectors_ND)} vectors, the index has {n}")
    return vectors_ND
