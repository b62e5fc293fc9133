"""BM25 over passages: `bm25s` for the term weights; ids, order and cut are our own.

A passage is read as its title and its text; tokens are lower-cased words of two or more letters or
digits, English stop words dropped. A passage that shares no term with the question is no hit, so a
list may be shorter than k, or empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rag_core import files
from rag_core.errors import DataError
from rag_core.local_copy import local_index
from rag_core.retrieval.integrity import check_files, file_digests
from rag_core.schemas import Passage

# Lucene's form of the idf is positive for every term, however common; k1 and b are its defaults.
METHOD, K1, B = "lucene", 1.2, 0.75
SETTINGS_FILE = "ragline_bm25.json"


class Bm25Index:
    """A BM25 index in a directory (`bm25/`, `passage_ids.parquet`); `build` makes it, `open` maps it."""

    def __init__(self, engine: Any | None, ids: Sequence[str]) -> None:
        self._engine = engine
        self._ids = np.array(ids, dtype=object)

    @classmethod
    def build(cls, passages: Iterable[Passage], directory: str | os.PathLike[str]) -> Bm25Index:
        """Index passages into a local directory and open it. ValueError when an id comes twice."""
        import bm25s

        ids: list[str] = []
        texts: list[str] = []
        seen: set[str] = set()
        for passage in passages:
            if passage.passage_id in seen:
                raise ValueError(f"passage {passage.passage_id!r} comes twice; ids must be unique")
            seen.add(passage.passage_id)
            ids.append(passage.passage_id)
            texts.append(f"{passage.title} {passage.text}")
        inner = os.path.join(os.fspath(directory), "bm25")
        os.makedirs(inner, exist_ok=True)
        tokens = _tokenize(texts)
        has_terms = any(tokens)
        if has_terms:
            engine = bm25s.BM25(method=METHOD, k1=K1, b=B)
            engine.index(_numbered(tokens), show_progress=False)
            engine.save(inner, show_progress=False)
        with files.put(os.path.join(os.fspath(directory), "passage_ids.parquet")) as stream:
            pq.write_table(pa.table({"passage_id": pa.array(ids, pa.string())}), stream)
        names = [n for n in os.listdir(inner) if n != SETTINGS_FILE]
        settings = {
            "method": METHOD,
            "k1": K1,
            "b": B,
            "passages": len(ids),
            "has_terms": has_terms,
            "files": file_digests(inner, names),
        }
        files.write_json(os.path.join(inner, SETTINGS_FILE), settings)
        return cls.open(directory)

    @classmethod
    def open(cls, directory: str | os.PathLike[str]) -> Bm25Index:
        """Open an index; its arrays are memory-mapped. DataError when a file is missing or changed.

        One in an object store is copied to this machine first, once.
        """
        import bm25s

        directory = local_index(os.fspath(directory), "BM25", f"bm25/{SETTINGS_FILE}")
        inner = os.path.join(directory, "bm25")
        settings = files.read_json(os.path.join(inner, SETTINGS_FILE))
        check_files(inner, settings["files"])
        ids_path = os.path.join(directory, "passage_ids.parquet")
        ids = pq.read_table(ids_path).column("passage_id").to_pylist()
        if len(ids) != settings["passages"]:
            raise DataError(f"{ids_path}: {len(ids)} ids, the index has {settings['passages']} passages")
        engine = None
        if settings["has_terms"]:
            engine = bm25s.BM25.load(inner, mmap=True, show_progress=False)
        return cls(engine, ids)

    def __len__(self) -> int:
        return len(self._ids)

    def search(self, questions: Sequence[str], k: int) -> tuple[list[list[float]], list[list[str]]]:
        """The k best passages of each question: `(scores, ids)`, by (-score, id), all scores above 0."""
        if k < 0:
            raise ValueError(f"k = {k}; need 0 or more")
        scores: list[list[float]] = []
        ids: list[list[str]] = []
        for tokens in _tokenize(questions):
            found = self._search_one(tokens, k)
            scores.append(found[0])
            ids.append(found[1])
        return scores, ids

    def _search_one(self, tokens: list[str], k: int) -> tuple[list[float], list[str]]:
        known = self._engine.get_tokens_ids(tokens) if self._engine is not None else []
        if not known or k == 0:
            return [], []
        scores_N = self._engine.get_scores_from_ids(known)
        rows = np.flatnonzero(scores_N > 0)
        if len(rows) > k:
            kth = np.partition(scores_N[rows], len(rows) - k)[len(rows) - k]
            rows = rows[scores_N[rows] >= kth]
        hits = sorted(zip((-scores_N[rows]).tolist(), self._ids[rows].tolist()))[:k]
        return [-score for score, _ in hits], [passage_id for _, passage_id in hits]


def _numbered(tokens: list[list[str]]) -> tuple[list[list[int]], dict[str, int]]:
    """Terms as numbers in alphabetical order, and the vocabulary.

    Left to itself the library numbers terms in the order of a set, which is another in every process.
    """
    vocabulary = {term: n for n, term in enumerate(sorted({term for text in tokens for term in text}))}
    return [[vocabulary[term] for term in text] for text in tokens], vocabulary


def _tokenize(texts: Sequence[str]) -> list[list[str]]:
    import bm25s

    if not len(texts):
        return []
    return bm25s.tokenize(list(texts), stopwords="en", return_ids=False, show_progress=False)
