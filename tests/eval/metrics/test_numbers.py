"""Metrics of numbers that the run itself gives: what is missing, infinite or impossible, and exact sums."""

import decimal
import math
import random

import numpy as np
import pandas as pd
import pytest

from eval.metrics import compute
from eval.metrics.retrieval_mass import mass_of

NOTHING = [None, math.nan, np.float32("nan"), np.float16("nan"), np.float64("nan"), pd.NA, pd.NaT,
           decimal.Decimal("nan"), np.ma.masked]  # fmt: skip


@pytest.mark.parametrize("nothing", NOTHING, ids=repr)
def test_what_is_missing(nothing):
    left_out = compute("mean_log_prob", [-0.5, nothing, -1.5])
    assert (left_out.value, left_out.n, left_out.n_missing) == (-1.0, 2, 1)
    assert left_out.details == {"n_infinite": 0, "n_total": 3, "coverage": 2 / 3}
    none_of_it = compute("retrieval_mass", [0.8, nothing, nothing])
    assert (none_of_it.n, none_of_it.n_missing) == (3, 2)
    assert none_of_it.value == pytest.approx(0.266667, abs=1e-6)
    assert none_of_it.per_example == [0.8, 0.0, 0.0]
    for name in ("exact_match", "f1", "bleu1", "rouge_l"):
        assert compute(name, [nothing], [["nan"]]).n_missing == 1
    labels = compute("fever_accuracy", ["SUPPORTS", nothing], ["SUPPORTS", "NAN"])
    assert (labels.value, labels.n_missing) == (0.5, 1)


def test_probability_zero_is_a_value_and_makes_the_mean_minus_infinity():
    score = compute("mean_log_prob", [-0.5, -math.inf, None])
    assert (score.value, score.n, score.n_missing) == (-math.inf, 2, 1)
    assert score.per_example == [-0.5, -math.inf, None] and score.details["n_infinite"] == 1
    assert compute("mean_log_prob", [None, None]).value is None


@pytest.mark.parametrize(
    ("name", "bad"),
    [("mean_log_prob", math.inf), ("mean_log_prob", "x"), ("mean_log_prob", True), ("mean_log_prob", [1.0]),
     ("retrieval_mass", 1.5), ("retrieval_mass", 1.001), ("retrieval_mass", -0.1),
     ("retrieval_mass", math.inf), ("retrieval_mass", "0.5"), ("retrieval_mass", {})],
)  # fmt: skip
def test_what_is_no_such_number_is_refused_by_example(name, bad):
    with pytest.raises(ValueError, match=f"{name}, example 1: "):
        compute(name, [0.5, bad])


def test_rounding_above_one_is_cut_off():
    assert compute("retrieval_mass", [np.float32(1.0000002), 1]).value == 1.0
    scores = np.random.default_rng(0).normal(80, 5, 1000).astype(np.float32)
    partition = np.float32(np.logaddexp.reduce(scores.astype(np.float64)))
    assert 1 - 1e-4 < mass_of(scores.tolist(), float(partition)) <= 1.0
    assert mass_of([2000.0], 1.0) > 1, "and no overflow"
    assert mass_of([], 1.0) == 0.0 and mass_of([-math.inf], 1.0) == 0.0


@pytest.mark.parametrize("name", ("mean_log_prob", "retrieval_mass"))
def test_the_mean_is_fsum_to_the_last_bit_in_any_order(name):
    rng = random.Random(0)
    values = [rng.random() * 10.0 ** -rng.randint(0, 30) for _ in range(5000)]
    values += [5e-324, 1 / 3, 0.1]
    for _ in range(3):
        rng.shuffle(values)
        score = compute(name, values)
        assert score.value == math.fsum(values) / len(values)
        assert score.per_example == values


def test_the_scores_of_kilt_are_kept_to_the_last_bit():
    golds = [{"output": [{"answer": "b c d e f g", "provenance": []}]}]
    ours = [{"output": [{"answer": "b", "provenance": []}]}]
    assert compute("kilt_downstream_f1", ours, golds).value == compute("f1", ["b"], ["b c d e f g"]).value
    assert compute("rouge_l_kilt", ["x b"], ["b c d e f g"]).value == 2 * (1 / 2 * 1 / 6) / (
        1 / 2 + 1 / 6 + 1e-8
    )
