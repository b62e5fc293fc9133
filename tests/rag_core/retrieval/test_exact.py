"""ExactIndex against the plain reference: every pass, cut, tie and odd input."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from rag_core.retrieval import ExactIndex, first_pass, merge_topk, scan, vectors
from tests.reference import exact_search as reference

PASSES = ["float32", "int8"]


def corpus(n, dim, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    vectors_ND = rng.standard_normal((n, dim)).astype(dtype)
    ids = [f"p{i}" for i in rng.permutation(n)]
    return vectors_ND, ids, rng.standard_normal((7, dim)).astype(dtype)


@pytest.fixture(params=PASSES)
def forced_pass(request, monkeypatch):
    """One first pass for all tiles, whatever the machine would choose."""
    if request.param == "int8" and not first_pass.int8_products_are_exact():
        pytest.skip("no exact int8 products on this machine")
    plain = scan.Scan.__init__

    def forced(self, *args, **options):
        plain(self, *args, **{**options, "first_pass": request.param})

    monkeypatch.setattr(scan.Scan, "__init__", forced)
    return request.param


def assert_same(found, right):
    assert found[1] == right[1]
    for ours, theirs in zip(found[0], right[0]):
        assert ours == pytest.approx(theirs, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("k", [1, 10, 300])
def test_ids_and_scores_are_the_references(forced_pass, k):
    vectors_ND, ids, queries_QD = corpus(3000, 40)
    assert_same(
        ExactIndex(vectors_ND, ids).search(queries_QD, k), reference.search(queries_QD, vectors_ND, ids, k)
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_each_float_type_is_searched_as_it_is(dtype):
    vectors_ND, ids, queries_QD = corpus(500, 24, dtype=dtype)
    found = ExactIndex(vectors_ND, ids).search(queries_QD, 20)
    assert_same(found, reference.search(queries_QD, vectors_ND, ids, 20))


def test_float64_vectors_that_float32_cannot_tell_apart_are_told_apart():
    vectors_ND = 1.0 + np.arange(50)[::-1, None] * 1e-12 * np.ones((1, 8))
    found = ExactIndex(vectors_ND, [f"{i:02d}" for i in range(50)]).search(np.ones((1, 8)), 50)
    assert found[1] == [[f"{i:02d}" for i in range(50)]]


def test_planted_duplicates_tie_by_id(forced_pass):
    vectors_ND, ids, queries_QD = corpus(2000, 16)
    vectors_ND[5::7] = vectors_ND[3]
    vectors_ND[6::11] = vectors_ND[4]
    for k in (1, 50, 290):
        found = ExactIndex(vectors_ND, ids).search(queries_QD, k)
        assert found[1] == reference.search(queries_QD, vectors_ND, ids, k)[1]


@pytest.mark.parametrize("order_seed", [1, 2])
def test_equal_scores_in_any_input_order_give_one_result(order_seed):
    ids = ["d", "b", "a", "c"]
    order = np.random.default_rng(order_seed).permutation(4)
    index = ExactIndex(np.ones((4, 3), np.float32), [ids[i] for i in order])
    assert index.search(np.ones((1, 3), np.float32), 3)[1] == [["a", "b", "c"]]


@pytest.mark.parametrize("block_rows", [1, 100, 1024, 5000])
@pytest.mark.parametrize("tile_rows", [64, 70, 1024])
def test_every_block_and_tile_size_gives_equal_bits(monkeypatch, block_rows, tile_rows):
    vectors_ND, ids, queries_QD = corpus(1500, 20)
    vectors_ND[100:140] = vectors_ND[7]
    whole = ExactIndex(vectors_ND, ids).search(queries_QD, 60)
    monkeypatch.setattr(vectors, "BLOCK_ROWS", block_rows)
    monkeypatch.setattr(scan, "TILE_ROWS", tile_rows)
    monkeypatch.setattr(scan, "TILE_QUERIES", 3)
    monkeypatch.setattr(scan, "MAX_PAIRS", 500)
    assert ExactIndex(vectors_ND, ids).search(queries_QD, 60) == whole


@pytest.mark.parametrize("n_shards", [1, 2, 5, 13])
def test_shards_merged_are_the_whole(n_shards):
    vectors_ND, ids, queries_QD = corpus(1300, 20)
    vectors_ND[400:440] = vectors_ND[900:940]
    whole = ExactIndex(vectors_ND, ids).search(queries_QD, 50)
    shards = [
        ExactIndex(vectors_ND[rows], [ids[r] for r in rows]).search(queries_QD, 50)
        for rows in np.array_split(np.arange(1300), n_shards)
    ]
    for q in range(len(queries_QD)):
        merged = merge_topk([(scores[q], names[q]) for scores, names in shards], 50)
        assert merged == (whole[0][q], whole[1][q])


def test_open_streams_a_run_and_gives_the_same(embeddings_run, monkeypatch):
    vectors_ND, ids, queries_QD = corpus(700, 12)
    monkeypatch.setattr(vectors, "BLOCK_ROWS", 64)
    index = ExactIndex.open(embeddings_run(vectors_ND, ids, n_parts=3))
    assert (len(index), index.dim) == (700, 12)
    assert index.search(queries_QD, 30, True, 3.0)[1] == reference.search(queries_QD, vectors_ND, ids, 30)[1]


def test_open_reads_float16_runs(embeddings_run):
    vectors_ND, ids, queries_QD = corpus(90, 8, dtype=np.float16)
    found = ExactIndex.open(embeddings_run(vectors_ND, ids)).search(queries_QD, 9)
    assert_same(found, reference.search(queries_QD, vectors_ND, ids, 9))


@pytest.mark.parametrize("scale", [0.0, 1.0, 20.0])
def test_log_partition_is_over_the_whole_corpus(scale):
    vectors_ND, ids, queries_QD = corpus(2500, 16)
    scores, _, log_z_Q = ExactIndex(vectors_ND, ids).search(queries_QD, 3, True, scale)
    right_Q = reference.log_partition(queries_QD, vectors_ND, scale)
    assert log_z_Q == pytest.approx(right_Q, abs=2e-4)
    # k = 0 asks for the partition alone.
    assert ExactIndex(vectors_ND, ids).search(queries_QD, 0, True, scale)[2] == pytest.approx(log_z_Q)
    captured = np.exp(scale * np.array(scores) - log_z_Q[:, None]).sum(axis=1)
    assert (captured <= 1 + 1e-4).all()


def test_k_of_nothing_beyond_the_corpus_and_below():
    vectors_ND, ids, queries_QD = corpus(5, 4)
    index = ExactIndex(vectors_ND, ids)
    assert index.search(queries_QD, 0) == ([[]] * 7, [[]] * 7)
    assert [len(hits) for hits in index.search(queries_QD, 100)[1]] == [5] * 7
    assert index.search(queries_QD[:0], 3) == ([], [])
    with pytest.raises(ValueError, match="k = -1"):
        index.search(queries_QD, -1)


def test_empty_corpus_and_one_passage():
    empty = ExactIndex(np.empty((0, 4), np.float32), [])
    scores, ids, log_z_Q = empty.search(np.ones((2, 4), np.float32), 5, True)
    assert (scores, ids, log_z_Q.tolist()) == ([[], []], [[], []], [-np.inf, -np.inf])
    one = ExactIndex(np.ones((1, 4), np.float32), ["only"])
    assert one.search(np.ones((1, 4), np.float32), 5) == ([[4.0]], [["only"]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_inf_are_refused_by_id(bad, embeddings_run):
    vectors_ND, ids, queries_QD = corpus(200, 6)
    vectors_ND[123, 4] = bad
    with pytest.raises(ValueError, match=f"{ids[123]!r}.*NaN or Inf"):
        ExactIndex(vectors_ND, ids)
    with pytest.raises(ValueError, match=f"{ids[123]!r}.*NaN or Inf"):
        ExactIndex.open(embeddings_run(vectors_ND, ids)).search(queries_QD, 3)
    queries_QD[2, 0] = bad
    with pytest.raises(ValueError, match="query '2'.*NaN or Inf"):
        ExactIndex(*corpus(200, 6)[:2]).search(queries_QD, 3)


def test_zero_vectors_score_zero_and_tie_by_id(forced_pass):
    vectors_ND = np.zeros((1500, 5), np.float32)
    vectors_ND[700] = 1
    ids = [f"{i:04d}" for i in range(1500)]
    queries_QD = np.stack([np.ones(5), np.zeros(5), -np.ones(5)]).astype(np.float32)
    _, found = ExactIndex(vectors_ND, ids).search(queries_QD, 3)
    assert found == [["0700", "0000", "0001"], ["0000", "0001", "0002"], ["0000", "0001", "0002"]]


@pytest.mark.parametrize("size", [1e-30, 1e-18, 1e18, 1e25, 1e38])
def test_numbers_at_the_ends_of_float32(size, forced_pass):
    vectors_ND, ids, queries_QD = corpus(1200, 6)
    vectors_ND = (vectors_ND * np.float32(size / 8)).astype(np.float32)
    found = ExactIndex(vectors_ND, ids).search(queries_QD * np.float32(size / 8), 9)
    assert found[1] == reference.search(queries_QD * np.float32(size / 8), vectors_ND, ids, 9)[1]


def test_one_huge_row_does_not_hide_the_others(forced_pass):
    vectors_ND, ids, queries_QD = corpus(3000, 16)
    vectors_ND[2500] *= 1e6
    vectors_ND[:, 3] *= 40
    found = ExactIndex(vectors_ND, ids).search(queries_QD, 25)
    assert found[1] == reference.search(queries_QD, vectors_ND, ids, 25)[1]


@pytest.mark.parametrize(
    ("vectors_ND", "ids", "message"),
    [
        (np.ones((2, 3), np.float32), ["a"], "2 vectors but 1 ids"),
        (np.ones((2, 3), np.float32), ["a", "a"], "'a' has two vectors"),
        (np.ones(3, np.float32), ["a"], "shape"),
        (np.ones((1, 3), np.int64), ["a"], "int64"),
    ],
)
def test_what_is_no_corpus_is_refused(vectors_ND, ids, message):
    with pytest.raises(ValueError, match=message):
        ExactIndex(vectors_ND, ids)


def test_queries_of_another_dimension_are_refused():
    index = ExactIndex(np.ones((2, 3), np.float32), ["a", "b"])
    with pytest.raises(ValueError, match=r"shape \(1, 4\).*queries, 3"):
        index.search(np.ones((1, 4), np.float32), 1)


def test_margins_hold_for_hostile_vectors():
    """The int8 and float32 scores are never further off than their margins say."""
    rng = np.random.default_rng(5)
    for dim in (1, 3, 64, 200):
        tile_ND = rng.standard_normal((64, dim)) * 10.0 ** rng.integers(-4, 4, (64, dim))
        tile_ND = tile_ND.astype(np.float32)
        queries_QD = rng.standard_normal((9, dim)) * 10.0 ** rng.integers(-3, 3, (9, dim))
        queries_QD = queries_QD.astype(np.float32)
        right_QN = queries_QD.astype(np.float64) @ tile_ND.astype(np.float64).T
        queries = first_pass.Queries(queries_QD)
        norm = float(first_pass.upper_norms(tile_ND).max())
        tile = first_pass.Int8Tile(first_pass.torch.from_numpy(tile_ND), norm)
        hat_QD, scale_Q, error_Q, hat_norm_Q = queries.int8
        products_QN = hat_QD.numpy().astype(np.int64) @ tile.hat_ND.numpy().astype(np.int64).T
        cheap_QN = products_QN * scale_Q[:, None] * tile.scale
        margin_Q1 = (error_Q * norm + hat_norm_Q * tile.error)[:, None]
        assert (np.abs(right_QN - cheap_QN) <= margin_Q1).all()
        single_QN = (queries_QD @ tile_ND.T).astype(np.float64)
        bound_Q1 = (first_pass.float32_margin(dim) * queries.norm_Q * norm)[:, None]
        assert (np.abs(right_QN - single_QN) <= bound_Q1 + dim * first_pass.TINY).all()
        exact_norms_N = np.linalg.norm(tile_ND.astype(np.float64), axis=1)
        assert (first_pass.upper_norms(tile_ND) >= exact_norms_N).all()


FORK = """
import os, sys, numpy as np, faiss, torch
from rag_core.retrieval import ExactIndex
from rag_core.retrieval.faiss_index import FaissIndex
rng = np.random.default_rng(0)
p = rng.standard_normal((5000, 256)).astype("f4"); q = p[:200]
ids = [str(i) for i in range(5000)]
flat = faiss.IndexFlatIP(256); flat.add(p)
indexes = [ExactIndex(p, ids), FaissIndex(flat, ids, {"kind": "flat"})]
before = [index.search(q, 5)[1] for index in indexes]
child = os.fork()
if child == 0:
    os._exit(0 if [index.search(q, 5)[1] for index in indexes] == before else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_search_in_a_forked_child_after_the_parent_searched():
    """faiss 5206: the child waits for OpenMP threads that only its parent has."""
    environment = {"OMP_NUM_THREADS": "4", "PATH": "/usr/bin:/bin", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", FORK], env=environment, timeout=60, check=False)
    assert done.returncode == 0
