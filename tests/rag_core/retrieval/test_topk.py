from __future__ import annotations

import numpy as np
import pytest

from rag_core.retrieval import merge_topk
from rag_core.retrieval.topk import RunningTopK


def test_merge_orders_by_score_then_id():
    shards = [([3.0, 1.0], ["b", "z"]), ([], []), ([3.0, 2.0], ["a", "c"])]
    assert merge_topk(shards, 3) == ([3.0, 3.0, 2.0], ["a", "b", "c"])
    assert merge_topk(shards, 9)[1] == ["a", "b", "c", "z"]
    assert merge_topk(shards, 0) == ([], [])
    assert merge_topk([], 5) == ([], [])


@pytest.mark.parametrize(
    ("shards", "message"),
    [
        ([([1.0], ["a"]), ([1.0], ["a"])], "'a' was found by two shards"),
        ([([float("nan")], ["a"])], "score NaN"),
        ([([1.0], ["a", "b"])], "1 scores but 2 ids"),
    ],
)
def test_merge_refuses(shards, message):
    with pytest.raises(ValueError, match=message):
        merge_topk(shards, 3)


@pytest.mark.parametrize("n_queries", [3, 70_000])
def test_running_topk_in_any_portions(n_queries):
    rng = np.random.default_rng(1)
    queries = rng.integers(0, 3, 400)
    scores = rng.integers(0, 9, 400).astype(np.float64)
    rows = np.arange(400)
    names = [f"{i:03d}" for i in rng.permutation(400)]
    top = RunningTopK(n_queries, 7, lambda wanted: [names[r] for r in wanted])
    for portion in np.array_split(np.arange(400), 9):
        top.add(queries[portion], scores[portion], rows[portion])
        top.merge()
    found_scores, found = top.results()
    for q in range(3):
        right = sorted((-s, names[r]) for s, r, of in zip(scores, rows, queries) if of == q)[:7]
        assert list(zip(found_scores[q], found[q])) == [(-s, name) for s, name in right]
        assert top.threshold_Q[q] == found_scores[q][-1]
    assert found[3:] == [[]] * (n_queries - 3)
