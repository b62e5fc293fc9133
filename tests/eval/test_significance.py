"""Paired tests against the shared cases, scipy, and simulation."""

import json

import numpy as np
import pytest
from scipy import stats

from eval._intervals import id_hashes
from eval._significance import (
    holm,
    mcnemar_exact,
    mcnemar_power,
    paired_interval,
    pooled_interval,
    sign_flip,
    smallest_drop,
    swap_test,
)
from eval.metrics import get_metric


def hashes(n, prefix=""):
    return id_hashes([f"{prefix}{i}" for i in range(n)], 0)


def test_the_shared_cases(shared_cases):
    for line in (shared_cases / "metric_significance.jsonl").read_text().splitlines():
        case = json.loads(line)
        given, expected = case["input"], case["expected"]
        if case["test"].startswith("McNemar"):
            found = mcnemar_exact(given["only_baseline_right"], given["only_candidate_right"])
            assert found == pytest.approx(expected["exact_p"], abs=1e-9)
        elif case["test"].startswith("unpaired"):
            found = mcnemar_exact(given["only_A"], given["only_B"])
            assert found == pytest.approx(expected["mcnemar_exact_p"], abs=1e-6)
        elif case["test"].startswith("exact sign-flip"):
            assert sign_flip(given["differences"]) == expected["p"]
        elif case["test"].startswith("paired t") and isinstance(expected["p"], str):
            assert sign_flip(given["differences"]) == 1.0, "no difference: p = 1, not NaN"


def test_a_run_against_its_copy():
    rows = np.random.default_rng(0).integers(0, 9, (50, 4))
    metric = get_metric("bleu1")
    assert (
        mcnemar_exact(0, 0)
        == sign_flip(np.zeros(500))
        == swap_test(rows, rows, hashes(50), metric.score)
        == 1.0
    )
    assert paired_interval(np.zeros(50), hashes(50)) == (0.0, 0.0)
    assert pooled_interval(rows, rows, hashes(50), metric.score) == (0.0, 0.0)
    assert sign_flip([0, 0, 1, 0]) == 1.0, "one changed example proves nothing"


def test_mcnemar_equals_scipy():
    for only_a, only_b in ((1, 0), (3, 10), (0, 30), (181, 180), (400, 300), (5000, 4800)):
        peer = stats.binomtest(only_a, only_a + only_b, 0.5).pvalue
        assert mcnemar_exact(only_a, only_b) == pytest.approx(peer, rel=1e-9)


def test_sign_flip_and_bootstrap_agree_with_scipy():
    rng = np.random.default_rng(0)
    for shift in (0.0, 0.03, 0.08):
        d = rng.normal(shift, 0.3, 400)
        peer = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=9999, rng=1)
        assert sign_flip(d, hashes(400)) == pytest.approx(peer.pvalue, abs=0.02)
        low, high = paired_interval(d, hashes(400))
        other = stats.bootstrap((d,), np.mean, n_resamples=2000, rng=1).confidence_interval
        assert (low, high) == pytest.approx((other.low, other.high), abs=0.005)
    d = rng.normal(0.2, 0.3, 12)
    exact = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip(d) == pytest.approx(exact.pvalue, abs=1e-12)
    order = rng.permutation(400)
    d = rng.normal(0.03, 0.3, 400)
    assert sign_flip(d, hashes(400)) == sign_flip(d[order], hashes(400)[order]), "order changes nothing"


def test_the_power_of_the_exact_test():
    """n = 3,610, a tenth of the answers changed: 1 point is found in 46% of runs, 2 points in 96%."""
    assert mcnemar_power(3610, 0.1, 0.01) == pytest.approx(0.456, abs=0.001)
    assert mcnemar_power(3610, 0.1, 0.02) == pytest.approx(0.965, abs=0.001)
    least = smallest_drop(3610, 0.1)
    assert mcnemar_power(3610, 0.1, least) == pytest.approx(0.8, abs=0.001)
    assert smallest_drop(20, 0.1) is None and smallest_drop(0, 0.1) is None
    with pytest.raises(ValueError, match="drop 0.2, changed 0.1"):
        mcnemar_power(10, 0.1, 0.2)


@pytest.mark.parametrize(("drop", "share"), ((0.0, None), (0.01, 0.456), (0.02, 0.965)))
def test_2000_trials_are_found_as_the_closed_form_says(drop, share):
    rng = np.random.default_rng(round(drop * 100))
    discordant = rng.binomial(3610, 0.1, 2000)
    losses = rng.binomial(discordant, (1 + drop / 0.1) / 2)
    found = sum(mcnemar_exact(int(b), int(m - b)) <= 0.05 for b, m in zip(losses, discordant))
    if share is None:
        assert found <= stats.binom(2000, 0.05).ppf(0.999), "false alarms within their bound"
    else:
        low, high = stats.binom(2000, share).ppf((0.001, 0.999))
        assert low <= found <= high


def test_false_alarms_of_the_other_tests():
    rng = np.random.default_rng(1)
    alarms = sum(sign_flip(rng.normal(0, 1, 40), hashes(40, f"{t}-")) <= 0.05 for t in range(200))
    assert alarms <= stats.binom(200, 0.05).ppf(0.999)
    metric = get_metric("bleu1")
    found = 0
    for trial in range(20):
        rows = rng.integers(1, 9, (2, 30))
        sides = [np.stack([np.minimum(r, 8), np.full(30, 9), r, np.full(30, 9)], axis=1) for r in rows]
        sides = [s[:, [3, 1, 2, 3]] for s in sides]
        found += swap_test(*sides, hashes(30, f"{trial}-"), metric.score) <= 0.05
    assert found <= stats.binom(20, 0.05).ppf(0.999)


def test_holm():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0] and holm([]) == []
