"""Answer rules against the official scorers' values, and what they do at the edges."""

import json
import math

import pytest

from rag_core import answers


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("The Beatles!", "beatles"),
        ("U.S.A.", "usa"),
        ("an apple a day", "apple day"),
        ("theory", "theory"),
        ("L'A. Confidential", "la confidential"),
        ("  Paris \n", "paris"),
        ("1914–1918", "1914–1918"),
        ("a–b", "–b"),
        ("tab\tthe\u00a0end", "tab end"),
        ("a\x01b a", "\x01b"),
    ],
)
def test_normalize_answer(text, normalized):
    assert answers.normalize_answer(text) == normalized


def test_exact_match_equals_the_cases(shared_cases):
    for case in rows(shared_cases / "metric_em.jsonl"):
        if isinstance(case["expected"], int):
            assert answers.exact_match(case["prediction"], case["references"]) == case["expected"], case
    with pytest.raises(ValueError, match="no reference"):
        answers.exact_match("Paris", [])


def test_f1_equals_the_cases(shared_cases):
    for case in rows(shared_cases / "metric_f1.jsonl"):
        found = answers.f1(case["prediction"], case["references"])
        assert math.isclose(found, case["expected"], abs_tol=1e-9), case


def test_has_answer_equals_the_cases(shared_cases):
    for case in rows(shared_cases / "metric_has_answer.jsonl"):
        assert answers.has_answer(case["text"], case["answers"], case["match_type"]) == case["expected"], case


def test_regex_rules_equal_the_cases(shared_cases):
    for case in rows(shared_cases / "metric_curatedtrec_regex.jsonl"):
        if case["reference"] == "[0-9":
            answers.compile_answer.cache_clear()
            with pytest.warns(UserWarning, match="does not compile"):
                assert not answers.regex_match(case["prediction"], case["reference"])
            continue
        assert answers.regex_match(case["prediction"], case["reference"]) == case["expected"], case
        assert answers.regex_search(case["prediction"], case["reference"]) == case["dpr_search"], case


def test_has_answer_matches_whole_tokens_only():
    assert answers.has_answer("in New  York\u00a0City", ["new york city"])
    assert not answers.has_answer("in New Yorker City", ["new york"])
    assert answers.has_answer("Cafe\u0301", ["caf\u00e9"]), "composed and decomposed are one"
    assert answers.has_answer("born in 1,967", [r"1,?967"], match="regex")
    with pytest.raises(ValueError, match="match='fuzzy'"):
        answers.has_answer("x", ["x"], match="fuzzy")
