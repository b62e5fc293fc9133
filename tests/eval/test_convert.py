"""Other tools' formats, there and back."""

import json

import pytest

from eval import convert
from eval._predictions import read_predictions, read_retrieved
from rag_core.errors import DataError, UsageError

FOUND = {"a": (["1:0", "2:1"], [2.5, 0.1]), "b": (["2:1"], [-1.0]), "c": ([], [])}


@pytest.fixture
def retrieved(tmp_path, write_retrieved):
    rows = [
        {"question_id": q, "passage_ids": ids, "doc_scores": scores} for q, (ids, scores) in FOUND.items()
    ]
    return write_retrieved(tmp_path / "retrieved", rows)


def run(command, output, **options):
    argv = [command, "--output", str(output)]
    for name, value in options.items():
        argv += [f"--{name}", str(value)]
    assert convert.main(argv) == 0
    return output


def test_trec_there_and_back(tmp_path, retrieved):
    trec = run("to-trec", tmp_path / "run.trec", retrieved=retrieved)
    lines = trec.read_text().splitlines()
    assert "a Q0 1:0 1 2.5 ragline" in lines and len(lines) == 3
    trec.write_text("\n".join(reversed(lines)))
    back = read_retrieved(str(run("from-trec", tmp_path / "back.parquet", input=trec))).to_pylist()
    assert {row["question_id"]: row["passage_ids"] for row in back} == {q: FOUND[q][0] for q in "ab"}
    assert back[0]["log_partition"] is None
    trec.write_text("a Q0 1:0 1\n")
    with pytest.raises(DataError, match="line 1: expected qid Q0 passage rank score tag"):
        run("from-trec", tmp_path / "x", input=trec)
    with pytest.raises(UsageError, match="exists; name a new file"):
        run("from-trec", tmp_path / "back.parquet", input=trec)


def test_a_fused_run_keeps_its_own_order(tmp_path, write_retrieved):
    rows = [
        {"question_id": "a", "passage_ids": ["x", "y", "z"], "doc_scores": [1.0, 3.0, 2.0]},
        {"question_id": "b", "passage_ids": ["y", "x"], "doc_scores": [2.0, 1.0]},
    ]
    trec = run("to-trec", tmp_path / "run", retrieved=write_retrieved(tmp_path / "fused", rows))
    assert trec.read_text().splitlines()[1] == "a Q0 y 2 0.5 ragline"
    back = read_retrieved(str(run("from-trec", tmp_path / "back", input=trec))).to_pylist()
    assert [row["passage_ids"] for row in back] == [["x", "y", "z"], ["y", "x"]]


def test_passages_as_psgs(tmp_path, write_passages):
    corpus = write_passages(tmp_path / "passages", [("1:0", "T", 'a "quoted\ttext'), ("2:1", "U", "b")])
    psgs = run("to-psgs", tmp_path / "psgs.tsv", passages=corpus)
    assert psgs.read_text() == 'id\ttext\ttitle\n1:0\ta "quoted text\tT\n2:1\tb\tU\n'


def test_equal_scores_are_ordered_by_id(tmp_path):
    (tmp_path / "run").write_text("q Q0 b 1 1.0 t\nq Q0 a 2 1.0 t\nq Q0 c 3 2.0 t\n")
    (row,) = read_retrieved(str(run("from-trec", tmp_path / "o", input=tmp_path / "run"))).to_pylist()
    assert row["passage_ids"] == ["c", "a", "b"]


def test_dpr_there_and_back(tmp_path, retrieved, write_passages):
    corpus = write_passages(
        tmp_path / "passages", [("1:0", "T", "the answer is here"), ("2:1", "U", "nothing")]
    )
    rows = [{"question_id": q, "question": f"{q}?", "answers": ["answer"]} for q in FOUND]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {
        "retrieved": retrieved,
        "passages": corpus,
        "questions": tmp_path / "q.jsonl",
        "task": "custom",
    }
    output = run("to-dpr", tmp_path / "dpr.json", **options)
    first, second, third = json.loads(output.read_text())
    assert [c["has_answer"] for c in first["ctxs"]] == [True, False] and third["ctxs"] == []
    assert second["ctxs"] == [
        {"id": "2:1", "title": "U", "text": "nothing", "score": -1.0, "has_answer": False}
    ]
    back = read_retrieved(str(run("from-dpr", tmp_path / "back", input=output, task="custom"))).to_pylist()
    assert [row["question_id"] for row in back] == ["custom-1", "custom-2", "custom-3"]
    assert back[0]["passage_ids"] == ["1:0", "2:1"]


def test_predictions_as_kilt_squad_and_tsv(tmp_path, write_predictions):
    rows = [
        {"question_id": "a", "prediction": "x\ty\nz", "passage_ids": ["1:0", "1:1", "2:0"]},
        {"question_id": "b", "prediction": None, "status": "failed"},
    ]
    predictions = write_predictions(tmp_path / "p", rows)
    questions = [{"question_id": q, "question": f"{q}?", "answers": ["x"]} for q in "abc"]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    options = {"predictions": predictions, "questions": tmp_path / "q.jsonl", "task": "custom"}
    kilt = run("to-kilt", tmp_path / "kilt.jsonl", **options).read_text().splitlines()
    pages = [{"wikipedia_id": "1"}, {"wikipedia_id": "2"}]
    assert json.loads(kilt[0])["output"] == [{"answer": "x\ty\nz", "provenance": pages}]
    assert [json.loads(line)["output"][0]["answer"] for line in kilt[1:]] == ["", ""]
    squad = run("to-squad", tmp_path / "squad.json", predictions=predictions)
    assert json.loads(squad.read_text()) == {"a": "x\ty\nz"}
    assert read_predictions(str(squad))["prediction"].to_pylist() == ["x\ty\nz"]
    tsv = run("to-tsv", tmp_path / "p.tsv", predictions=predictions)
    assert tsv.read_text() == "question_id\tprediction\na\tx y z\n"
