from __future__ import annotations

import numpy as np
import pytest

from rag_core.retrieval import ExactIndex, captured_mass, sequence_bounds, token_bounds


def test_bounds_hold_on_a_thousand_small_models_by_enumeration():
    rng = np.random.default_rng(0)
    for _ in range(1000):
        n, k, tokens = int(rng.integers(1, 9)), int(rng.integers(1, 9)), int(rng.integers(1, 4))
        logits_N = np.sort(rng.normal(0, 3, n))[::-1]
        prior_N = np.exp(logits_N) / np.exp(logits_N).sum()
        likelihood_NT = rng.random((n, tokens)) ** 3
        mass_K = captured_mass(logits_N[:k], float(np.log(np.exp(logits_N).sum())))
        mass = float(mass_K[-1])
        assert mass == pytest.approx(prior_N[:k].sum())
        assert (np.diff(mass_K) >= 0).all()
        kept_K = prior_N[:k] / prior_N[:k].sum()
        whole = prior_N @ likelihood_NT.prod(1)
        truncated = kept_K @ likelihood_NT[:k].prod(1)
        low, high = sequence_bounds(truncated, mass)
        assert low - 1e-12 <= whole <= high + 1e-12
        assert abs(whole - truncated) <= (1 - mass) * max(truncated, 1 - truncated) + 1e-12
        low, high = token_bounds(kept_K @ likelihood_NT[:k], mass)
        assert low - 1e-12 <= (prior_N @ likelihood_NT).prod() <= high + 1e-12


def test_mass_of_a_search():
    rng = np.random.default_rng(1)
    vectors_ND = rng.standard_normal((40, 6)).astype(np.float32)
    index = ExactIndex(vectors_ND, [str(i) for i in range(40)])
    scores, _, log_z_Q = index.search(vectors_ND[:3], 40, log_partition=True, score_scale=2.0)
    for row, log_z in zip(scores, log_z_Q):
        assert captured_mass(2.0 * np.array(row), log_z)[-1] == pytest.approx(1.0, abs=1e-5)


def test_refusals():
    with pytest.raises(ValueError, match="NaN"):
        captured_mass([1.0], float("nan"))
    with pytest.raises(ValueError, match="mass 1.2"):
        sequence_bounds(0.5, 1.2)
    assert captured_mass([], 0.0).size == 0
