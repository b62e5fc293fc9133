"""FAISS indexes: every kind finds, keeps its ids, and says how much it loses."""

from __future__ import annotations

import json

import faiss
import numpy as np
import pytest

from rag_core.errors import UsageError
from rag_core.retrieval import ExactIndex, FaissIndex, faiss_index, faiss_kinds


def clustered(n, dim=32, seed=0):
    """Vectors in clusters and in order of cluster, as passages in order of topic are."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n // 100, dim)) * 2
    vectors_ND = np.repeat(centres, 100, axis=0) + rng.standard_normal((n // 100 * 100, dim))
    return vectors_ND.astype(np.float32), [f"{i % 13}:{i}" for i in range(len(vectors_ND))]


@pytest.mark.parametrize("kind", ["flat", "hnsw", "sq8", "hnsw_sq8"])
def test_each_kind_finds_what_exact_search_finds(kind, embeddings_run, tmp_path):
    vectors_ND, ids = clustered(1000)
    settings = FaissIndex.build(embeddings_run(vectors_ND, ids), kind, tmp_path / "index")
    assert settings["recall"]["20"] >= (1.0 if kind in ("flat", "hnsw") else 0.95)
    assert settings["metric"] == "inner_product"
    index = FaissIndex.open(tmp_path / "index")
    plain = faiss.read_index(str(tmp_path / "index" / "index.faiss"))
    assert plain.metric_type == faiss.METRIC_INNER_PRODUCT
    queries_QD = vectors_ND[[3, 500, 999]]
    right = ExactIndex(vectors_ND, ids).search(queries_QD, 10)
    scores, found = index.search(queries_QD, 10)
    for q in range(3):
        assert len(set(found[q]) & set(right[1][q])) >= 9
        assert scores[q] == sorted(scores[q], reverse=True)
    assert index.ids == ids
    assert index.vectors() == pytest.approx(vectors_ND, abs=0.1)


def test_ivf_pq_rescores_exactly_and_reaches_its_recall(embeddings_run, tmp_path, monkeypatch):
    monkeypatch.setattr(faiss_kinds, "IVF_PQ_LEAST_ROWS", 2000)
    vectors_ND, ids = clustered(3000)
    settings = FaissIndex.build(embeddings_run(vectors_ND, ids), "ivf_pq", tmp_path / "index")
    assert settings["recall"]["20"] >= 0.99
    assert settings["bytes_per_vector"] < 64
    found = FaissIndex.open(tmp_path / "index").search(vectors_ND[:5], 5)
    right = ExactIndex(vectors_ND, ids).search(vectors_ND[:5], 5)
    assert found[1] == right[1]
    assert found[0] == [pytest.approx(scores) for scores in right[0]]


def test_training_rows_come_from_the_whole_run(monkeypatch):
    monkeypatch.setattr(faiss_kinds, "TRAIN_ROWS", 100)
    rows = faiss_kinds.training_rows(10_000, seed=3)
    assert len(set(rows.tolist())) == 100
    assert rows.min() < 500 and rows.max() > 9500
    assert (rows == faiss_kinds.training_rows(10_000, seed=3)).all()


def test_missing_hits_are_left_out_and_k_may_exceed_the_corpus():
    index = faiss.IndexHNSWFlat(4, 8, faiss.METRIC_INNER_PRODUCT)
    index.add(np.eye(4, dtype=np.float32))

    class Half:
        """FAISS fills places without a hit with id -1 and a score that looks real."""

        d, ntotal = 4, 4

        def search(self, queries_QD, k, params=None):
            return np.full((len(queries_QD), k), 9.0, np.float32), np.array([[2, -1, 0, -1]])[:, :k]

    wrapped = FaissIndex(Half(), ["a", "b", "c", "d"], {"kind": "flat"})
    assert wrapped.search(np.ones((1, 4), np.float32), 99) == ([[9.0, 9.0]], [["a", "c"]])
    assert wrapped.search(np.ones((1, 4), np.float32), 0) == ([[]], [[]])


def test_every_part_keeps_its_rows(embeddings_run, tmp_path):
    """Merged shards must not shift ids: each part's own vector finds its own id."""
    vectors_ND, ids = clustered(600)
    vectors_ND /= np.linalg.norm(vectors_ND, axis=1, keepdims=True)
    for kind in ("flat", "hnsw", "sq8"):
        FaissIndex.build(embeddings_run(vectors_ND, ids, 4, kind), kind, tmp_path / f"i-{kind}")
        index = FaissIndex.open(tmp_path / f"i-{kind}")
        assert [hits[0] for hits in index.search(vectors_ND[::50], 1)[1]] == ids[::50]


@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
@pytest.mark.parametrize("name", [faiss_index.INDEX_FILE, faiss_index.IDS_FILE])
def test_a_damaged_file_is_named(embeddings_run, tmp_path, damage, name):
    vectors_ND, ids = clustered(200)
    FaissIndex.build(embeddings_run(vectors_ND, ids), "flat", tmp_path / "index")
    path = tmp_path / "index" / name
    data = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    else:
        data[len(data) // 2] ^= 1
        path.write_bytes(data[: len(data) // 3] if damage == "cut" else data)
    with pytest.raises(ValueError, match=name):
        FaissIndex.open(tmp_path / "index")


def test_refusals(embeddings_run, tmp_path):
    vectors_ND, ids = clustered(200)
    run = embeddings_run(vectors_ND, ids)
    with pytest.raises(UsageError, match="'ivf'; known are flat, hnsw, sq8, hnsw_sq8, ivf_pq, bm25"):
        FaissIndex.build(run, "ivf", tmp_path / "index")
    with pytest.raises(UsageError, match="needs 10,000 vectors.*'flat'"):
        FaissIndex.build(run, "ivf_pq", tmp_path / "index")
    with pytest.raises(ValueError, match="not a finished FAISS index"):
        FaissIndex.open(tmp_path)
    FaissIndex.build(run, "flat", tmp_path / "index")
    index = FaissIndex.open(tmp_path / "index")
    with pytest.raises(ValueError, match=r"queries, 32"):
        index.search(np.ones((1, 31), np.float32), 1)
    with pytest.raises(ValueError, match="NaN or Inf"):
        index.search(np.full((1, 32), np.nan, np.float32), 1)
    assert json.loads((tmp_path / "index" / "ragline_index.json").read_text())["kind"] == "flat"


def test_code_sizes():
    assert [faiss_kinds.n_codes(d) for d in (768, 384, 256, 7, 1)] == [128, 128, 64, 1, 1]
    # 128 bytes of code and 8 of row number: 21 million passages in 2.9 GB.
    assert 21_015_324 * (faiss_kinds.n_codes(768) + 8) < 4e9
