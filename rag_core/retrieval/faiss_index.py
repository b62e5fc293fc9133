"""FAISS indexes over an embeddings run: build, checksum, open, search. Inner product throughout.

An index directory holds `index.faiss` (opens in `faiss.read_index`; its ids are row numbers),
`passage_ids.parquet` (row → id) and `ragline_index.json` (kind, dimension, checksums).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rag_core import files
from rag_core.errors import DataError, UsageError
from rag_core.retrieval.exact import checked_queries
from rag_core.retrieval.integrity import check_files, file_digests
from rag_core.retrieval.vectors import RunVectors

KINDS = ("flat",)
INDEX_FILE, IDS_FILE, SETTINGS_FILE = "index.faiss", "passage_ids.parquet", "ragline_index.json"


class FaissIndex:
    """A FAISS index with the ids of its rows; `build` makes its directory, `open` reads it."""

    def __init__(self, index: Any, ids: Sequence[str], settings: dict[str, Any]) -> None:
        self._index = index
        self._ids = np.array(ids, dtype=object)
        self.settings = settings

    @classmethod
    def build(
        cls, embeddings_dir: str | os.PathLike[str], kind: str, out_dir: str | os.PathLike[str]
    ) -> dict[str, Any]:
        """Build an index of `kind` over an embeddings run into a local directory; returns its settings."""
        import faiss

        if kind not in KINDS:
            raise UsageError(f"index kind {kind!r}; known are {', '.join(KINDS)}")
        source = RunVectors(os.fspath(embeddings_dir))
        out_dir = os.fspath(out_dir)
        os.makedirs(out_dir, exist_ok=True)
        index = faiss.IndexFlatIP(source.dim)
        for block in source.blocks():
            index.add(np.ascontiguousarray(block.vectors_ND, dtype=np.float32))
        if index.ntotal != source.n:
            raise RuntimeError(f"index holds {index.ntotal} vectors, the run has {source.n}")
        faiss.write_index(index, os.path.join(out_dir, INDEX_FILE))
        ids = list(source.ids_of(np.arange(source.n)))
        with files.put(os.path.join(out_dir, IDS_FILE)) as stream:
            pq.write_table(pa.table({"passage_id": pa.array(ids, pa.string())}), stream)
        settings = {
            "kind": kind,
            "metric": "inner_product",
            "dim": source.dim,
            "passages": source.n,
            "files": file_digests(out_dir, [INDEX_FILE, IDS_FILE]),
        }
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
        return cls(index, ids, settings)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def dim(self) -> int:
        return self._index.d

    def search(self, queries_QD: np.ndarray, k: int) -> tuple[list[list[float]], list[list[str]]]:
        """The k best passages the index finds for each query: `(scores, ids)`, by (-score, id).

        Scores are FAISS's float32 inner products (of the compressed vectors where the kind compresses).
        Places that FAISS fills with id -1 are left out, so a list may be shorter than k.
        """
        queries_QD = checked_queries(queries_QD, self.dim)
        if k < 0:
            raise ValueError(f"k = {k}; need 0 or more")
        k = min(k, len(self))
        if k == 0 or len(queries_QD) == 0:
            return [[] for _ in queries_QD], [[] for _ in queries_QD]
        scores_QK, rows_QK = self._index.search(
            np.ascontiguousarray(queries_QD, dtype=np.float32), k
        )
        all_scores, all_ids = [], []
        for scores, rows in zip(scores_QK, rows_QK):
            found = rows >= 0
            hits = sorted(zip((-scores[found]).tolist(), self._ids[rows[found]].tolist()))
            all_scores.append([-score for score, _ in hits])
            all_ids.append([passage_id for _, passage_id in hits])
        return all_scores, all_ids
