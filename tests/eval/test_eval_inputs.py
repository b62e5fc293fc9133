"""Inputs of `eval.run` that hold less than the task's metrics need, or something else than was said."""

import json

import pandas as pd
import pytest

from eval import run as eval_run
from rag_core.errors import DataError, UsageError
from rag_core.run_dir import read_manifest


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def score(root, questions, task, predictions, *options, output="out"):
    argv = ["--questions", questions, "--task", task, "--predictions", predictions, *options]
    assert eval_run.run([*map(str, argv), "--output", str(root / output)]) == 0
    summary = pd.read_parquet(root / output / "summary.parquet")
    whole = summary[(summary.slice == "all") & (summary.scope == "all")].set_index("metric")
    return whole, read_manifest(str(root / output))["runs"][output]


@pytest.fixture
def claims(tmp_path):
    group = [[[1, 1, "A", 0]]]
    rows = [
        {"id": 1, "claim": "a", "label": "SUPPORTS", "evidence": group},
        {"id": 2, "claim": "b", "label": "REFUTES", "evidence": group},
        {"id": 3, "claim": "c", "label": "NOT ENOUGH INFO", "evidence": [[[1, None, None, None]]]},
    ]
    labels = [{"id": row["id"], "predicted_label": row["label"]} for row in rows]
    return rows, labels


def test_fever_labels_without_evidence_have_an_accuracy_and_nothing_else(tmp_path, claims, capsys):
    rows, labels = claims
    gold, ours = lines(tmp_path / "q.jsonl", rows), lines(tmp_path / "p.jsonl", labels)
    summary, found = score(tmp_path, gold, "fever3", ours)
    assert summary.value.to_dict() == {"fever_accuracy": 1.0}
    reason = "the predictions hold no predicted_evidence"
    names = ("fever_score", "fever_precision", "fever_recall", "fever_f1")
    assert found["not_computed"] == dict.fromkeys(names, reason)
    assert f"not computed: {', '.join(sorted(names))}: {reason}" in capsys.readouterr().out
    with pytest.raises(UsageError, match=f"--metrics fever_score: {reason}"):
        score(tmp_path, gold, "fever3", ours, "--metrics", "fever_score", output="x")
    bare = lines(tmp_path / "bare.jsonl", [{k: v for k, v in row.items() if k != "evidence"} for row in rows])
    whole = lines(tmp_path / "whole.jsonl", [{**row, "predicted_evidence": [["A", 0]]} for row in labels])
    summary, found = score(tmp_path, bare, "fever3", whole, output="bare")
    assert list(summary.index) == ["fever_accuracy"]
    assert set(found["not_computed"].values()) == {"the questions hold no evidence"}


def test_rows_that_lack_evidence_among_others_that_have_it(tmp_path, claims):
    rows, labels = claims
    gold = lines(tmp_path / "q.jsonl", rows)
    ours = [{**row, "predicted_evidence": [["A", 0]] if row["id"] == 1 else None} for row in labels]
    summary, _ = score(tmp_path, gold, "fever3", lines(tmp_path / "p.jsonl", ours))
    assert summary.value["fever_accuracy"] == 1.0 and summary.n_missing["fever_accuracy"] == 0
    assert (summary.value["fever_precision"], summary.n_missing["fever_precision"]) == (0.5, 1)
    assert summary.value["fever_score"] == pytest.approx(1 / 3) and summary.n_missing["fever_score"] == 2
    del rows[1]["evidence"]
    ours = lines(tmp_path / "p.jsonl", [{**row, "predicted_evidence": []} for row in labels])
    with pytest.raises(DataError, match="question '2': fever_.*: 'evidence' is null"):
        score(tmp_path, lines(tmp_path / "q.jsonl", rows), "fever3", ours, output="x")
    for line in ("0", 0.5, True, 1 << 40):
        bad = [{**row, "predicted_evidence": [["A", line]]} for row in labels]
        with pytest.raises(DataError, match=r"record 1: evidence .*: expected \[page, line\]"):
            score(tmp_path, gold, "fever3", lines(tmp_path / "p.jsonl", bad), output="x")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("kilt_em", "it needs KILT's gold pages, and the questions of task nq here hold none"),
        ("kilt_downstream_f1", "it needs KILT's gold pages"),
        ("fever_accuracy", "it scores answers of kind label; those of task nq here are of kind text"),
        ("fever_score", "it scores answers of kind label"),
        ("regex_match", "it scores answers of kind regex"),
        ("mrr", "it scores rankings against gold"),
        ("recall_at_5", "it scores rankings against gold"),
        ("recall_at_k", "recall_at_k needs its k: write recall_at_5"),
        ("mean_log_prob", "the predictions hold no log_prob"),
        ("retrieval_mass", "no log_partition is known"),
        ("em", "unknown metric 'em'"),
    ],
)
def test_a_metric_that_cannot_be_measured_is_refused_with_the_reason(tmp_path, name, reason):
    gold = lines(tmp_path / "q.jsonl", [{"question": "who?", "answer": ["a"]}])
    ours = lines(tmp_path / "p.jsonl", [{"id": "nq-1", "prediction": "a"}])
    with pytest.raises(UsageError, match=f"--metrics.*{reason}"):
        score(tmp_path, gold, "nq", ours, "--metrics", name)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_a_file_that_changed_is_read_again_in_the_same_process(tmp_path):
    gold = lines(tmp_path / "q.jsonl", [{"question": "who?", "answer": ["a"]}])
    for answer, right in (("a", 1.0), ("b", 0.0)):
        ours = lines(tmp_path / "p.jsonl", [{"id": "nq-1", "prediction": answer}])
        summary, _ = score(tmp_path, gold, "nq", ours, "--overwrite")
        assert summary.value["exact_match"] == right


def test_rows_without_an_answer_or_an_id_are_shown(tmp_path, capsys):
    gold = lines(
        tmp_path / "q.jsonl", [{"id": i, "question": f"{i}?", "answer": ["a"]} for i in ("", 1, 2, 3)]
    )
    rows = [{"id": 1, "answer": "a"}, {"id": 2, "answer": None}, {"id": "", "answer": "a"}]
    summary, found = score(tmp_path, gold, "nq", lines(tmp_path / "p.jsonl", rows))
    assert (summary.value["exact_match"], summary.n_missing["exact_match"]) == (1 / 3, 2)
    counts = {key: found["predictions"][key] for key in ("ok", "failed", "missing", "without_id")}
    assert counts == {"ok": 1, "failed": 1, "missing": 1, "without_id": 1}
    assert read_manifest(str(tmp_path / "out"))["rejected_questions"] == {"empty question id": 1}
    shown = capsys.readouterr().out
    assert (
        "1 failed, 1 missing, 1 without_id" in shown
        and "questions left out: {'empty question id': 1}" in shown
    )


def test_a_file_that_is_not_there(tmp_path, capsys):
    from rag_core.errors import run_command

    gold = lines(tmp_path / "q.jsonl", [{"question": "who?", "answer": ["a"]}])
    argv = ["--questions", str(gold), "--task", "nq", "--output", str(tmp_path / "out")]
    assert run_command(eval_run.run, [*argv, "--predictions", str(tmp_path / "p.json")]) == 2
    assert "p.json: No such file or directory" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
