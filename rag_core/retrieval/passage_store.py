"""Random access to the passages of a run, by id.

Parquet is not made for reading single rows. A small run is kept in memory; a large one is copied
once per machine into an Arrow file that every process maps, so that its memory is the page cache's.
Ids are found by binary search in a sorted array of their 64-bit hashes, also mapped.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rag_core import stages
from rag_core.errors import DataError
from rag_core.schemas import Passage

COLUMNS = ["passage_id", "title", "text"]
IN_MEMORY_BYTES = 256 << 20


class UnknownPassageError(DataError, KeyError):
    """An id that the passages run does not hold: bad data, as where vectors and texts are of two corpora."""

    __str__ = Exception.__str__  # KeyError would show it in quotes


class PassageStore:
    """The passages of a finished run; `open` it once per process."""

    def __init__(self, table: pa.Table, keys_N: np.ndarray, rows_N: np.ndarray) -> None:
        self._table = table
        self._keys_N = keys_N
        self._rows_N = rows_N

    @classmethod
    def open(cls, passages_dir: str | os.PathLike[str]) -> PassageStore:
        """Open a passages run. DataError when it is none, is unfinished, or holds an id twice."""
        directory = os.fspath(passages_dir)
        manifest = stages.stage_manifest(directory, "split")
        if sum(part["bytes"] for part in manifest["parts"]) <= IN_MEMORY_BYTES:
            table = stages.read_table(directory, COLUMNS)
            return cls(table, *_id_order(table.column("passage_id"), directory))
        cache = _cached_copy(directory, manifest["content_digest"])
        table = pa.ipc.open_file(pa.memory_map(os.path.join(cache, "passages.arrow"))).read_all()
        keys_N = np.load(os.path.join(cache, "keys.npy"), mmap_mode="r")
        rows_N = np.load(os.path.join(cache, "rows.npy"), mmap_mode="r")
        return cls(table, keys_N, rows_N)

    def __len__(self) -> int:
        return self._table.num_rows

    def get(self, passage_ids: Sequence[str]) -> list[Passage]:
        """The passages of these ids, in this order. UnknownPassageError names the first that is missing."""
        rows = self._rows_of(passage_ids).tolist()
        # Row by row: `take` goes over all the chunks, 27 ms a call where there are a million passages.
        columns = [self._table.column(name) for name in COLUMNS]
        return [Passage(*(column[row].as_py() for column in columns)) for row in rows]

    def _rows_of(self, passage_ids: Sequence[str]) -> np.ndarray:
        if not len(passage_ids):
            return np.empty(0, np.int64)
        wanted = np.fromiter((_key(i) for i in passage_ids), np.uint64, len(passage_ids))
        starts = np.searchsorted(self._keys_N, wanted)
        id_column = self._table.column("passage_id")
        rows = np.empty(len(passage_ids), np.int64)
        for i, (passage_id, place) in enumerate(zip(passage_ids, starts.tolist())):
            while place < len(self._keys_N) and self._keys_N[place] == wanted[i]:
                if id_column[int(self._rows_N[place])].as_py() == passage_id:
                    rows[i] = self._rows_N[place]
                    break
                place += 1
            else:
                raise UnknownPassageError(
                    f"passage {passage_id!r} is not among the {len(self)} passages opened"
                )
        return rows


def _key(passage_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(passage_id.encode(), digest_size=8).digest(), "little")


def _id_order(id_column: pa.ChunkedArray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Sorted hashes of the ids, and the row of each; DataError when an id comes twice."""
    n = len(id_column)
    ids = (i for chunk in id_column.chunks for i in chunk.to_pylist())
    keys_N = np.fromiter((_key(i) for i in ids), np.uint64, n)
    rows_N = np.argsort(keys_N, kind="stable")
    keys_N = keys_N[rows_N]
    for place in np.flatnonzero(keys_N[1:] == keys_N[:-1]).tolist():
        # Different ids may share a hash, once in a long while.
        same = np.flatnonzero(keys_N == keys_N[place])
        names = [id_column[int(rows_N[i])].as_py() for i in same]
        if len(set(names)) < len(names):
            raise DataError(f"{where}: passage id {names[0]!r} comes twice; ids must be unique")
    return keys_N, rows_N


def _cached_copy(directory: str, digest: str) -> str:
    """The directory of this machine's mapped copy, made if it is not there; named by the rows' digest."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    parent = os.path.join(root, "ragline", "passages")
    target = os.path.join(parent, digest[:32])
    if os.path.isdir(target):
        return target
    os.makedirs(parent, exist_ok=True)
    attempt = tempfile.mkdtemp(dir=parent)
    try:
        path = os.path.join(attempt, "passages.arrow")
        batches = stages.iter_batches(directory, COLUMNS)
        first = next(batches)
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, first.schema) as writer:
            writer.write_batch(first)
            for batch in batches:
                writer.write_batch(batch)
        table = pa.ipc.open_file(pa.memory_map(path)).read_all()
        keys_N, rows_N = _id_order(table.column("passage_id"), directory)
        np.save(os.path.join(attempt, "keys.npy"), keys_N)
        np.save(os.path.join(attempt, "rows.npy"), rows_N)
        os.rename(attempt, target)
    except OSError:
        # Another process put the same copy in place first.
        if not os.path.isdir(target):
            raise
    finally:
        shutil.rmtree(attempt, ignore_errors=True)
    return target
