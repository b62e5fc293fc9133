"""What `compute` does with missing, odd and hostile input, whatever the metric."""

import math

import numpy as np
import pandas as pd
import pytest

from eval.metrics import compute

TEXT_METRICS = ("exact_match", "f1", "bleu1", "bleu4", "rouge_l", "rouge_l_kilt", "bleu1_msmarco",
                "rouge_l_msmarco", "q_bleu1", "regex_match", "regex_search")  # fmt: skip


@pytest.mark.parametrize("name", TEXT_METRICS)
def test_missing_predictions_count_and_are_wrong(name):
    score = compute(name, ["x y", None, math.nan, pd.NA], [["x y"]] * 4)
    assert (score.n, score.n_missing) == (4, 3)
    assert score.per_example == [pytest.approx(1.0), 0.0, 0.0, 0.0]
    assert score.value < 1
    assert compute(name, [None], [["the"]]).value == 0.0, "missing is wrong even where empty would be right"


@pytest.mark.parametrize("name", TEXT_METRICS)
def test_odd_texts_have_defined_values(name):
    for text in (
        "",
        " ",
        "\n",
        "\u200b",
        "a\nb\r\n",
        "e\u0301",
        "\u00e9",
        "\ud800",
        "\x00",
        "😀",
        "None",
        "nan",
    ):
        assert 0 <= compute(name, [text], [["x", text or "y"]]).value <= 1


def test_unicode_forms_and_invisible_spaces_are_other_texts():
    assert compute("exact_match", ["caf\u00e9"], [["cafe\u0301"]]).value == 0
    assert compute("exact_match", ["Paris\u200b"], [["Paris"]]).value == 0
    assert compute("exact_match", ["New\nYork\n"], [["new york"]]).value == 1
    assert compute("regex_search", ["caf\u00e9"], [["cafe\u0301$"]]).value == 1, (
        "patterns are NFD on both sides"
    )


@pytest.mark.parametrize("name", ("exact_match", "f1", "bleu1", "rouge_l", "q_bleu1", "regex_match"))
def test_ten_megabytes(name):
    long = "word and another 3,000 one. " * 360_000
    assert 0 <= compute(name, [long], [["a short one"]]).value < 0.5


@pytest.mark.parametrize("name", TEXT_METRICS)
def test_what_is_not_an_example_is_refused_by_number(name):
    with pytest.raises(ValueError, match=f"{name}, example 1: prediction 7: expected text"):
        compute(name, ["a", 7], [["a"], ["b"]])
    with pytest.raises(ValueError, match=f"{name}, example 0: no reference answers"):
        compute(name, ["a"], [[]])
    with pytest.raises(ValueError, match="example 0: references .* expected texts"):
        compute(name, ["a"], [[1]])
    with pytest.raises(ValueError, match="2 predictions but 1 references"):
        compute(name, ["a", "b"], [["a"]])
    with pytest.raises(ValueError, match="found one text"):
        compute(name, "abc", ["abc"])
    with pytest.raises(ValueError, match="no examples, the value is undefined"):
        compute(name, [], [])


def test_columns_of_a_data_frame():
    """pandas gives lists back as arrays."""
    frame = pd.DataFrame({"prediction": ["a", None, "c"], "answers": [["a"], ["b"], ["x", "c"]]})
    frame.answers = [np.array(answers, object) for answers in frame.answers]
    score = compute("exact_match", frame.prediction, frame.answers)
    assert (score.per_example, score.n_missing) == ([1.0, 0.0, 1.0], 1)
    assert compute("top_1_accuracy", [np.array([1, 0])]).value == 1.0
    with pytest.raises(ValueError, match="no reference answers"):
        compute("exact_match", ["a"], [np.array([])])


def test_mappings_join_by_id():
    score = compute("exact_match", {7: "a", "8": "b"}, {"7": ["a"], 8: "b", "9": ["c"]})
    assert (score.value, score.n, score.n_missing) == (2 / 3, 3, 1)
    with pytest.raises(ValueError, match=r"unknown id '10' \(1 such\)"):
        compute("exact_match", {"10": "a"}, {"7": ["a"]})
    with pytest.raises(ValueError, match="twice, as an integer and as a text"):
        compute("exact_match", {7: "a", "7": "b"}, {"7": ["a"]})


def test_unknown_names_and_options():
    with pytest.raises(ValueError, match="unknown metric 'exact'; metrics: exact_match, f1"):
        compute("exact", ["a"], [["a"]])
    with pytest.raises(ValueError, match="metric f1 does not take the options {'lowercase': True}"):
        compute("f1", ["a"], [["a"]], lowercase=True)


def test_means_are_exact_sums_rounded_once():
    predictions = ["a b c d e f g"] * 10_000
    references = [["a"] if i % 3 else ["a b c"] for i in range(10_000)]
    score = compute("f1", predictions, references)
    assert score.value == math.fsum(score.per_example) / 10_000
    back = compute("f1", predictions[::-1], references[::-1])
    assert back.value == score.value


def test_signatures_say_what_produced_a_number():
    assert compute("bleu1", ["a"], [["a"]]).signature == (
        "bleu1|case:mixed|tok:13a|ngrams:1|smooth:exp|len:closest|like:sacrebleu-2.6.0|v:1"
    )
    assert "spacy-3" in compute("bleu1_msmarco", ["a"], [["a"]]).signature
    assert "rule:drqa-match" in compute("regex_match", ["a"], [["a"]]).signature
