"""FAISS indexes: every kind finds, keeps its ids, and says how much it loses."""

from __future__ import annotations

import json
import sys

import faiss
import numpy as np
import pytest

from rag_core.errors import DataError, UsageError
from rag_core.retrieval import ExactIndex, FaissIndex, faiss_build, faiss_index, faiss_kinds
from rag_core.stages import part_urls


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
    path = tmp_path / "index" / faiss_index.VECTORS_FILE
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"vectors\.npy: its bytes have changed"):
        FaissIndex.open(tmp_path / "index")


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


@pytest.mark.parametrize("kind", faiss_build.MERGED_KINDS)
def test_merged_shards_are_one_build_and_keep_their_ids(kind, embeddings_run, tmp_path, monkeypatch):
    """faiss 5590, 3651, 2370: a forgotten or doubled offset gives hits the ids of other passages."""
    monkeypatch.setattr(faiss_kinds, "IVF_PQ_LEAST_ROWS", 200)
    vectors_ND, ids = clustered(600, dim=8)
    vectors_ND /= np.linalg.norm(vectors_ND, axis=1, keepdims=True)
    run = embeddings_run(vectors_ND, ids, 4)
    trained = faiss_build.to_bytes(faiss_build.trained_index(run, kind, 0))
    shards = [
        (150 * i, faiss_build.build_shard(trained, url, 150 * i)) for i, url in enumerate(part_urls(run))
    ]
    merged = faiss_build.merge_shards(iter(shards))
    assert faiss_build.to_bytes(merged) == faiss_build.to_bytes(faiss_build.build_whole(run, kind, 0))
    for row in (0, 149, 150, 155, 451, 599):
        depth = 40 if kind == "ivf_pq" else 1
        parameters = faiss_kinds.search_parameters(kind, depth, getattr(merged, "nlist", None))
        assert row in merged.search(vectors_ND[row][None], depth, params=parameters)[1]
    if kind == "ivf_pq":
        shifted = [shards[0], (150, faiss_build.build_shard(trained, part_urls(run)[1], 0))]
        with pytest.raises(RuntimeError, match="ids were shifted"):
            faiss_build.merge_shards(iter(shifted))
    with pytest.raises(RuntimeError, match="150 rows merged, the next shard starts at 300"):
        faiss_build.merge_shards(iter([shards[0], shards[2]]))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("kind", ["flat", "hnsw", "sq8", "hnsw_sq8"])
def test_an_opened_index_is_mapped(kind, embeddings_run, tmp_path):
    FaissIndex.build(embeddings_run(*clustered(300)), kind, tmp_path / kind)
    index = FaissIndex.open(tmp_path / kind)
    with open("/proc/self/maps") as maps:
        assert any(line.rstrip().endswith(f"{kind}/index.faiss") for line in maps)
    assert len(index.search(np.ones((1, 32), np.float32), 3)[1][0]) == 3


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_vector_that_could_never_be_found_is_refused_and_zero_is_kept(bad, embeddings_run, tmp_path):
    """A NaN row is counted and unreachable, an Inf row is everybody's first hit."""
    vectors_ND, ids = clustered(200)
    vectors_ND[7] = 0
    index = FaissIndex.build(embeddings_run(vectors_ND, ids, 2, "zero"), "flat", tmp_path / "zero")
    assert index["passages"] == 200
    found = FaissIndex.open(tmp_path / "zero").search(vectors_ND[:1], 200)
    assert dict(zip(found[1][0], found[0][0]))[ids[7]] == 0.0
    vectors_ND[123, 5] = bad
    with pytest.raises(DataError, match=f"part-00001.parquet: passage {ids[123]!r}: vector holds NaN or Inf"):
        FaissIndex.build(embeddings_run(vectors_ND, ids), "flat", tmp_path / "bad")


@pytest.mark.parametrize("kind", ["flat", "hnsw", "sq8", "hnsw_sq8"])
def test_one_passage_and_k_beyond_the_corpus(kind, embeddings_run, tmp_path):
    FaissIndex.build(embeddings_run(np.eye(1, 8, dtype=np.float32), ["only"], 1), kind, tmp_path / kind)
    scores, ids = FaissIndex.open(tmp_path / kind).search(np.ones((2, 8), np.float32), 50)
    assert ids == [["only"], ["only"]] and scores[0] == pytest.approx([1.0], abs=0.01)


def test_no_passages(embeddings_run, tmp_path):
    with pytest.raises(DataError, match="no vectors to index"):
        FaissIndex.build(embeddings_run(np.empty((0, 4), np.float32), [], 1), "flat", tmp_path / "i")


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


def test_an_index_made_elsewhere(tmp_path):
    vectors_ND, ids = clustered(300)
    theirs = faiss.index_factory(32, "IVF4,Flat", faiss.METRIC_INNER_PRODUCT)
    theirs.train(vectors_ND)
    theirs.add(vectors_ND)
    theirs.nprobe = 4
    faiss.write_index(theirs, str(tmp_path / "theirs.faiss"))
    index = FaissIndex(faiss.read_index(str(tmp_path / "theirs.faiss")), ids, {"kind": "IVF4,Flat"})
    assert index.search(vectors_ND[:4], 9)[1] == ExactIndex(vectors_ND, ids).search(vectors_ND[:4], 9)[1]
    with pytest.raises(ValueError, match="300 vectors, there are 299 ids"):
        FaissIndex(theirs, ids[1:], {"kind": "theirs"})
    with pytest.raises(ValueError, match="does not rank by inner product"):
        FaissIndex(faiss.IndexFlatL2(32), [], {"kind": "theirs"})


def test_code_sizes():
    assert [faiss_kinds.n_codes(d) for d in (768, 384, 256, 7, 1)] == [128, 128, 64, 1, 1]
    # 128 bytes of code and 8 of row number: 21 million passages in 2.9 GB.
    assert 21_015_324 * (faiss_kinds.n_codes(768) + 8) < 4e9
