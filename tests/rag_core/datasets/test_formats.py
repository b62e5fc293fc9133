"""Files told apart by their structure, and tables with csv's quotes or without any."""

import gzip
import json

import pytest

from rag_core.datasets import TASKS, load_questions
from rag_core.errors import DataError


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


QAS = [{"id": "a", "question": "who?", "answers": [{"text": "x"}]}]
OWN = {"question_id": "1", "question": "q", "answers": ["x"], "answer_kind": "text"}
CLUE = {"question": "c", "answer": "X", "air_date": "2004", "show_number": 1}
FORMATS = {
    "SQuAD's own file": ({"data": [{"paragraphs": [{"context": "c", "qas": QAS}]}]}, "squad"),
    "SQuAD in lines": ({"id": "a", "question": "q", "answers": ["x"], "context_id": "1"}, "squad"),
    "FEVER": ({"id": 1, "claim": "c", "label": "SUPPORTS", "evidence": []}, "fever3"),
    "KILT": ({"id": "1", "input": "q", "output": [{"answer": "x"}]}, "kilt"),
    "MS MARCO": ({"query_id": 1, "query": "q", "answers": ["x"]}, "msmarco"),
    "TriviaQA's own file": ({"Data": [{"Question": "q", "Answer": {"Value": "x"}}]}, "triviaqa"),
    "WebQuestions' own": ({"utterance": "q", "targetValue": "(list (description x))"}, "webquestions"),
    "J! Archive's clues": (CLUE, "jeopardy"),
    "questions in the columns": (OWN, "custom"),
    "questions with answers": ({"question": "q", "answer": ["x"]}, "nq"),
    "predictions": ({"question_id": "1", "prediction": "x"}, None),
    "a retrieved run": ({"question_id": "1", "passage_ids": [], "doc_scores": []}, None),
}
TEXTS = {
    "SearchQA's lines": ("snippets ||| clue ||| X\n", "jeopardy"),
    "TREC's four columns": ("12\tfactoid\twho?\tx|y\n", "curatedtrec"),
    "DPR's two columns": ("who?\t['x']\n", "nq"),
    "a table with a header": ('question\tanswers\nwho?\t["x"]\n', "custom"),
}
OPEN = {"nq", "triviaqa", "webquestions", "curatedtrec", "efficientqa"}
SHARED = {
    "questions with answers": OPEN | {"custom"},
    "DPR's two columns": OPEN,
    "FEVER": {"fever2", "fever3"},
    "SQuAD in lines": {"squad", "custom"},
    "J! Archive's clues": {"jeopardy", "custom"},
}


@pytest.mark.parametrize("name", [*FORMATS, *TEXTS])
def test_a_file_of_another_task_is_named_for_what_it_looks_like(tmp_path, name):
    if name in TEXTS:
        text, own = TEXTS[name]
    else:
        row, own = FORMATS[name]
        text = json.dumps(row) + "\n"
    path = write(tmp_path / "file", text)
    if own:
        assert len(load_questions(path, own).questions) == 1
    for task in set(TASKS) - SHARED.get(name, {own}):
        with pytest.raises(DataError, match=rf"file: looks like {name}.*, not like a file of {task}"):
            load_questions(path, task)
        (tmp_path / "zipped").write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
        with pytest.raises(DataError, match=f"zipped: looks like {name}"):
            load_questions(str(tmp_path / "zipped"), task)


@pytest.mark.parametrize(
    ("file", "tasks"),
    [
        ("squad/questions.jsonl.gz", "nq triviaqa kilt msmarco"),
        ("squad/xquad.en.json.gz", "nq custom"),
        ("fever/fever_paper_dev.jsonl.gz", "nq squad"),
        ("questions/trec_curated.test.tsv", "nq"),
        ("questions/nq_open.dev.jsonl", "squad jeopardy fever3"),
        ("squad/predictions/logistic_regression.json.gz", "nq"),
    ],
)
def test_a_shared_file_of_another_task(shared_data, file, tasks):
    for task in tasks.split():
        with pytest.raises(DataError, match=file.split("/")[-1]):
            load_questions(str(shared_data / file), task)


def test_a_quoted_cell_may_hold_line_feeds_and_a_stray_quote_swallows_nothing(tmp_path):
    text = "one\t['a']\n\"two\n\nof \"\"three\"\"\"\t['b']\n\"four\t['c']\nfi\"ve\"\t['d']\nsix\"\t['e']\n"
    for ends in ("\n", "\r\n"):
        path = write(tmp_path / "q.tsv", "")
        (tmp_path / "q.tsv").write_bytes(text.replace("\n", ends).encode())
        loaded = load_questions(path, "nq").questions
        assert [q.question for q in loaded] == ["one", 'two\n\nof "three"', '"four', 'fi"ve"', 'six"']
        assert [q.question_id for q in loaded] == ["nq-1", "nq-2", "nq-5", "nq-6", "nq-7"]
    rows = 'question_id\tquestion\tanswers\na\t"who\nis it?"\t["x"]\nb\twhat?\t"[""y"", ""z""]"\n'
    first, second = load_questions(write(tmp_path / "c.tsv", rows), "custom").questions
    assert (first.question, first.answers) == ("who\nis it?", ("x",))
    assert (second.question_id, second.answers) == ("b", ("y", "z"))
    with pytest.raises(DataError, match="q.tsv, line 2: 1 columns"):
        load_questions(write(tmp_path / "q.tsv", "one\t['a']\ntwo\n"), "nq")
