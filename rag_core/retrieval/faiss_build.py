"""Building a FAISS index: train, add the rows of each shard, merge the shards, measure, write.

Shards can be built apart and merged where a kind keeps its vectors in arrays or lists: flat, sq8 and
ivf_pq. Rows are numbered over the whole run from the start (explicit ids in inverted lists, places in
arrays), and a merged index is byte for byte that of one build. An HNSW graph links every vector to
others of the whole run, so it cannot be merged; its one build uses all threads of its machine.

Shapes: Q queries · N passages · D numbers of a vector.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rag_core import files
from rag_core.errors import DataError, UsageError
from rag_core.retrieval.exact import ExactIndex
from rag_core.retrieval.faiss_index import (
    IDS_FILE,
    INDEX_FILE,
    SETTINGS_FILE,
    VECTORS_FILE,
    FaissIndex,
    open_vectors,
)
from rag_core.retrieval.faiss_kinds import KINDS, TRAINED, make_index, training_rows
from rag_core.retrieval.integrity import file_digests
from rag_core.retrieval.vectors import RunVectors, shard_blocks

MERGED_KINDS = ("flat", "sq8", "ivf_pq")
RECALL_AT = (1, 5, 20, 100)
RECALL_QUERIES = 256
# Measured with passages as queries; questions lie farther off. Where MiniLM's passages had 0.993, its
# questions had 0.989, so that 0.99 for questions needs a little more here.
IVF_RECALL_AT_20 = 0.995


def build_whole(embeddings_dir: str, kind: str, seed: int) -> Any:
    """A FAISS index of `kind` over a whole embeddings run, in one go."""
    index = trained_index(embeddings_dir, kind, seed)
    for block in RunVectors(embeddings_dir).blocks():
        add_rows(index, block.vectors_ND, block.first_row)
    return index


def trained_index(embeddings_dir: str, kind: str, seed: int) -> Any:
    """An empty index of `kind`, trained on rows drawn at random from the whole run by `seed`.

    Raises UsageError on an unknown kind, or too few vectors for it; DataError on an empty run.
    """
    if kind not in KINDS:
        raise UsageError(f"index kind {kind!r}; known are {', '.join((*KINDS, 'bm25'))}")
    source = RunVectors(embeddings_dir)
    if not source.n:
        raise DataError(f"{embeddings_dir}: no vectors to index")
    index = make_index(kind, source.dim, source.n)
    if kind in TRAINED:
        index.train(source.rows(training_rows(source.n, seed)).astype(np.float32))
    return index


def add_rows(index: Any, vectors_ND: np.ndarray, first_row: int) -> None:
    """Add consecutive rows of the run, the first of which has number `first_row`."""
    vectors_ND = np.ascontiguousarray(vectors_ND, dtype=np.float32)
    if hasattr(index, "invlists"):
        index.add_with_ids(vectors_ND, np.arange(first_row, first_row + len(vectors_ND)))
    else:
        index.add(vectors_ND)


def build_shard(trained: bytes, part_url: str, first_row: int) -> bytes:
    """One part of an embeddings run in a copy of the trained empty index; both as FAISS writes them."""
    index = _from_bytes(trained)
    for _, block in shard_blocks(part_url):
        add_rows(index, block.vectors_ND, first_row + block.first_row)
    return to_bytes(index)


def merge_shards(shards: Iterable[tuple[int, bytes]]) -> Any:
    """One index from (first row, shard), in the order of the rows.

    Before and after, one and the same vector is scored against the first and the last row of every
    shard: RuntimeError when merging gave a row another number.
    """
    merged, samples = None, []
    for first_row, data in shards:
        shard = _from_bytes(data)
        n_merged = merged.ntotal if merged else 0
        if n_merged != first_row:
            raise RuntimeError(f"{n_merged} rows merged, the next shard starts at {first_row}")
        # In inverted lists a row has its number from the start, in an array its place.
        shift = 0 if hasattr(shard, "invlists") else first_row
        ends = {first_row, first_row + shard.ntotal - 1} if shard.ntotal else set()
        samples += [(row, score_of_row(shard, row - shift)) for row in sorted(ends)]
        if merged is None:
            merged = shard
        else:
            merged.merge_from(shard, 0)
    for row, score in samples:
        found = score_of_row(merged, row)
        if score is None or found is None or not np.isclose(found, score, rtol=1e-4, atol=1e-4):
            raise RuntimeError(f"row {row} scores {found} after merging and {score} before: ids were shifted")
    return merged


def score_of_row(index: Any, row: int) -> float | None:
    """The inner product of a fixed vector and the row of this number; None when there is no such row."""
    import faiss

    vector_D = np.random.default_rng(0).standard_normal(index.d, dtype=np.float32)
    only = faiss.IDSelectorRange(row, row + 1)
    parameters = faiss.SearchParameters(sel=only)
    if hasattr(index, "invlists"):
        parameters = faiss.SearchParametersIVF(sel=only, nprobe=index.nlist)
    scores, rows = index.search(vector_D[None], 1, params=parameters)
    return float(scores[0, 0]) if rows[0, 0] == row else None


def write_index(
    index: Any,
    embeddings_dir: str,
    kind: str,
    out_dir: str,
    *,
    seed: int,
    queries_QD: np.ndarray | None = None,
) -> dict[str, Any]:
    """Write an index of all rows with its ids, settings and checksums into a local directory.

    Returns the settings, with what is measured: see `FaissIndex.build`.
    """
    import faiss

    source = RunVectors(embeddings_dir)
    if index.ntotal != source.n:
        raise RuntimeError(f"index holds {index.ntotal} vectors, the run has {source.n}")
    os.makedirs(out_dir, exist_ok=True)
    names = [INDEX_FILE, IDS_FILE]
    faiss.write_index(index, os.path.join(out_dir, INDEX_FILE))
    ids = source.ids_of(np.arange(source.n))
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
        "bytes_per_vector": os.path.getsize(os.path.join(out_dir, INDEX_FILE)) / source.n,
        "files": file_digests(out_dir, names),
    }
    if queries_QD is None:
        chosen = np.random.default_rng(seed).permutation(source.n)[:RECALL_QUERIES]
        queries_QD = source.rows(np.sort(chosen))
        settings["recall_queries"] = f"{len(queries_QD)} passages of the run"
    else:
        settings["recall_queries"] = f"{len(queries_QD)} questions"
    built = FaissIndex(index, ids, settings, open_vectors(out_dir, kind, source.n))
    settings |= _measure(built, ExactIndex.open(embeddings_dir), queries_QD)
    files.write_json(os.path.join(out_dir, SETTINGS_FILE), settings)
    return settings


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


def to_bytes(index: Any) -> bytes:
    """An index as FAISS writes it."""
    import faiss

    return faiss.serialize_index(index).tobytes()


def _from_bytes(data: bytes) -> Any:
    import faiss

    return faiss.deserialize_index(np.frombuffer(data, np.uint8))
