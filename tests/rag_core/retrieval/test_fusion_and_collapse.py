from __future__ import annotations

import itertools
import random

import pytest

from rag_core.retrieval import reciprocal_rank_fusion, retrieval_spread


def test_fusion_by_hand():
    scores, ids = reciprocal_rank_fusion([["a", "b", "c"], ["b", "d"]], 10)
    assert ids == ["b", "a", "d", "c"]
    assert scores == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62, 1 / 63])
    assert reciprocal_rank_fusion([["x"], ["a"]], 1)[1] == ["a"]
    assert reciprocal_rank_fusion([], 5) == ([], [])
    assert reciprocal_rank_fusion([["a"]], 0) == ([], [])
    with pytest.raises(ValueError, match="twice"):
        reciprocal_rank_fusion([["a", "a"]], 5)


def test_fusion_does_not_depend_on_the_order_of_runs():
    runs = [random.Random(seed).sample("abcdefghij", 10) for seed in range(3)]
    results = {str(reciprocal_rank_fusion(order, 10)) for order in itertools.permutations(runs)}
    assert len(results) == 1


def test_spread_is_the_mean_over_pairs():
    rng = random.Random(0)
    found = [rng.sample(range(30), rng.randint(1, 9)) for _ in range(12)]
    found = [[str(i) for i in ids] for ids in found]
    pairs = [len(set(a) & set(b)) / len(a) for a, b in itertools.permutations(found, 2)]
    spread = retrieval_spread([*found, []])
    assert spread.mean_overlap == pytest.approx(sum(pairs) / len(pairs))
    assert spread.n_questions == 12
    assert spread.distinct_passages == len({i for ids in found for i in ids})


def test_collapse():
    assert retrieval_spread([["a", "b"]] * 5).mean_overlap == 1.0
    assert retrieval_spread([["a", "b"]] * 5).collapsed
    apart = retrieval_spread([[f"{q}-{i}" for i in range(3)] for q in range(5)])
    assert (apart.mean_overlap, apart.collapsed, apart.distinct_passages) == (0.0, False, 15)
    assert retrieval_spread([["a"]]).mean_overlap is None
    assert not retrieval_spread([]).collapsed
