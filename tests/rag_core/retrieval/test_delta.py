from __future__ import annotations

import numpy as np
import pytest

from rag_core.retrieval import DeltaIndex, ExactIndex


def test_base_less_removed_plus_added_is_the_new_corpus():
    rng = np.random.default_rng(0)
    old_ND = rng.standard_normal((60, 8)).astype(np.float32)
    new_ND = rng.standard_normal((25, 8)).astype(np.float32)
    old = [f"p{i}" for i in range(60)]
    new = [f"p{i}" for i in range(50, 75)]  # ten of them changed
    removed = [f"p{i}" for i in range(5)] + ["p70", "never was"]
    queries_QD = rng.standard_normal((6, 8)).astype(np.float32)
    delta = DeltaIndex(ExactIndex(old_ND, old), [ExactIndex(new_ND, new)], removed)
    kept = [i for i in range(5, 50)]
    added = [j for j, name in enumerate(new) if name != "p70"]
    rebuilt = ExactIndex(
        np.concatenate([old_ND[kept], new_ND[added]]), [old[i] for i in kept] + [new[j] for j in added]
    )
    for k in (0, 1, 7, 200):
        assert delta.search(queries_QD, k) == rebuilt.search(queries_QD, k)


def test_nothing_changed_is_the_base_and_dimensions_must_agree():
    base = ExactIndex(np.eye(3, dtype=np.float32), ["a", "b", "c"])
    assert DeltaIndex(base).search(np.ones((1, 3), np.float32), 2) == ([[1.0, 1.0]], [["a", "b"]])
    with pytest.raises(ValueError, match=r"dimensions \[3, 2\]"):
        DeltaIndex(base, [ExactIndex(np.eye(2, dtype=np.float32), ["d", "e"])])
