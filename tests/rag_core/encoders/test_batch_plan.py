from __future__ import annotations

import random

import pytest

from rag_core.encoders.batch_plan import LENGTH_STEP, padding_share, plan_batches


def test_every_row_once_in_shapes_of_one_budget():
    rng = random.Random(0)
    lengths = [rng.randint(3, 256) for _ in range(1000)]
    plan = plan_batches(lengths, token_budget=2048, max_length=256)
    assert sorted(row for batch in plan for row in batch.rows) == list(range(1000))
    for batch in plan[:-1]:
        assert len(batch.rows) == 2048 // batch.length
    for batch in plan:
        assert batch.length % LENGTH_STEP == 0
        assert batch.length - LENGTH_STEP < max(lengths[r] for r in batch.rows) <= batch.length
    assert padding_share(lengths, plan) < 0.08


def test_plan_depends_on_lengths_and_ids_alone():
    lengths, ids = [5, 9, 5, 5, 9], ["e", "b", "c", "a", "d"]
    order = [3, 1, 4, 0, 2]
    plan = plan_batches(lengths, ids, token_budget=32)
    shuffled = plan_batches([lengths[i] for i in order], [ids[i] for i in order], token_budget=32)
    named = [[ids[r] for r in b.rows] for b in plan]
    assert named == [["b", "d"], ["a", "c"], ["e"]]
    assert named == [[ids[order[r]] for r in b.rows] for b in shuffled]


def test_a_text_longer_than_the_budget_goes_alone_and_shapes_end_at_max_length():
    plan = plan_batches([250, 250], token_budget=100, max_length=250)
    assert [(len(b.rows), b.length) for b in plan] == [(1, 250), (1, 250)]
    assert plan_batches([]) == []
    assert padding_share([], []) == 0.0


def test_refusals():
    with pytest.raises(ValueError, match="row 1: 0 tokens"):
        plan_batches([5, 0])
    with pytest.raises(ValueError, match="row 0: 600 tokens"):
        plan_batches([600])
    with pytest.raises(ValueError, match="2 lengths but 1 ids"):
        plan_batches([5, 5], ["a"])
