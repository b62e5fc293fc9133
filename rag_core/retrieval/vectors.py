"""Where an exact search reads its vectors: an array, or the parts of an embeddings run.

Both give blocks of rows in order, so that memory holds one block, whatever the size of the corpus.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from rag_core import stages
from rag_core.errors import DataError
from rag_core.retrieval.first_pass import upper_norms
from rag_core.retrieval.part_blocks import part_blocks

# Rows read at a time; 65,536 vectors of 768 numbers are 192 MiB.
BLOCK_ROWS = 65536


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows: the number of the first, vectors [N, D], all finite, and bounds of their norms."""

    first_row: int
    vectors_ND: np.ndarray
    norms_N: np.ndarray

    def __getitem__(self, rows: slice) -> Block:
        """A part of the block; `rows` is a slice without a step."""
        first = self.first_row + (rows.start or 0)
        return Block(first, self.vectors_ND[rows], self.norms_N[rows])


class VectorSource(Protocol):
    """A corpus of `n` vectors of `dim` numbers that can be read in blocks, again and again."""

    n: int
    dim: int

    def blocks(self) -> Iterator[Block]:
        """All rows, in order."""
        ...

    def ids_of(self, rows: np.ndarray) -> Sequence[str]:
        """Ids of ascending row numbers."""
        ...


def checked_norms(vectors_ND: np.ndarray, name_of_row: Sequence[Any], what: str) -> np.ndarray:
    """`upper_norms` of the rows; DataError naming the first rows that hold NaN or Inf."""
    norms_N = upper_norms(vectors_ND)
    suspects = np.flatnonzero(~np.isfinite(norms_N))
    bad = [r for r in suspects.tolist() if not np.isfinite(vectors_ND[r]).all()]
    if bad:
        shown = ", ".join(repr(str(name_of_row[r])) for r in bad[:3])
        more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
        raise DataError(f"{what} {shown}{more}: vector holds NaN or Inf")
    return norms_N


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
            raise DataError(f"passage {twice!r} has two vectors; ids must be unique")
        self._vectors_ND = vectors_ND
        self.n, self.dim = vectors_ND.shape
        self._norms_N = np.empty(self.n)
        for start in range(0, self.n, BLOCK_ROWS):
            span = slice(start, start + BLOCK_ROWS)
            self._norms_N[span] = checked_norms(vectors_ND[span], self._ids[span], "passage")

    def blocks(self) -> Iterator[Block]:
        for start in range(0, self.n, BLOCK_ROWS):
            span = slice(start, start + BLOCK_ROWS)
            yield Block(start, self._vectors_ND[span], self._norms_N[span])

    def ids_of(self, rows: np.ndarray) -> Sequence[str]:
        return [self._ids[r] for r in rows.tolist()]


class RunVectors:
    """Vectors of an embeddings run directory, streamed part by part from its manifest."""

    def __init__(self, directory: str) -> None:
        manifest = stages.stage_manifest(directory, "embed")
        self._directory = directory
        self.n = int(manifest["rows"])
        self.dim = int(manifest["encoder"]["dim"])
        self.dtype = np.dtype(manifest["options"]["dtype"])

    def blocks(self) -> Iterator[Block]:
        """All rows, in order. Blocks share one buffer: be done with one before taking the next."""
        manifest = stages.stage_manifest(self._directory, "embed")
        buffer_ND = np.empty((min(BLOCK_ROWS, self.n), self.dim), self.dtype)
        start = 0
        for url, part in zip(stages.part_urls(self._directory, manifest), manifest["parts"]):
            rows = 0
            for _, block in shard_blocks(url, first_row=start, buffer_ND=buffer_ND):
                rows += len(block.vectors_ND)
                yield block
            if rows != part["rows"]:
                raise DataError(f"{url}: {rows} rows, the manifest says {part['rows']}")
            start += rows

    @cached_property
    def _ids(self) -> pa.ChunkedArray:
        return stages.read_table(self._directory, ["passage_id"]).column("passage_id")

    def ids_of(self, rows: np.ndarray) -> Sequence[str]:
        return self._ids.take(pa.array(rows)).to_pylist() if len(rows) else []

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of ascending row numbers, by one walk over the run."""
        chosen_ND = np.empty((len(rows), self.dim), self.dtype)
        for block in self.blocks():
            a, b = np.searchsorted(rows, [block.first_row, block.first_row + len(block.vectors_ND)])
            chosen_ND[a:b] = block.vectors_ND[rows[a:b] - block.first_row]
        return chosen_ND


def shard_blocks(
    url: str, hidden: Collection[str] = (), first_row: int = 0, buffer_ND: np.ndarray | None = None
) -> Iterator[tuple[list[str], Block]]:
    """One part of an embeddings run, less the passages in `hidden`, as (ids, block).

    Blocks share one buffer: be done with one before taking the next. Raises DataError naming the file,
    and the passage where a vector holds NaN or Inf.
    """
    for names, vectors_ND in part_blocks(url, BLOCK_ROWS, hidden, buffer_ND):
        try:
            norms_N = checked_norms(vectors_ND, names, f"{url}: passage")
        except ValueError as error:
            raise DataError(str(error)) from None
        yield names, Block(first_row, vectors_ND, norms_N)
        first_row += len(names)
