"""Where an exact search reads its vectors: an array, or the parts of an embeddings run.

Both give blocks of rows in order, so that memory holds one block, whatever the size of the corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from rag_core import stages

# Rows in memory at a time; 16,384 vectors of 768 numbers are 48 MiB.
BLOCK_ROWS = 16384


class VectorSource(Protocol):
    """A corpus of `n` vectors of `dim` numbers that can be read in blocks, again and again."""

    n: int
    dim: int

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """(number of the first row, vectors of consecutive rows), in order; every vector finite."""
        ...

    def ids_of(self, rows: np.ndarray) -> Sequence[str]:
        """Ids of ascending row numbers."""
        ...


def check_finite(vectors_ND: np.ndarray, name_of_row: Sequence[str], what: str) -> None:
    """ValueError naming the first rows that hold NaN or Inf."""
    # A sum is finite only if every summand is, or opposite infinities meet, which gives NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        suspects = np.flatnonzero(~np.isfinite(vectors_ND.sum(axis=1)))
    bad = [int(r) for r in suspects if not np.isfinite(vectors_ND[r]).all()]
    if bad:
        shown = ", ".join(repr(str(name_of_row[r])) for r in bad[:3])
        more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
        raise ValueError(f"{what} {shown}{more}: vector holds NaN or Inf")


class ArrayVectors:
    """Vectors in memory (or a memory map) with their ids."""

    def __init__(self, vectors_ND: np.ndarray, ids: Sequence[str]) -> None:
        vectors_ND = np.asanyarray(vectors_ND)
        if vectors_ND.ndim != 2:
            raise ValueError(f"vectors have shape {vectors_ND.shape}, need [passages, dim]")
        if vectors_ND.dtype not in (np.float16, np.float32, np.float64):
            raise ValueError(f"vectors are {vectors_ND.dtype}, need float16, float32 or float64")
        if len(ids) != len(vectors_ND):
            raise ValueError(f"{len(vectors_ND)} vectors but {len(ids)} ids")
        self._ids = list(ids)
        if len(set(self._ids)) != len(self._ids):
            seen: set[str] = set()
            twice = next(i for i in self._ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
            raise ValueError(f"passage {twice!r} has two vectors; ids must be unique")
        self._vectors_ND = vectors_ND
        self.n, self.dim = vectors_ND.shape
        for start in range(0, self.n, BLOCK_ROWS):
            stop = start + BLOCK_ROWS
            check_finite(vectors_ND[start:stop], self._ids[start:stop], "passage")

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        for start in range(0, self.n, BLOCK_ROWS):
            yield start, self._vectors_ND[start : start + BLOCK_ROWS]

    def ids_of(self, rows: np.ndarray) -> Sequence[str]:
        return [self._ids[r] for r in rows.tolist()]



class RunVectors:
    """Vectors of an embeddings run directory, streamed part by part from its manifest."""

    def __init__(self, directory: str) -> None:
        manifest = stages.stage_manifest(directory, "embed")
        self._directory = directory
        self.n = int(manifest["rows"])
        self.dim = int(manifest["encoder"]["dim"])

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        start = 0
        columns = ["passage_id", "vector"]
        for batch in stages.iter_batches(self._directory, columns, BLOCK_ROWS):
            vectors_ND = stages.vectors_of(batch)
            check_finite(vectors_ND, batch.column("passage_id"), f"{self._directory}: passage")
            yield start, vectors_ND
            start += len(vectors_ND)

    @cached_property
    def _ids(self) -> pa.ChunkedArray:
        return stages.read_table(self._directory, ["passage_id"]).column("passage_id")

    def ids_of(self, rows: np.ndarray) -> Sequence[str]:
        return self._ids.take(pa.array(rows)).to_pylist() if len(rows) else []
