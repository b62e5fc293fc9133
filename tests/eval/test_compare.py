"""`eval.compare` from its command line: what passes, what fails, what cannot be compared."""

import json
import random

import pandas as pd
import pytest

from eval import compare
from eval import run as eval_run
from eval.metrics import compute
from rag_core.errors import UsageError
from rag_core.run_dir import NoManifestError


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Runs over 400 questions: right on the first n, with words that change without mattering."""
    root = tmp_path_factory.mktemp("compare")

    def write(name, right, questions=400, answer="answer"):
        rows = [
            {"question_id": f"q{i}", "question": f"who is {i}?", "answers": [f"{answer} {i}"]}
            for i in range(questions)
        ]
        (root / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        given = {
            f"q{i}": f"the {answer} {i}!" if i in right else f"{answer} of {name}" for i in range(questions)
        }
        (root / f"{name}.json").write_text(json.dumps(given))
        argv = [
            "--questions",
            root / f"{name}.jsonl",
            "--task",
            "custom",
            "--predictions",
            root / f"{name}.json",
        ]
        argv += ["--metrics", "bleu1", "--output", root / name]
        assert eval_run.run(list(map(str, argv))) == 0
        return str(root / name)

    return {
        "base": write("base", range(300)),
        "worse": write("worse", range(260)),
        "noise": write("noise", [*range(5, 300), *range(301, 306)]),
        "fewer": write("fewer", range(300), questions=399),
        "reworded": write("reworded", range(300), answer="reply"),
    }


def test_a_run_against_its_own_copy(results, tmp_path, capsys):
    out = tmp_path / "verdict.json"
    assert (
        compare.main(["--baseline", results["base"], "--candidate", results["base"], "--json", str(out)]) == 0
    )
    verdict = json.loads(out.read_text())
    assert verdict["verdict"] == "pass" and verdict["failures"] == []
    for row in verdict["comparisons"]:
        assert (row["p"], row["difference"], row["n_changed"], row["wins"], row["losses"]) == (
            1.0,
            0.0,
            0,
            0,
            0,
        )
        assert (row["ci_low"], row["ci_high"]) == (0.0, 0.0)
    assert capsys.readouterr().out.endswith("verdict: pass\n")


def test_a_worse_run_fails_and_noise_does_not(results, tmp_path):
    paths = [str(tmp_path / name) for name in ("v.json", "v.md", "v.parquet")]
    argv = ["--baseline", results["base"], "--candidate", results["worse"]]
    assert compare.main([*argv, "--json", paths[0], "--markdown", paths[1], "--parquet", paths[2]]) == 10
    verdict = json.loads(open(paths[0]).read())
    first = verdict["comparisons"][0]
    assert (first["metric"], first["primary"], first["test"]) == ("exact_match", True, "exact McNemar")
    assert (first["wins"], first["losses"], first["n"]) == (0, 40, 400)
    assert first["difference"] == pytest.approx(-0.1) and first["p"] == pytest.approx(2**-39)
    tests = {row["metric"]: row["test"] for row in verdict["comparisons"]}
    assert tests == {"exact_match": "exact McNemar", "f1": "sign flip", "bleu1": "approximate randomisation"}
    assert all(row["p"] < 0.001 and row["ci_high"] < 0 for row in verdict["comparisons"])
    assert verdict["failures"] == ["custom: exact_match fell by 0.1000, 0.0000 is allowed"]
    assert "❌ regression" in open(paths[1]).read()
    table = pd.read_parquet(paths[2])
    assert list(table.metric) == ["exact_match", "f1", "bleu1"] and table.losses[0] == 40
    assert compare.main(["--baseline", results["base"], "--candidate", results["noise"]]) == 0
    assert compare.main(["--baseline", results["worse"], "--candidate", results["base"]]) == 0, (
        "better passes"
    )


def test_gates(results, tmp_path, capsys):
    argv = [
        "--baseline",
        results["base"],
        "--candidate",
        results["worse"],
        "--gates",
        str(tmp_path / "g.toml"),
    ]

    def verdict(text):
        (tmp_path / "g.toml").write_text(text)
        return compare.main(argv)

    assert verdict("[task.custom]\nmax_drop = 0.11\n") == 0
    assert verdict("[task.default]\nmax_drop = 0.11\n") == 0
    assert verdict("[task.custom]\nmax_drop = 0.11\nfloor = 0.7\n") == 10
    assert "exact_match is 0.65, below the floor 0.7" in capsys.readouterr().out
    rule = '[[task.custom.slice]]\nslice = "question_word=who"\nmetric = "f1"\nmax_drop = 0.01\n'
    assert verdict("[task.custom]\nmax_drop = 0.2\n" + rule) == 10
    assert verdict('[task.custom]\nprimary = "bleu1"\nmax_drop = 0.5\n') == 0
    for text, message in (
        ("[task.custom]\nmaxdrop = 1\n", "unknown key 'maxdrop'; keys here: primary, max_drop"),
        ('[task.custom]\nmax_drop = "1"\n', "max_drop = '1': expected a number"),
        ("alpha = 2\n", "alpha = 2: must lie between 0 and 1"),
        ("alpha\n", "not valid TOML"),
        ("[[task.custom.slice]]\nmax_drop = 1\n", "a slice rule needs 'slice' and 'metric'"),
        ("[task.nq]\nmax_drop = 0.1\n", "gates for task 'nq', but the results are of custom"),
        ("[task.default]\n[task.kilt]\n", "gates for task 'kilt'"),
        (
            '[[task.custom.slice]]\nslice = "question_word=who"\nmetric = "em"\n',
            "slice rule: metric 'em' is not",
        ),
        (
            '[[task.custom.slice]]\nslice = "question_word=whom"\nmetric = "f1"\n',
            "no question of task custom is in",
        ),
        ('[[task.custom.slice]]\nslice = "topic=art"\nmetric = "f1"\n', "slice 'topic=art': gates know"),
        ("[task.custom]\nmax_drop = nan\n", "max_drop = nan: expected a number"),
        ("[task.custom]\nprimary = 3\n", "primary = 3: expected text"),
        ('allow = "predictions"\n', "allow = 'predictions': expected a list"),
        ("allow = [1]\n", "expected names of settings"),
        ("task = 3\n", "task = 3: expected a table"),
        ("[task]\ncustom = 3\n", "3: expected a table with primary"),
        ("[task.custom]\nslice = 3\n", "slice = 3: expected a list"),
        ('[task.custom]\nprimary = "em"\n', "primary metric 'em' is not in both results"),
    ):
        with pytest.raises(UsageError, match=message):
            verdict(text)


def test_what_cannot_be_compared_says_why(results, tmp_path, capsys):
    for other, message in (
        ("fewer", "questions: 1 only in the baseline, 0 only in the candidate (q399)"),
        ("reworded", "400 questions or references were changed, such as 'q0'"),
    ):
        assert compare.main(["--baseline", results["base"], "--candidate", results[other]]) == 11
        assert message in capsys.readouterr().out
    with pytest.raises(NoManifestError):
        compare.main(["--baseline", results["base"], "--candidate", str(tmp_path)])
    with pytest.raises(FileNotFoundError):
        compare.main(["--baseline", results["base"], "--candidate", str(tmp_path / "nowhere")])
    with pytest.raises(UsageError, match="no run 'x' .runs: base."):
        compare.main(["--baseline", results["base"], "--candidate", results["base"] + ":x"])
    with pytest.raises(UsageError, match="2 baselines for 1 candidates"):
        compare.main(["--baseline", results["base"], results["base"], "--candidate", results["base"]])


def test_other_settings_are_refused_unless_allowed(results, monkeypatch, tmp_path, capsys):
    from eval._paired import load_results

    pair = [load_results(results["base"]), load_results(results["base"])]
    pair[0].settings = {"predictions": {"options": {"n_docs": 5, "decoding": {"num_beams": 4}}}}
    pair[1].settings = {"predictions": {"options": {"n_docs": 10, "decoding": {"num_beams": 1}}}}
    gates = compare.Gates(allow=("predictions.options.decoding",))
    with pytest.raises(compare.NotComparable, match="setting predictions.options.n_docs: 5 against 10"):
        compare.compare_runs([tuple(pair)], gates)
    gates = compare.Gates(allow=("predictions.options",))
    assert compare.compare_runs([tuple(pair)], gates)["verdict"] == "pass"


def test_several_tasks_share_the_error_rate(results, tmp_path):
    out = tmp_path / "v.json"
    argv = ["--baseline", results["base"], results["base"], "--candidate", results["worse"], results["noise"]]
    assert compare.main([*argv, "--json", str(out)]) == 10
    primaries = [row for row in json.loads(out.read_text())["comparisons"] if row["primary"]]
    assert [row["p_holm"] for row in primaries] == pytest.approx([2 * 2**-39, 1.0])


def write_results(root, name, task, questions, predictions, *options):
    for file, rows in (("q", questions), ("p", predictions)):
        (root / f"{name}.{file}").write_text("".join(json.dumps(row) + "\n" for row in rows))
    argv = ["--questions", root / f"{name}.q", "--task", task, "--predictions", root / f"{name}.p", *options]
    assert eval_run.run([*map(str, argv), "--output", str(root / name)]) == 0
    return str(root / name)


def verdict_of(root, baseline, candidate):
    out = root / "v.json"
    compare.main(["--baseline", baseline, "--candidate", candidate, "--json", str(out)])
    return {row["metric"]: row for row in json.loads(out.read_text())["comparisons"]}


def holds_its_difference(row):
    assert row["difference"] == pytest.approx(row["candidate"] - row["baseline"], abs=1e-15)
    return row["ci_low"] <= row["difference"] <= row["ci_high"] and row["ci_low"] < row["ci_high"]


def test_distinct_trigrams_are_compared_over_the_whole_set(tmp_path):
    """Each output by itself has no trigram twice: only the set shows that the candidate repeats itself."""
    rng = random.Random(0)
    questions = [{"question_id": f"q{i}", "question": f"{i}?", "answers": ["x"]} for i in range(300)]
    words = [f"w{i}" for i in range(60)]
    texts = {
        "varied": [" ".join(rng.choices(words, k=9)) for _ in questions],
        "dull": [" ".join(rng.choices(words[:6], k=9)) for _ in questions],
    }
    texts["short"] = [text if i % 3 else "no" for i, text in enumerate(texts["varied"])]
    texts["late"] = [*texts["varied"][:-1], "a b c a b c a b c"]
    paths = {}
    for name, given in texts.items():
        rows = [{"id": f"q{i}", "prediction": text} for i, text in enumerate(given)]
        paths[name] = write_results(
            tmp_path, name, "custom", questions, rows, "--metrics", "distinct_trigrams"
        )
    whole = {name: compute("distinct_trigrams", given).value for name, given in texts.items()}
    for other in ("dull", "short", "late"):
        row = verdict_of(tmp_path, paths["varied"], paths[other])["distinct_trigrams"]
        assert (row["baseline"], row["candidate"]) == (whole["varied"], whole[other])
        assert holds_its_difference(row) and row["n"] == 300
        assert row["test"] == "approximate randomisation"
        assert (row["p"] < 0.01 and row["ci_high"] < 0) if other == "dull" else row["p"] > 0.05
    row = verdict_of(tmp_path, paths["dull"], paths["dull"])["distinct_trigrams"]
    assert (row["difference"], row["ci_low"], row["ci_high"], row["p"]) == (0.0, 0.0, 0.0, 1.0)


def test_fever_f1_is_compared_by_its_own_formula(tmp_path):
    gold = [
        {"id": i, "claim": f"{i}", "label": "SUPPORTS", "evidence": [[[0, 0, "A", 0]]]} for i in range(60)
    ]
    runs = {}
    for name, found in (("a", [["A", 0], ["B", 1]]), ("b", [["A", 0], ["B", 1], ["C", 2]])):
        rows = [
            {"id": i, "predicted_label": "SUPPORTS", "predicted_evidence": found if i % 3 else [["D", 0]]}
            for i in range(60)
        ]
        runs[name] = write_results(tmp_path, name, "fever3", gold, rows)
    rows = verdict_of(tmp_path, runs["a"], runs["b"])
    precision, recall = 2 / 3 * 1 / 3, 2 / 3
    assert rows["fever_f1"]["candidate"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert rows["fever_f1"]["test"] == "approximate randomisation"
    assert holds_its_difference(rows["fever_f1"]) and holds_its_difference(rows["fever_precision"])


def test_log_probabilities_of_minus_infinity_and_of_other_questions(tmp_path):
    questions = [{"question_id": f"q{i}", "question": f"{i}?", "answers": ["x"]} for i in range(30)]

    def rows(number):
        return [{"id": f"q{i}", "prediction": "x", "log_prob": number(i)} for i in range(30)]

    base = write_results(tmp_path, "base", "custom", questions, rows(lambda i: -1.0 - i / 7))
    worse = write_results(
        tmp_path, "worse", "custom", questions, rows(lambda i: -float("inf") if i < 20 else -1.0)
    )
    fewer = write_results(
        tmp_path, "fewer", "custom", questions, rows(lambda i: None if i % 2 else -1.5 - i / 7)
    )
    row = verdict_of(tmp_path, base, worse)["mean_log_prob"]
    assert (row["candidate"], row["test"], row["losses"]) == (None, "exact sign test", 20), "JSON has no -inf"
    assert verdict_of(tmp_path, worse, worse)["mean_log_prob"]["p"] == 1.0
    row = verdict_of(tmp_path, base, fewer)["mean_log_prob"]
    assert row["n"] == 15 and row["difference"] == pytest.approx(-0.5), "over what both have"
    assert row["ci_low"] == pytest.approx(-0.5) and row["ci_high"] == pytest.approx(-0.5)


def test_a_slice_s_values_are_those_of_its_rows(tmp_path, write_passages, write_predictions):
    """`answer_in_passages` is the baseline's own split; the candidate's value is over the same questions."""
    corpus = write_passages(tmp_path / "passages", [("1:0", "T", "the answer"), ("2:0", "T", "nothing")])
    questions = [{"question_id": f"q{i}", "question": f"{i}?", "answers": ["the answer"]} for i in range(40)]
    (tmp_path / "q").write_text("".join(json.dumps(row) + "\n" for row in questions))
    runs = {}
    for name, held, right in (("base", 30, 20), ("cand", 10, 5)):
        rows = [
            {"question_id": f"q{i}", "prediction": "the answer" if i < right else "no",
             "passage_ids": ["1:0" if i < held else "2:0"]}
            for i in range(40)
        ]  # fmt: skip
        argv = [
            "--questions",
            tmp_path / "q",
            "--task",
            "custom",
            "--passages",
            corpus,
            "--output",
            tmp_path / name,
        ]
        argv += ["--predictions", write_predictions(tmp_path / f"p-{name}", rows)]
        assert eval_run.run(list(map(str, argv))) == 0
        runs[name] = compare.load_results(str(tmp_path / name))
    row = compare.compare_metric(runs["base"], runs["cand"], "exact_match", "answer_in_passages=yes")
    assert (row.baseline, row.candidate, row.n) == (20 / 30, 5 / 30, 30)
    assert row.ci_low <= row.difference <= row.ci_high
