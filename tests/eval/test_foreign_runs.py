"""Rankings made elsewhere: what is refused, and that queries without a ranking count in the mean."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from eval import convert
from eval import run as eval_run
from rag_core.errors import DataError


def from_trec(tmp_path, text, name="run.parquet"):
    (tmp_path / "run.trec").write_text(text)
    argv = ["from-trec", "--input", str(tmp_path / "run.trec"), "--output", str(tmp_path / name)]
    assert convert.main(argv) == 0
    return str(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 p1\n", "line 1: expected qid Q0 passage rank score tag"),  # MS MARCO's qrels of two columns
        ("q1 0 p1 1\n", "line 1: expected qid Q0 passage rank score tag"),  # TREC's qrels
        ("q1\tp1\t1\n", "line 1: expected qid Q0 passage rank score tag"),  # MS MARCO's runs
        ("q1 Q0 p1 1 2.5 t\nq1 Q0 p2 2 nan t\n", "line 2: score 'nan': expected a finite number"),
        ("q1 Q0 p1 1 inf t\n", "line 1: score 'inf': expected a finite number"),
        ("q1 Q0 p1 1 2.5 t\n\nq1 Q0 p1 2 1.5 t\n", "line 3: passage p1 is there twice for question q1"),
    ],
)
def test_what_is_no_trec_run_is_refused_by_its_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        from_trec(tmp_path, text)


@pytest.mark.parametrize(
    ("contexts", "message"),
    [
        ([{"title": "T"}], "record 1, passage 1: expected id and score"),
        ([{"id": 1, "score": "high"}], "record 1, passage 1: score 'high': expected a finite number"),
        ([{"id": 1, "score": "2.5"}, {"id": "1", "score": 1}], "passage 1 is there twice for question nq-1"),
        ([7], "record 1, passage 1: expected id and score"),
    ],
)
def test_what_is_no_dpr_run_is_refused_by_its_record(tmp_path, contexts, message):
    (tmp_path / "run.json").write_text(json.dumps([{"question": "q", "answers": [], "ctxs": contexts}]))
    paths = ["--input", str(tmp_path / "run.json"), "--output", str(tmp_path / "o")]
    with pytest.raises(DataError, match=message):
        convert.main(["from-dpr", "--task", "nq", *paths])


def test_the_mean_is_over_the_judged_queries_and_the_answered_ones_stand_beside_it(tmp_path):
    """Ten judged queries, two of them answered, perfectly: 0.2 over all, 1.0 over the answered."""
    rows = [
        {"question_id": f"q{i}", "question": f"{i}?", "answers": ["x"], "gold_passages": [f"p{i}"]}
        for i in range(10)
    ]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = from_trec(tmp_path, "q3 Q0 p3 1 2.5 t\nq7 Q0 p7 1 1.5 t\nother Q0 p1 1 1.5 t\n")
    argv = ["--questions", str(tmp_path / "q.jsonl"), "--task", "custom", "--retrieved", run]
    assert eval_run.run([*argv, "--output", str(tmp_path / "out")]) == 0
    summary = pd.read_parquet(tmp_path / "out" / "summary.parquet")
    mrr = summary[(summary.metric == "mrr") & (summary.slice == "all")].set_index("scope")
    assert mrr.value.to_dict() == {"all": 0.2, "answered": 1.0}
    assert (mrr.n["all"], mrr.n_missing["all"], mrr.n["answered"]) == (10, 8, 2)
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    found = manifest["runs"]["out"]["retrieved"]
    assert (found["missing"], found["unknown"], found["unknown_ids"]) == (8, 1, ["other"])
