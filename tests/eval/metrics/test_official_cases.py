"""Every metric against its official scorer's values, on the shared cases and on inputs of their kinds."""

import json
import math

import numpy as np
import pytest

from eval.metrics import METRICS, compute, get_metric


def rows(directory, name):
    text = (directory / f"metric_{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def agrees(found, expected, tolerance=1e-6):
    if expected is None or found is None:
        return expected is found is None
    return math.isclose(found, expected, abs_tol=tolerance)


def test_exact_match_and_f1(shared_cases):
    for name, file in (("exact_match", "em"), ("f1", "f1")):
        for case in rows(shared_cases, file):
            prediction = math.nan if case["prediction"] == "__FLOAT_NAN__" else case["prediction"]
            if not case["references"]:
                with pytest.raises(ValueError, match="example 0: no reference answers"):
                    compute(name, [prediction], [case["references"]])
                continue
            score = compute(name, [prediction], [case["references"]])
            if isinstance(case["expected"], str):  # None and NaN: missing, and wrong
                assert (score.value, score.n, score.n_missing) == (0.0, 1, 1), case
            else:
                assert agrees(score.value, case["expected"], 1e-9), case


def test_curatedtrec_rules(shared_cases):
    for case in rows(shared_cases, "curatedtrec_regex"):
        one = [case["prediction"]], [[case["reference"]]]
        assert compute("regex_match", *one).value == case["expected"], case
        assert compute("regex_search", *one).value == case["dpr_search"], case


def test_top_k_accuracy(shared_cases):
    for case in rows(shared_cases, "topk_accuracy"):
        score = compute("top_k_accuracy", case["hits"])
        assert list(score.details.values()) == pytest.approx(case["expected"], abs=1e-12), case
        for k, expected in enumerate(case["expected"], 1):
            assert agrees(compute(f"top_{k}_accuracy", case["hits"]).value, expected)
            assert agrees(compute("top_k_accuracy", case["hits"], k=k).value, expected)
    assert compute("top_5_accuracy", [["a", "b"], ["c"]], [["b"], ["x", "y"]]).per_example == [1.0, 0.0]


def test_msmarco_segments_and_corpora(shared_cases):
    for case in rows(shared_cases, "msmarco_bleu1_rougel"):
        one = [case["prediction"]], [case["references"]]
        assert agrees(compute("bleu1_msmarco", *one).value, case["expected"]["bleu_1"]), case
        assert agrees(compute("rouge_l_msmarco", *one).value, case["expected"]["rouge_l"]), case
        assert agrees(compute("bleu1", *one, lowercase=True).value, case["sacrebleu_bleu1_lower_13a"]), case
        assert agrees(compute("rouge_l", *one).value, case["rouge_score_rougeL_f1"]), case
        pltrdy = case["pltrdy_rouge_l_f"]
        assert agrees(compute("rouge_l_kilt", *one).value, 0.0 if isinstance(pltrdy, str) else pltrdy), case
    for case in rows(shared_cases, "msmarco_corpus"):
        for ours, theirs in (("bleu1_msmarco", "bleu_1"), ("rouge_l_msmarco", "rouge_l")):
            score = compute(ours, case["predictions"], case["references"])
            assert agrees(score.value, case["expected"][theirs]), case
            assert score.per_example == pytest.approx(case["per_segment"][theirs], abs=1e-6), case


def test_msmarco_files(shared_cases):
    names = {"bleu1_msmarco": "bleu_1", "rouge_l_msmarco": "rouge_l", "msmarco_f1": "F1"}
    for case in rows(shared_cases, "msmarco_file"):
        predictions, references = case["predictions"], case["references"]
        in_lists = [v[0] for v in predictions.values()], [references[key] for key in predictions]
        for ours, theirs in names.items():
            expected = case["expected"]
            expected = 0.0 if isinstance(expected, str) else expected[theirs]  # a division by zero
            assert agrees(compute(ours, predictions, references).value, expected), case
            assert agrees(compute(ours, *in_lists).value, expected), case
    missing = compute("msmarco_f1", {"1": ["x"]}, {"1": ["x"], "2": ["y"], "3": ["No Answer Present."]})
    assert (missing.n, missing.n_missing) == (3, 2)
    assert missing.value == pytest.approx(0.5), "one right; one answerable and one unanswerable are wrong"


@pytest.mark.parametrize("nothing", ([], [None], (), np.array([], object), None))
def test_an_empty_list_of_answers_is_no_answer(nothing):
    """ms_marco_eval.py does not see such a query in the candidate's file: the right answer is not given."""
    for name in ("exact_match", "bleu1_msmarco", "rouge_l_msmarco", "msmarco_f1"):
        score = compute(name, [nothing, np.array(["x y"], object)], [["x y"], ["x y"]])
        assert (score.n, score.n_missing, score.per_example) == (2, 1, [0.0, 1.0]), name
    with pytest.raises(ValueError, match="expected text"):
        compute("exact_match", [["x", "y"]], [["x"]])


def test_msmarco_unanswerable_questions_in_a_list_and_by_id():
    ours, gold = ["no answer here"], [["No Answer Present."]]
    assert compute("rouge_l_msmarco", {"1": ours[0]}, {"1": gold[0]}).value is None
    assert 0 < compute("rouge_l_msmarco", ours, gold).value < 1, "plain texts"
    assert compute("rouge_l_msmarco", ours, gold, unanswerable="drop").value is None
    assert compute("rouge_l_msmarco", {"1": ours[0]}, {"1": gold[0]}, unanswerable="score").value > 0
    for name in ("rouge_l_msmarco", "bleu1_msmarco"):
        with pytest.raises(ValueError, match="unanswerable='keep': use 'drop' or 'score'"):
            compute(name, ours, gold, unanswerable="keep")


def test_a_mark_by_itself_is_what_the_rule_of_squad_makes_of_it():
    from rag_core.answers import normalize_answer

    assert normalize_answer("A\u0300 la carte") == normalize_answer("\u0300 la carte") == "\u0300 la carte"
    assert compute("exact_match", ["A\u0300 la carte"], ["\u0300 la carte"]).value == 1.0, "em-33; DPR: 0"


def test_q_bleu1(shared_cases):
    for case in rows(shared_cases, "qbleu1"):
        for name, key in (("q_bleu1", "expected_squad_tuned"), ("q_bleu1_default", "expected")):
            score = compute(name, case["predictions"], case["references"])
            expected = case[key] if isinstance(case[key], str) else case[key]["q_bleu"]
            assert agrees(score.value, 0.0 if isinstance(expected, str) else expected), case
    assert compute("q_bleu1", ["Is it?"], [["x", "Is it?"]]).value == 1.0, "the best reference counts"


def test_fever(shared_cases):
    names = {
        "fever_score": "fever",
        "fever_accuracy": "label_accuracy",
        "fever_precision": "precision",
        "fever_recall": "recall",
        "fever_f1": "f1",
        "fever_accuracy_2way": "label_accuracy_2way",
    }
    for case in rows(shared_cases, "fever"):
        before = json.dumps(case)
        references = case.get("references", case.get("reference"))
        for ours, theirs in names.items():
            if not case["predictions"]:
                with pytest.raises(ValueError, match="no examples, the value is undefined"):
                    compute(ours, case["predictions"], references)
            elif isinstance(case["expected"], str):
                assert theirs != "f1" or compute(ours, case["predictions"], references).value == 0.0
            elif theirs in case["expected"]:
                found = compute(ours, case["predictions"], references).value
                assert agrees(found, case["expected"][theirs]), case
        assert json.dumps(case) == before, "inputs are never changed"


def test_fever_evidence_limits_in_any_order():
    gold = [{"label": "SUPPORTS", "evidence": [[[None, None, "page1", 1], [None, None, "page2", 2]]]}]
    evidence = [["page1", 1], ["page2", 2], ["page3", 3]]
    ours = [{"predicted_label": "supports", "predicted_evidence": evidence}]
    for limits in ((3, 1, 3), (1, 5), (5, 1)):
        found = [compute("fever_score", ours, gold, max_evidence=limit).value for limit in limits]
        assert found == [float(limit > 1) for limit in limits]
    page = [[[None, None, "Beyonce\u0301_-LRB-album-RRB-", 0]]]
    spelled = {"predicted_label": "SUPPORTS", "predicted_evidence": [["Beyonc\u00e9 (album)", 0]]}
    assert compute("fever_score", [spelled], [{"label": "SUPPORTS", "evidence": page}]).value == 1.0
    unverifiable = {"label": "NOT ENOUGH INFO", "evidence": []}
    two_way = compute(
        "fever_accuracy_2way", ["SUPPORTS", None, "REFUTES"], ["SUPPORTS", "REFUTES", unverifiable]
    )
    assert (two_way.value, two_way.n, two_way.n_missing) == (0.5, 2, 1)
    for bad in (["page1"], [1, 1], ["page1", "1"], "page1"):
        with pytest.raises(ValueError, match=r"predicted evidence .* expected \[page, line\]"):
            compute("fever_score", [{"predicted_label": "x", "predicted_evidence": [bad]}], gold)


def test_fever_labels_are_compared_as_the_scorer_does():
    for label, right in (("supports", 1.0), ("Supports", 1.0), (" SUPPORTS", 0.0), ("SUPPORTS.", 0.0)):
        assert compute("fever_accuracy", [label], ["SUPPORTS"]).value == right
        row = {"predicted_label": label, "predicted_evidence": []}
        unverifiable = {"label": "NOT ENOUGH INFO", "evidence": []}
        assert compute("fever_score", [row], [unverifiable]).value == 0.0


def test_distinct_trigrams(shared_cases):
    for case in rows(shared_cases, "distinct_trigram"):
        score = compute("distinct_trigrams", case["predictions"])
        assert agrees(score.value, case["expected"]["ratio"]), case
        assert score.details == {key: case["expected"][key] for key in ("distinct", "total")}
        lower = compute("distinct_trigrams", case["predictions"], lowercase=True).details
        assert lower == case["expected_lowercased"], case
    assert compute("distinct_trigrams", []).value is None
    assert compute("distinct_trigrams", ["a b c d e", "a b c d e"]).value == 0.5


def test_kilt(shared_cases):
    for case in rows(shared_cases, "kilt"):
        one = [case["prediction"]], [case["gold"]]
        for key, expected in case["expected"]["downstream"].items():
            assert agrees(compute(f"kilt_downstream_{key}", *one).value, expected, 1e-12), case
        for key, expected in case["expected"]["kilt"].items():
            assert agrees(compute(key.lower().replace("-", "_"), *one).value, expected, 1e-12), case
        check_retrieval(*one, case["expected"]["retrieval"])
    for case in rows(shared_cases, "kilt_retrieval"):
        check_retrieval([case["prediction"]], [case["references"]], case["expected"])


def check_retrieval(predictions, references, expected):
    names = {"Rprec": "r_precision", "precision@": "precision_at_", "recall@": "recall_at_",
             "success_rate@": "success_at_"}  # fmt: skip
    for key, value in expected.items():
        ours = next(
            (key.replace(theirs, ours) for theirs, ours in names.items() if key.startswith(theirs)), None
        )
        if ours:
            assert agrees(compute(ours, predictions, references).value, value), (key, predictions)


def test_kilt_answers_that_are_null_or_several():
    gold = [{"output": [{"answer": "None", "provenance": [{"wikipedia_id": "1"}]}]}]
    null = compute("kilt_em", [{"output": [{"answer": None, "provenance": []}]}], gold)
    assert (null.value, null.n_missing) == (0.0, 1), "a null answer is not the text None"
    with pytest.raises(ValueError, match="exactly one output"):
        compute("kilt_em", [{"output": [{"answer": "a"}, {"answer": "b"}]}], gold)


def test_library_edges(shared_cases):
    for case in rows(shared_cases, "bleu_rouge_library_edges"):
        given, call = case["input"], case["call"]
        if call == "sacrebleu.corpus_bleu" and len(given["refs"]) == 1:
            references = [list(stream) for stream in zip(*given["refs"])]
            assert agrees(compute("bleu4", given["hyp"], references).value, case["expected"] / 100), case
            with pytest.raises(ValueError, match="3 predictions but 1 references; .* transpose them"):
                compute("bleu4", given["hyp"], given["refs"])
        elif call == "sacrebleu.corpus_bleu":  # transposed for sacrebleu is right for us: never 100
            assert compute("bleu4", given["hyp"], given["refs"]).value == pytest.approx(0.4589785)
        elif "max_ngram_order=1" in call:
            references = [list(stream) for stream in zip(*given["refs"])]
            assert agrees(compute("bleu1", given["hyp"], references).value, case["expected"] / 100), case
        elif "effective_order" in call:
            assert compute("bleu4", [given["hyp"]], [given["refs"]]).per_example == [1.0]
        elif call.startswith("rouge_score"):
            one = [given["prediction"]], [given["reference"]]
            found = compute("rouge_l", *one, stemmer="stem" in call).value
            assert agrees(found, case["expected"]), case
        else:
            expected = 0.0 if isinstance(case["expected"], str) else case["expected"]
            assert agrees(compute("rouge_l_kilt", [given["hyp"]], [given["ref"]]).value, expected), case


def test_rankings():
    assert compute("mrr", [["x", "g"], ["x"], ["g"]], [["g"]] * 3).per_example == [0.5, 0.0, 1.0]
    assert compute("mrr_at_1", [["x", "g"]], [["g"]]).value == 0.0
    assert compute("recall_at_2", [["a", "x", "b"]], [["a", "b"]]).value == 0.5, "each id of a list counts"
    assert compute("recall_at_2", [["a", "x", "b"]], [[["a", "b"]]]).value == 1.0, "a set counts once, whole"
    assert compute("r_precision", [["a", "x", "b"]], [["a", "b"]]).value == 0.5
    assert compute("r_precision", [["p1", "p9"]], [["p1"]]).value == 1.0, "rank 1 is the best"
    ten, two = {i: [f"g{i}"] for i in range(10)}, {i: [f"g{i}"] for i in range(2)}
    partial = compute("mrr", two, ten)
    assert (partial.value, partial.n, partial.n_missing) == (0.2, 10, 8)
    with pytest.raises(ValueError, match="k=0: must be at least 1"):
        compute("top_0_accuracy", [[1]])
    with pytest.raises(ValueError, match="expected 0/1 hits, found 'a'"):
        compute("top_k_accuracy", [["a"]])


def test_every_metric_names_itself_and_signs():
    for name in METRICS:
        metric = get_metric(
            name, **({"k": 5} if name in ("recall_at_k", "precision_at_k", "success_at_k") else {})
        )
        assert metric.signature.startswith(metric.name + "|") and metric.signature.endswith(
            f"|v:{metric.version}"
        )
        assert metric.__doc__ or type(metric).__module__


@pytest.mark.parametrize(
    "prediction, reference, bleu, rouge",
    [
        ("St Louis", "St. Louis", 0.5, 0.5),
        ("Dr. Smith", "Dr Smith", 0.5, 0.5),
        (" Paris", "Paris", 1.0, 0.709302),
    ],
)
def test_ms_marco_tokenises_before_it_lower_cases(prediction, reference, bleu, rouge):
    assert compute("bleu1_msmarco", [prediction], [[reference]]).value == pytest.approx(bleu)
    assert compute("rouge_l_msmarco", [prediction], [[reference]]).value == pytest.approx(rouge, abs=1e-6)
