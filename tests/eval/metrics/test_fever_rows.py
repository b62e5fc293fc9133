"""FEVER's rows without evidence, or with evidence of another shape: never a score of 1 by accident."""

import numpy as np
import pytest

from eval.metrics import compute

EVIDENCE = ("fever_score", "fever_precision", "fever_recall", "fever_f1")
GOLD = {"label": "SUPPORTS", "evidence": [[[None, None, "A", 0]]]}
OURS = {"predicted_label": "SUPPORTS", "predicted_evidence": [["A", 0]]}


@pytest.mark.parametrize("name", EVIDENCE)
@pytest.mark.parametrize(
    ("ours", "gold", "message"),
    [
        ({"predicted_label": "SUPPORTS"}, GOLD, r"no 'predicted_evidence' \(found predicted_label\)"),
        ({**OURS, "predicted_evidence": None}, GOLD, "'predicted_evidence' is null"),
        ({**OURS, "predicted_evidence": "A"}, GOLD, "predicted evidence 'A': expected a list"),
        ({**OURS, "predicted_evidence": [["A", "0"]]}, GOLD, r"\['A', '0'\]: expected \[page, line\]"),
        ({**OURS, "predicted_evidence": [["A", 0.0]]}, GOLD, r"\['A', 0.0\]: expected \[page, line\]"),
        ({**OURS, "predicted_evidence": [["A", True]]}, GOLD, r"\['A', True\]: expected \[page, line\]"),
        ({**OURS, "predicted_evidence": [["A", 0, 1]]}, GOLD, r"expected \[page, line\]"),
        ({**OURS, "predicted_evidence": [None]}, GOLD, r"None: expected \[page, line\]"),
        ("SUPPORTS", GOLD, "'SUPPORTS': expected a row of FEVER's files with 'predicted_evidence'"),
        (["A", 0], GOLD, "expected a row of FEVER's files"),
        (OURS, {"label": "SUPPORTS"}, r"no 'evidence' \(found label\)"),
        (OURS, {**GOLD, "evidence": None}, "'evidence' is null"),
        (OURS, {**GOLD, "evidence": [[[None, None, "A", "0"]]]}, "line an integer or null"),
        (OURS, {**GOLD, "evidence": [["A", 0]]}, r"expected \[annotation, id, page, line\]"),
        (OURS, {**GOLD, "evidence": 3}, "evidence 3: expected a list"),
        (OURS, {"evidence": []}, r"no 'label' \(found evidence\)"),
        (OURS, {**GOLD, "label": 1}, "label 1: expected text"),
        (OURS, "SUPPORTS", "expected a row of FEVER's files with 'evidence'"),
    ],
)  # fmt: skip
def test_no_evidence_and_no_line_are_errors(name, ours, gold, message):
    with pytest.raises(ValueError, match=f"{name}, example 1: .*{message}"):
        compute(name, [OURS, ours], [GOLD, gold])


def test_an_empty_list_is_an_answer_and_labels_need_no_evidence():
    nothing = [{"predicted_label": "SUPPORTS", "predicted_evidence": []}]
    assert compute("fever_precision", nothing, [GOLD]).value == 1.0, "the official rule"
    assert compute("fever_recall", nothing, [GOLD]).value == 0.0
    assert compute("fever_accuracy", [{"predicted_label": "supports"}], [{"label": "SUPPORTS"}]).value == 1.0
    with pytest.raises(ValueError, match="max_evidence=0: must be at least 1"):
        compute("fever_score", nothing, [GOLD], max_evidence=0)


def test_rows_as_pandas_gives_them_back():
    pair = np.empty(2, object)
    pair[:] = ["A", np.int64(0)]
    sentences = np.empty(1, object)
    sentences[0] = pair
    ours = {"predicted_label": "SUPPORTS", "predicted_evidence": sentences}
    assert [compute(name, [ours], [GOLD]).value for name in EVIDENCE] == [1.0] * 4
