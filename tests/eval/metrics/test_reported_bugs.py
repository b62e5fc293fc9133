"""Faults that other evaluation tools have had, each with its input: the right value here."""

import pytest

from eval.metrics import compute
from rag_core.answers import has_answer


@pytest.mark.parametrize(
    ("metric", "predictions", "references", "value"),
    [
        ("bleu4", ["a b c d", "x"], [["a b c d"], [""]], 0.945742),  # bug-02
        ("bleu1", ["Paris"], ["Paris"], 1.0),  # bug-03
        ("bleu4", ["Paris"], ["Paris"], 0.0),
        ("rouge_l", ["पूर्व प्रधानमन्त्री"], ["पूर्व प्रधानमन्त्री"], 1.0),  # bug-05
        ("rouge_l", ["Москва 1812"], ["Москва"], 2 / 3),
        ("rouge_l", ["东京"], ["東京"], 0.0),
        ("rouge_l", ["c d . a b ."], ["a b . c d ."], 0.5),  # bug-07: ROUGE-L, newlines or not
        ("rouge_l", ["c d\na b"], ["a b\nc d"], 0.5),
        ("rouge_l_kilt", ["."], ["cat"], 0.0),  # bug-10
        ("rouge_l", ["."], ["cat"], 0.0),
        ("bleu1", ["It was red. Dogs barked."], ["It was red. It rained."], 5 / 7),  # bug-12
        ("exact_match", ["montreal"], [["montreal", "city of montreal", "montreal canada"]], 1.0),  # bug-15
        ("exact_match", ["alpha", "wrong"], ["alpha", "beta"], 0.5),  # bug-16
        ("rouge_l_msmarco", ["a b"], [["a b c d e f g h"]], 0.360947),  # bug-17
        ("r_precision", [["p1", "p9"]], [["p1"]], 1.0),  # bug-27
        ("r_precision", [["p9", "p1"]], [["p1"]], 0.0),
        ("distinct_trigrams", ["a b c d", "a b c d"], None, 0.5),  # bug-33
        ("distinct_trigrams", ["a b c d e"] * 2, None, 0.5),
        ("exact_match", ["3.14"], ["314"], 1.0),  # bug-34: a known false positive of the rule, pinned
    ],
)
def test_right_values(metric, predictions, references, value):
    assert compute(metric, predictions, references).value == pytest.approx(value, abs=1e-6)


def test_any_hit_in_the_first_k_counts():
    """bug-31"""
    hits = [has_answer(text, ["Paris"]) for text in ("no", "Paris")]
    assert compute("top_2_accuracy", [hits]).value == 1.0
    assert compute("top_1_accuracy", [hits]).value == 0.0


def test_the_mean_is_plain_and_the_same_every_time():
    """bug-06, bug-13, bug-14"""
    values = [compute("mean_log_prob", [0.1, 0.4, 0.9]).value for _ in range(3)]
    assert values == pytest.approx([0.466667] * 3, abs=1e-6) and len(set(values)) == 1
    covered = compute("mean_log_prob", [0.8, None, None])
    assert (covered.value, covered.n, covered.n_missing) == (pytest.approx(0.8), 1, 2)
    recall = compute("recall_at_5", [["a", "b", "x"]], [["a", "b", "c"]])
    assert recall.value == pytest.approx(2 / 3)


def test_a_tie_in_scores_is_not_a_hit_by_itself():
    """bug-35: rankings are lists in a stated order; a gold second of two equal scores is at rank 2."""
    assert compute("top_1_accuracy", [["a", "gold"]], [["gold"]]).value == 0.0
