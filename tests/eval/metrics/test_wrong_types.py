"""Every metric on every kind of thing it does not take: a ValueError that names the example and shows it."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from eval.metrics import METRICS, compute, get_metric

KILT = {"output": [{"answer": "a", "provenance": [{"wikipedia_id": "1"}]}]}
FEVER = {"label": "SUPPORTS", "evidence": [[[None, None, "A", 0]]], "predicted_label": "SUPPORTS",
         "predicted_evidence": [["A", 0]]}  # fmt: skip
GOOD = {"answer": ("a b c", ["a b c"]), "ranking": (["1", "2"], ["1"]), "fever": (FEVER, FEVER),
        "kilt": (KILT, KILT), "number": (0.5, None)}  # fmt: skip
THINGS = [7, 2.5, True, b"a", object(), {}, {"a": 1}, [[1]], ["a", 1], [None], {"output": None},
          {"output": [None]}, {"output": [{"answer": 1}]}, {"output": [{"answer": "a", "provenance": [1]}]},
          {"output": [{"answer": "a", "provenance": 3}]}, {"label": 1}, {"predicted_label": 7},
          {"label": "SUPPORTS", "evidence": [1]}, [{}], (), "a", {"a"}, range(3), np.array([1.5]),
          np.array(3), pd.Series(["a"]), pd.DataFrame({"a": [1]}), lambda: None]  # fmt: skip


def named(name):
    return {"k": 5} if name in ("recall_at_k", "precision_at_k", "success_at_k") else {}


@pytest.mark.parametrize("name", METRICS)
def test_a_value_or_a_value_error_that_names_the_example(name):
    metric = get_metric(name, **named(name))
    ours, gold = GOOD[metric.takes]
    assert compute(name, [ours], [gold], **named(name)).n == 1
    for thing in THINGS:
        for pair in ((thing, gold), (ours, thing), (thing, thing)):
            try:
                found = compute(name, [ours, pair[0]], [gold, pair[1]], **named(name))
            except ValueError as error:
                assert str(error).startswith(f"{metric.name}, example 1: ")
                assert "not what this metric takes" not in str(error), (pair, error)
            else:
                assert found.value is None or math.isfinite(found.value)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    "wrong", [None, 7, "a", b"ab", {"x"}, frozenset(), pd.DataFrame({"a": ["x"]}), np.array("x")], ids=repr
)
def test_what_is_no_sequence_of_examples(name, wrong):
    ours, gold = GOOD[get_metric(name, **named(name)).takes]
    with pytest.raises(ValueError, match="_|f1|mrr|bleu"):
        compute(name, wrong, [gold], **named(name))
    if wrong is not None:
        with pytest.raises(ValueError, match="expected a sequence of examples, found"):
            compute(name, [ours], wrong, **named(name))


@pytest.mark.parametrize(
    ("name", "ours", "gold", "message"),
    [
        ("fever_score", ["SUPPORTS"], ["SUPPORTS"], "'SUPPORTS': expected a row of FEVER's files"),
        ("kilt_em", ["a"], [KILT], "'a': expected a row of KILT's files, with 'output'"),
        ("kilt_em", [KILT], [["a"]], r"\['a'\]: expected a row of KILT's files"),
        ("kilt_em", [{"answer": "a"}], [KILT], "output None: expected a list of objects"),
        ("kilt_f1", [KILT], [{"output": [{"answer": 3}]}], "answer 3: expected text"),
        ("mrr", ["abc"], [["a"]], "ranking 'abc': expected a list"),
        ("mrr", [{"a", "b"}], [["a"]], "ranking {.*}: expected a list"),
        ("mrr", [[None]], [["a"]], "id None: expected text or an integer"),
        ("mrr", [[1.5]], [["a"]], "id 1.5: expected text or an integer"),
        ("r_precision", [["a"]], [None], "gold .* None: expected a list"),
        ("r_precision", [{"x": 1}], [["a"]], "output None: expected a list of objects"),
        ("top_k_accuracy", [[math.nan]], None, "ranking .*expected 0/1 hits, found nan"),
        ("top_k_accuracy", [["1"]], None, "ranking .*expected 0/1 hits, found '1'"),
        ("top_k_accuracy", [3], None, "ranking without references 3: expected a list"),
        ("exact_match", ["a"], [7], "references 7: expected a list"),
        ("exact_match", ["a"], [{"a": 1}], "references {'a': 1}: expected a list"),
        ("exact_match", [{"text": "a"}], ["a"], "prediction {'text': 'a'}: expected text"),
        ("distinct_trigrams", [["a", "b"]], None, r"prediction \['a', 'b'\]: expected text"),
    ],
)
def test_the_text_says_what_was_found_and_what_is_wanted(name, ours, gold, message):
    with pytest.raises(ValueError, match=f"{name}, example 0: {message}"):
        compute(name, ours, gold)


def test_ids_join_and_positions_of_unlike_indexes_do_not():
    ours, gold = pd.Series(["a", "b"]), pd.Series(["b", "a"], index=[1, 0])
    with pytest.raises(ValueError, match="exact_match: .*Series with different indexes"):
        compute("exact_match", ours, gold)
    assert compute("exact_match", ours.to_dict(), gold.to_dict()).value == 1.0
    assert compute("exact_match", ours, gold.loc[ours.index]).value == 1.0
    with pytest.raises(ValueError, match="both mappings by id, or neither"):
        compute("exact_match", {"0": "a"}, ["a"])
    with pytest.raises(ValueError, match="both mappings by id, or neither"):
        compute("exact_match", ["a"], {"0": "a"})
    assert compute("distinct_trigrams", {"id": "a b c d"}).details == {"distinct": 2, "total": 2}
    assert compute("mean_log_prob", {"x": -1.0, "y": -2.0}).value == -1.5


def test_columns_of_arrow_and_generators():
    assert compute("exact_match", pa.array(["a", None]), pa.array([["a"], ["b"]])).n_missing == 1
    assert compute("f1", (t for t in ["a b"]), iter([["a b"]])).value == 1.0
    assert compute("recall_at_2", [["1", 2]], [{1, 2}]).value == 1.0
    assert compute("r_precision", [np.array(["1", "2"])], [np.array(["1"])]).value == 1.0
