"""Intervals against scipy and against simulation; sums that do not depend on how they were cut."""

import json
import math
import random

import numpy as np
import pytest
from scipy import stats

from eval._cells import (
    Cell,
    Counted,
    KeyCell,
    cell_interval,
    cell_value,
    exact_sum,
    fill_cells,
    fill_key_cell,
)
from eval._intervals import id_hashes, mixed, percentile_interval, poisson_weights, wilson
from eval.metrics import compute, get_metric


def fill_cell(metric, rows, weights):
    everything = np.ones(len(rows), bool)
    return fill_cells([(Counted.of(metric, [tuple(map(int, r)) for r in rows]), everything)], weights)[0]


def test_wilson_equals_the_cases_and_scipy(shared_cases):
    for line in (shared_cases / "metric_significance.jsonl").read_text().splitlines():
        case = json.loads(line)
        if case["test"].startswith("Wilson"):
            expected = case["expected"]["low"], case["expected"]["high"]
            assert wilson(case["input"]["correct"], case["input"]["n"]) == pytest.approx(expected, abs=1e-6)
    for k, n in ((0, 1), (3, 7), (7, 7), (1603, 3610), (999_999, 1_000_000)):
        peer = stats.binomtest(k, n).proportion_ci(method="wilson")
        assert wilson(k, n) == pytest.approx((peer.low, peer.high), abs=1e-12)
    with pytest.raises(ValueError, match="3 of 2"):
        wilson(3, 2)


def test_weights_are_poisson_and_the_examples_own():
    ids = [f"q{i}" for i in range(4000)]
    weights = poisson_weights(id_hashes(ids, seed=0), 200)
    frequencies = np.bincount(weights.ravel(), minlength=9)[:6] / weights.size
    assert frequencies == pytest.approx(stats.poisson(1).pmf(range(6)), abs=0.002)
    assert abs(np.corrcoef(weights[:, :40].T) - np.eye(40)).max() < 0.08
    shuffled = random.Random(0).sample(range(4000), 4000)
    again = poisson_weights(id_hashes([ids[i] for i in shuffled], seed=0), 200)
    assert (again == weights[shuffled]).all()
    assert (poisson_weights(id_hashes(ids, seed=1), 200) != weights).mean() > 0.5


def test_bootstrap_covers_the_mean():
    rng = np.random.default_rng(0)
    metric = get_metric("f1")
    inside = 0
    for trial in range(200):
        common = rng.integers(0, 6, 150)
        rows = np.stack([common, np.full(150, 10)], axis=1)
        weights = poisson_weights(id_hashes([f"{trial}-{i}" for i in range(150)], 0), 400)
        low, high = cell_interval(metric, fill_cell(metric, rows, weights.astype(float)))
        inside += low <= 2 * 2.5 / 10 <= high
    assert stats.binomtest(inside, 200, 0.95).pvalue > 0.01, inside


@pytest.mark.parametrize("name", ("exact_match", "f1", "bleu1", "bleu4", "rouge_l"))
def test_cells_merge_to_the_whole_in_any_cut_and_order(name):
    rng = random.Random(0)
    words = "a b c d e f.".split()
    predictions = [" ".join(rng.choices(words, k=rng.randint(0, 9))) for _ in range(300)]
    references = [[" ".join(rng.choices(words, k=rng.randint(1, 9)))] for _ in range(300)]
    metric = get_metric(name)
    rows = np.array([metric.statistics(p, r) for p, r in zip(predictions, references)], np.int64)
    weights = poisson_weights(id_hashes(list(map(str, range(300))), 0), 100).astype(float)
    whole = fill_cell(metric, rows, weights)
    for cuts in ([0, 100, 300], [0, 1, 7, 7, 250, 300]):
        pieces = [fill_cell(metric, rows[a:b], weights[a:b]) for a, b in zip(cuts, cuts[1:])]
        rng.shuffle(pieces)
        merged = Cell()
        for piece in pieces:
            merged.add(piece)
        assert (
            cell_value(metric, merged)
            == cell_value(metric, whole)
            == compute(name, predictions, references).value
        )
        assert cell_interval(metric, merged) == cell_interval(metric, whole)


def test_distinct_ngrams_merge_and_their_interval_is_honest():
    rng = random.Random(0)
    metric = get_metric("distinct_trigrams")
    texts = [" ".join(rng.choices("a b c d e f g h".split(), k=12)) for _ in range(400)]
    keys = [metric.statistics(text, None) for text in texts]
    halves = mixed(id_hashes(list(map(str, range(400))), 0), 1 << 20)
    whole = fill_key_cell(keys, halves)
    merged = KeyCell()
    for start in range(0, 400, 33):
        merged.add(fill_key_cell(keys[start : start + 33], halves[start : start + 33]))
    assert merged.value() == whole.value() == compute("distinct_trigrams", texts).value
    assert merged.interval() == whole.interval()
    low, high = whole.interval()
    assert 0 < high - low < 0.05 and low < whole.value() < high
    assert KeyCell().value() is None and KeyCell().interval() is None


def test_sums_are_exact():
    values = np.random.default_rng(0).normal(size=10_000) * 10.0 ** np.arange(-5, 5).repeat(1000)
    assert exact_sum(values) / (1 << 1100) == math.fsum(values)
    assert exact_sum(np.array([])) == 0
    assert percentile_interval(np.array([math.nan])) is None


def test_cells_of_log_probabilities_are_exact_and_know_minus_infinity():
    rng = random.Random(3)
    metric = get_metric("mean_log_prob")
    values = [-rng.expovariate(0.05) for _ in range(300)]
    weights = poisson_weights(id_hashes(list(map(str, range(300))), 0), 200).astype(float)
    rows = np.array([metric.statistics(v, None) for v in values], np.int64)
    merged = Cell()
    for start in (200, 0, 100):
        merged.add(fill_cell(metric, rows[start : start + 100], weights[start : start + 100]))
    assert cell_value(metric, merged) == math.fsum(values) / 300
    low, high = cell_interval(metric, merged)
    assert low < cell_value(metric, merged) < high < 0
    rows[7] = metric.statistics(-math.inf, None)
    whole = fill_cell(metric, rows, weights)
    assert cell_value(metric, whole) == -math.inf
    low, high = cell_interval(metric, whole)
    assert low == -math.inf and not math.isnan(high)


def test_an_interval_holds_its_own_value():
    for name, statistics in (("f1", (1, 3)), ("f1", (2, 7)), ("bleu1", (3, 3, 1, 3))):
        metric = get_metric(name)
        for n in (1, 2, 50):
            weights = poisson_weights(id_hashes(list(map(str, range(n))), 0)).astype(float)
            cell = fill_cell(metric, np.array([statistics] * n), weights)
            low, high = cell_interval(metric, cell)
            assert low <= cell_value(metric, cell) <= high
