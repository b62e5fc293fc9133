"""`eval.run` from its command line, against the same results computed without Beam."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from eval import run as eval_run
from eval.metrics import compute
from rag_core.errors import DataError, UsageError
from rag_core.run_dir import read_manifest
from rag_core.schemas import PER_EXAMPLE_BASE, SUMMARY
from rag_core.stages import read_table


def write_questions(path, n, **columns):
    rows = [
        {
            "question_id": f"q{i}",
            "question": f"{'who what'.split()[i % 2]} is number {i}?",
            "answers": [f"answer {i}"],
        }
        for i in range(n)
    ]
    for name, values in columns.items():
        for row, value in zip(rows, values):
            row[name] = value
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


def score(output, *options):
    assert eval_run.run([*map(str, options), "--output", str(output)]) == 0
    return pd.read_parquet(output / "summary.parquet"), pd.read_parquet(output / "per_example.parquet")


def value(summary, metric, slice_="all", scope="all", run=None, column="value"):
    rows = summary[(summary.metric == metric) & (summary.slice == slice_) & (summary.scope == scope)]
    rows = rows if run is None else rows[rows.run == run]
    assert len(rows) == 1, rows
    return rows.iloc[0][column]


def test_squad_official_figures(shared_data, tmp_path):
    squad = shared_data / "squad"
    predictions = [
        squad / "predictions" / f"{name}.json.gz" for name in ("logistic_regression", "match_lstm_ensemble")
    ]
    summary, rows = score(
        tmp_path / "out", "--questions", squad / "questions.jsonl.gz", "--task", "squad",
        "--predictions", *predictions, "--run", "logistic", "lstm",
    )  # fmt: skip
    printed = {
        (run, metric): f"{100 * value(summary, metric, run=run):.4f}"
        for run in ("logistic", "lstm")
        for metric in ("exact_match", "f1")
    }
    assert printed == {
        ("logistic", "exact_match"): "40.1419",
        ("logistic", "f1"): "50.9815",
        ("lstm", "exact_match"): "67.6348",
        ("lstm", "f1"): "76.7556",
    }
    assert value(summary, "f1", run="logistic", column="n_missing") == 13
    assert value(summary, "f1", run="logistic", column="n") == 10570
    assert value(summary, "f1", run="logistic", scope="answered", column="n") == 10557
    assert (rows[rows.run == "logistic"].status == "missing").sum() == 13
    assert read_manifest(str(tmp_path / "out"))["runs"]["logistic"]["predictions"]["missing"] == 13


def test_fever_official_figures(shared_data, tmp_path):
    """fever-scorer prints F1 as 2PR / (P + R) = 0.16889705 of its own P and R."""
    fever = shared_data / "fever"
    summary, _ = score(
        tmp_path / "out", "--questions", fever / "fever_paper_dev.jsonl.gz", "--task", "fever3",
        "--predictions", fever / "predictions.jsonl.gz",
    )  # fmt: skip
    printed = {
        name: f"{value(summary, f'fever_{name}'):.6f}"
        for name in ("score", "accuracy", "precision", "recall")
    }
    assert printed == {
        "score": "0.325733",
        "accuracy": "0.520852",
        "precision": "0.104380",
        "recall": "0.442244",
    }
    assert value(summary, "fever_f1") == pytest.approx(0.168897, abs=1.5e-6)


@pytest.fixture
def small(tmp_path, write_predictions):
    """40 questions of which some are answered wrongly, failed, or not at all."""
    rows = write_questions(tmp_path / "questions.jsonl", 40)
    predictions = []
    for i, row in enumerate(rows[:36]):
        text = row["answers"][0] + " I think" * (i % 2) if i % 3 else "a wrong answer"
        predictions.append({"question_id": row["question_id"], "prediction": text, "log_prob": -i / 8})
    predictions[4] |= {"status": "failed", "prediction": None, "error": "out of memory"}
    predictions[5] |= {"status": "no_passages", "prediction": None}
    return tmp_path, rows, predictions


def test_everything_equals_compute_without_beam(small, write_predictions):
    root, rows, predictions = small
    directory = write_predictions(root / "predictions", predictions, parts=3)
    summary, table = score(
        root / "out", "--questions", root / "questions.jsonl", "--task", "custom", "--predictions", directory,
        "--metrics", "bleu1", "rouge_l", "distinct_trigrams",
    )  # fmt: skip
    given = {p["question_id"]: p["prediction"] for p in predictions}
    gold = {row["question_id"]: row["answers"] for row in rows}
    for metric in ("exact_match", "f1", "bleu1", "rouge_l"):
        expected = compute(metric, given, gold)
        assert value(summary, metric) == expected.value
        assert value(summary, metric, column="signature") == expected.signature
        assert value(summary, metric, column="n_missing") == expected.n_missing == 6
        assert dict(zip(table.question_id, table[metric])) == dict(zip(gold, expected.per_example))
        answered = {k: v for k, v in given.items() if v is not None}
        alone = compute(metric, answered, {k: gold[k] for k in answered})
        assert value(summary, metric, scope="answered") == alone.value
        assert value(summary, metric, scope="answered", column="n") == 34
    assert value(summary, "distinct_trigrams") == compute("distinct_trigrams", list(given.values())).value
    finite = [p["log_prob"] for p in predictions if p["prediction"] is not None]
    assert value(summary, "mean_log_prob") == pytest.approx(math.fsum(finite) / 34)
    assert value(summary, "mean_log_prob", column="n_missing") == 6
    counts = read_manifest(str(root / "out"))["runs"]["out"]["predictions"]
    assert {k: counts[k] for k in ("ok", "missing", "failed", "no_passages")} == {
        "ok": 34, "missing": 4, "failed": 1, "no_passages": 1,
    }  # fmt: skip
    assert list(table.status.value_counts().sort_index().items()) == [
        ("failed", 1), ("missing", 4), ("no_passages", 1), ("ok", 34),
    ]  # fmt: skip


def test_files_have_the_declared_schemas_and_are_a_finished_run(small, write_predictions):
    root, _, predictions = small
    directory = write_predictions(root / "predictions", predictions)
    argv = [
        "--questions",
        root / "questions.jsonl",
        "--task",
        "custom",
        "--predictions",
        directory,
        "--run",
        "mine",
    ]
    summary, _ = score(root / "out", *argv)
    assert pq.read_schema(root / "out" / "summary.parquet").equals(SUMMARY)
    schema = pq.read_schema(root / "out" / "per_example.parquet")
    assert [schema.field(f.name) for f in PER_EXAMPLE_BASE] == list(PER_EXAMPLE_BASE)
    assert schema.names[len(PER_EXAMPLE_BASE) :] == ["exact_match", "f1", "mean_log_prob"]
    assert set(summary.run) == {"mine"} and set(summary.task) == {"custom"}
    assert read_table(str(root / "out")).num_rows == 40
    before = (root / "out" / "_manifest.json").read_bytes()
    score(root / "out", *argv)
    assert (root / "out" / "_manifest.json").read_bytes() == before, "a finished run is kept"
    with pytest.raises(UsageError, match="other inputs, models or options"):
        eval_run.run([*map(str, argv), "--seed", "3", "--output", str(root / "out")])
    score(root / "out", *argv, "--seed", "3", "--overwrite")


def test_order_of_the_input_and_number_of_workers_change_nothing(tmp_path, write_predictions, monkeypatch):
    monkeypatch.setattr(eval_run, "ROWS_PER_PART", 16)
    rows = write_questions(tmp_path / "questions.jsonl", 100)
    texts = [
        {"question_id": r["question_id"], "prediction": f"answer {i} of {i % 7}"} for i, r in enumerate(rows)
    ]
    options = ("--task", "custom", "--metrics", "bleu4", "distinct_trigrams", "--run", "r", "--questions")
    first = score(
        tmp_path / "a",
        "--predictions",
        write_predictions(tmp_path / "p1", texts),
        *options,
        tmp_path / "questions.jsonl",
    )
    random.Random(0).shuffle(texts)
    random.Random(1).shuffle(rows)
    (tmp_path / "shuffled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    second = score(
        tmp_path / "b", "--predictions", write_predictions(tmp_path / "p2", texts, parts=5), *options,
        tmp_path / "shuffled.jsonl", "--direct_num_workers=2", "--direct_running_mode=multi_processing",
    )  # fmt: skip
    for one, other in zip(first, second):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    digests = [read_manifest(str(tmp_path / name))["content_digest"] for name in "ab"]
    assert digests[0] == digests[1]
    monkeypatch.setattr(eval_run, "ROWS_PER_PART", 4096)
    whole, _ = score(tmp_path / "c", "--predictions", tmp_path / "p1", *options, tmp_path / "questions.jsonl")
    pd.testing.assert_frame_equal(whole, first[0], check_exact=True)


def test_retrieved_runs_by_answer_by_gold_passage_and_by_gold_page(tmp_path, write_retrieved, write_passages):
    ids = [(page, part) for page in range(30) for part in range(2)]
    passages = [(f"{p}:{o}", f"Page {p}", f"text {o} of {p} says answer {p} {o}") for p, o in ids]
    corpus = write_passages(tmp_path / "passages", passages)
    gold = {
        "a": ("answer 3 1", "3:1", "3"),
        "b": ("answer 4 0", "4:0", "Page_4"),
        "c": ("nothing", "99:0", "99"),
    }
    rows = [
        {"question_id": k, "question": "q?", "answers": [a], "gold_passages": [passage], "gold_pages": [page]}
        for k, (a, passage, page) in gold.items()
    ]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = {"a": ["3:0", "3:1", "5:0"], "b": ["4:1", "6:0", "7:0", "8:0", "9:0", "4:0"]}
    retrieved = write_retrieved(
        tmp_path / "retrieved",
        [
            {
                "question_id": k,
                "passage_ids": v,
                "doc_scores": [float(-i) for i in range(len(v))],
                "log_partition": 1.0,
            }
            for k, v in found.items()
        ],
    )
    options = ("--questions", tmp_path / "q.jsonl", "--task", "custom", "--retrieved", retrieved)
    summary, table = score(tmp_path / "out", *options, "--passages", corpus)
    expected = {
        "top_1_accuracy": 0, "top_5_accuracy": 1 / 3,
        "top_1_gold_passage": 0, "top_5_gold_passage": 1 / 3,
        "top_1_gold_page": 2 / 3, "top_5_gold_page": 2 / 3,
        "mrr": (1 / 2 + 1 / 6) / 3, "r_precision": 0, "recall_at_1": 0, "recall_at_5": 1 / 3,
    }  # fmt: skip
    for metric, right in expected.items():
        assert value(summary, metric) == pytest.approx(right), metric
        assert value(summary, metric, column="n_missing") == 1
    assert value(summary, "top_5_accuracy", scope="answered") == 0.5
    assert "top_20_accuracy" not in set(summary.metric), "no k beyond the depth of the run"
    mass = [math.fsum(math.exp(-i - 1.0) for i in range(len(v))) for v in found.values()]
    assert value(summary, "retrieval_mass") == pytest.approx(sum(mass) / 3), "nothing retrieved, no mass"
    assert value(summary, "retrieval_mass", scope="answered") == pytest.approx(sum(mass) / 2)
    assert list(table.status) == ["ok", "ok", "missing"]
    assert table.answer_rank.tolist()[:2] == [2, 6] and math.isnan(table.answer_rank[2])
    manifest = read_manifest(str(tmp_path / "out"))
    assert (manifest["gold_passages_absent"], manifest["gold_pages_absent"]) == (1, 1)
    assert manifest["first_absent"] == ["99:0", "99"]
    by_gold, table = score(tmp_path / "no-texts", *options)
    assert value(by_gold, "top_5_gold_passage") == pytest.approx(1 / 3)
    assert "top_5_accuracy" not in set(by_gold.metric)
    assert table.answer_rank.tolist()[:2] == [2, 6]


def test_exact_match_where_no_passage_holds_the_answer(tmp_path, write_predictions, write_passages):
    corpus = write_passages(
        tmp_path / "passages", [("1:0", "T", "here is answer 0"), ("2:0", "T", "nothing")]
    )
    write_questions(tmp_path / "q.jsonl", 4)
    predictions = [
        {"question_id": f"q{i}", "prediction": f"answer {i}" if i < 3 else "no", "passage_ids": [p]}
        for i, p in enumerate(["1:0", "2:0", "2:0", "2:0"])
    ]
    summary, table = score(
        tmp_path / "out", "--questions", tmp_path / "q.jsonl", "--task", "custom", "--passages", corpus,
        "--predictions", write_predictions(tmp_path / "p", predictions),
    )  # fmt: skip
    assert value(summary, "exact_match", "answer_in_passages=yes") == 1.0
    assert value(summary, "exact_match", "answer_in_passages=no") == pytest.approx(2 / 3)
    assert value(summary, "exact_match", "answer_rank=1", column="n") == 1
    assert value(summary, "exact_match", "answer_rank=none", column="n") == 3
    assert value(summary, "exact_match", "question_word=who") == 1.0
    assert value(summary, "top_1_accuracy") == 0.25


def test_own_columns_and_answer_kinds_are_slices(tmp_path):
    kinds = ["text", "regex"] * 5
    write_questions(tmp_path / "q.jsonl", 10, answer_kind=kinds, topic=["art", None] * 4 + ["war"] * 2)
    given = {f"q{i}": f"the answer {i}" for i in range(10)}
    (tmp_path / "p.json").write_text(json.dumps(given))
    options = ("--questions", tmp_path / "q.jsonl", "--task", "custom", "--predictions", tmp_path / "p.json")
    summary, table = score(tmp_path / "out", *options, "--slice-by", "topic")
    assert value(summary, "exact_match", column="n") == 5, "regex answers are not scored by exact match"
    assert value(summary, "exact_match") == 1.0
    assert (value(summary, "regex_match"), value(summary, "regex_search")) == (0.0, 1.0)
    assert value(summary, "exact_match", "topic=art", column="n") == 4
    assert value(summary, "regex_search", "answer_kind=regex", column="n") == 5
    assert table.exact_match.isna().sum() == 5
    with pytest.raises(UsageError, match="--slice-by theme: no such column"):
        score(tmp_path / "x", *options, "--slice-by", "theme")


def test_what_does_not_fit_is_counted_and_shown(tmp_path, capsys):
    write_questions(tmp_path / "q.jsonl", 4)
    rows = [
        {"id": "q0", "prediction": "answer 0"},
        {"id": "q0", "prediction": "answer 0"},
        {"id": "q1", "prediction": "answer 1"},
        {"id": "q1", "prediction": "another answer"},
        {"id": "q2", "prediction": None},
        {"id": "q9", "prediction": "whose?"},
    ]
    for name, order in (("one", rows), ("two", rows[::-1])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in order))
        summary, table = score(
            tmp_path / name, "--questions", tmp_path / "q.jsonl", "--task", "custom",
            "--predictions", tmp_path / f"{name}.jsonl",
        )  # fmt: skip
        assert list(table.status) == ["ok", "failed", "failed", "missing"]
        assert value(summary, "exact_match") == 0.25
        assert value(summary, "exact_match", column="n_missing") == 3
        counts = read_manifest(str(tmp_path / name))["runs"][name]["predictions"]
        assert (counts["duplicate"], counts["contradicted"], counts["unknown"], counts["missing"]) == (
            2,
            1,
            1,
            1,
        )
        assert counts["unknown_ids"] == ["q9"]
        assert "1 contradicted, 2 duplicate, 2 failed, 1 missing, 1 unknown" in capsys.readouterr().out


def test_refusals(tmp_path):
    write_questions(tmp_path / "q.jsonl", 2)
    (tmp_path / "p.json").write_text('{"q0": "x"}')
    (tmp_path / "other.json").write_text('{"z": "x"}')
    (tmp_path / "empty.jsonl").write_text("")
    questions = ("--questions", tmp_path / "q.jsonl", "--task", "custom")
    ours = (*questions, "--predictions", tmp_path / "p.json")
    empty = ("--questions", tmp_path / "empty.jsonl", "--task", "custom", *ours[4:])
    cases = [
        (UsageError, "nothing to score", questions),
        (UsageError, "--run: 1 different names", (*ours, "--run", "a", "b")),
        (DataError, "none of its 1 predictions", (*questions, "--predictions", tmp_path / "other.json")),
        (DataError, "the file is empty", (*questions, "--predictions", tmp_path / "empty.jsonl")),
        (DataError, "no questions of task custom", empty),
        (FileNotFoundError, "nowhere", (*questions, "--predictions", tmp_path / "nowhere")),
        (DataError, "not a run directory", (*questions, "--predictions", tmp_path)),
        (UsageError, "unknown metric 'bleu'", (*ours, "--metrics", "bleu")),
    ]
    for error, message, argv in cases:
        with pytest.raises(error, match=message):
            score(tmp_path / "out", *argv)
        assert not (tmp_path / "out" / "per_example.parquet").exists()
    with pytest.raises(UsageError, match="nothing was deleted"):
        score(tmp_path, *questions, "--predictions", tmp_path / "p.json")


def test_intervals_hold_their_value(small, write_predictions):
    root, _, predictions = small
    summary, _ = score(
        root / "out", "--questions", root / "questions.jsonl", "--task", "custom",
        "--predictions", write_predictions(root / "predictions", predictions),
        "--metrics", "bleu1", "distinct_trigrams",
    )  # fmt: skip
    defined = summary[summary.value.notna()]
    assert (defined.ci_low <= defined.value + 1e-12).all() and (
        defined.value <= defined.ci_high + 1e-12
    ).all()
    assert np.isfinite(defined[["ci_low", "ci_high"]]).all().all()


def test_numbers_that_cannot_be_name_their_question(tmp_path, write_retrieved):
    write_questions(tmp_path / "q.jsonl", 3)
    questions = ("--questions", tmp_path / "q.jsonl", "--task", "custom")
    rows = [
        {"id": f"q{i}", "prediction": "x", "log_prob": p} for i, p in enumerate([-1.0, -math.inf, math.nan])
    ]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary, table = score(tmp_path / "out", *questions, "--predictions", tmp_path / "p.jsonl")
    assert value(summary, "mean_log_prob") == -math.inf
    assert value(summary, "mean_log_prob", column="n") == 2
    assert value(summary, "mean_log_prob", column="n_missing") == 1
    assert table.mean_log_prob.tolist()[:2] == [-1.0, -math.inf]
    for bad, message in (
        ("x", "record 2: log_prob: 'x': expected a number"),
        (math.inf, "question 'q1': mean_log_prob: inf: not a log-prob"),
    ):
        rows[1]["log_prob"] = bad
        (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        with pytest.raises(DataError, match=message):
            score(tmp_path / "bad", *questions, "--predictions", tmp_path / "p.jsonl", "--overwrite")
    found = [{"question_id": "q2", "passage_ids": ["a"], "doc_scores": [3.0], "log_partition": 1.0}]
    retrieved = write_retrieved(tmp_path / "r", found)
    with pytest.raises(DataError, match="question 'q2': retrieval_mass: retrieval mass 7.389.* must lie in"):
        score(tmp_path / "mass", *questions, "--retrieved", retrieved)


def test_claims_of_fever_are_held_against_titles_of_pages(tmp_path, write_retrieved, write_passages):
    """Passages have numbers for pages and plain titles, gold has FEVER's spelling; unverifiable claims have
    no page, and take no part."""
    titles = ["Lake Tana", "Beyonc\u00e9 (album)", "Nile", "Ethiopia", "Paris"]
    corpus = write_passages(
        tmp_path / "passages", [(f"{n}:{o}", t, "text") for n, t in enumerate(titles) for o in (0, 1)]
    )
    claims = [
        ("SUPPORTS", [["Beyonce\u0301_-LRB-album-RRB-"]], ["4:0", "1:1", "1:0"]),
        ("REFUTES", [["Nile", "Ethiopia"], ["Lake_Tana"]], ["2:0", "2:1", "3:1", "0:0"]),
        ("NOT ENOUGH INFO", [[None]], ["0:0", "1:0"]),
        ("SUPPORTS", [["Paris"]], None),
    ]
    rows = [
        {
            "id": n,
            "claim": f"claim {n}",
            "label": label,
            "evidence": [[[0, 0, p, p and 0] for p in g] for g in groups],
        }
        for n, (label, groups, _) in enumerate(claims)
    ]
    (tmp_path / "f.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = [
        {"question_id": str(n), "passage_ids": ids, "doc_scores": [float(-i) for i in range(len(ids))]}
        for n, (_, _, ids) in enumerate(claims)
        if ids
    ]
    options = ("--questions", tmp_path / "f.jsonl", "--task", "fever3", "--passages", corpus)
    summary, table = score(
        tmp_path / "out", *options, "--retrieved", write_retrieved(tmp_path / "retrieved", found)
    )
    expected = {
        "top_1_gold_page": 1 / 3, "mrr": (1 / 2 + 1) / 3, "r_precision": 1 / 3, "recall_at_1": 1 / 2 / 3,
    }  # fmt: skip
    for metric, right in expected.items():
        assert value(summary, metric) == pytest.approx(right), metric
        assert (value(summary, metric, column="n"), value(summary, metric, column="n_missing")) == (3, 1)
    assert table.mrr[2] is None or math.isnan(table.mrr[2])
    assert value(summary, "mrr", slice_="answer_in_passages=yes", column="n") == 2
    assert "answer_in_passages=no" not in set(summary.slice), "no gold, no statement"
