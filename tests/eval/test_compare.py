"""`eval.compare` from its command line: what passes, what fails, what cannot be compared."""

import json

import pandas as pd
import pytest

from eval import compare
from eval import run as eval_run
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
