"""Predictions made elsewhere, in every format: joined by id, or by the question's letters and digits."""

import gzip
import json

import pandas as pd
import pytest

from eval import _predictions
from eval._join import join_by_id, question_key
from eval._predictions import read_predictions
from rag_core.errors import DataError
from rag_core.schemas import Question

QUESTIONS = [
    Question("1", "Who, me?", ("x",)),
    Question("2", "who me", ("y",)),
    Question("3", "Why?", ("z",)),
]


def found(path, text):
    path.write_text(text, encoding="utf-8")
    return {row["question_id"]: row for row in read_predictions(str(path)).to_pylist()}


def texts(path, text):
    return {key: row["prediction"] for key, row in found(path, text).items()}


@pytest.mark.parametrize(
    "text",
    [
        '{"1": "a", "2": "b\\nc"}',
        '{\n "1": "a",\n "2": "b\\nc"\n}\n',
        '{"id": 1, "prediction": "a"}\n{"id": "2", "prediction": "b\\nc"}\n',
        '{"question_id": "1", "answer": "a"}\n{"question_id": 2, "answer": "b\\nc"}',
        '[{"qid": 1, "answer": "a"}, {"qid": 2, "answer": "b\\nc"}]',
        '{"query_id": 1, "answers": ["a"]}\n{"query_id": 2, "answers": ["b\\nc"]}',
        '\ufeffid,prediction\n1,a\n2,"b\nc"\n',
        'question\tprediction\tid\nq\ta\t1\nq\t"b\nc"\t2\n',
        '{"id": 1, "output": [{"answer": "a"}]}\n{"id": 2, "output": [{"answer": "b\\nc"}]}',
        '{"id": 1, "predicted_label": "a"}\n{"id": 2, "predicted_label": "b\\nc"}',
    ],
)
def test_every_format_gives_the_same_answers(tmp_path, text):
    assert texts(tmp_path / "p", text) == {"1": "a", "2": "b\nc"}
    (tmp_path / "p.gz").write_bytes(gzip.compress(text.encode()))
    assert len(read_predictions(str(tmp_path / "p.gz"))) == 2


def test_kilt_and_fever_bring_pages_and_evidence(tmp_path):
    pages = [{"wikipedia_id": 7}, {"wikipedia_id": "8"}]
    kilt = found(tmp_path / "k", json.dumps({"id": "a", "output": [{"answer": "x", "provenance": pages}]}))
    assert kilt["a"]["passage_ids"] == ["7", "8"]
    row = {"id": 5, "predicted_label": "SUPPORTS", "predicted_evidence": [["Page", 3]]}
    fever = found(tmp_path / "f", json.dumps(row))
    assert fever["5"]["predicted_evidence"] == [{"page": "Page", "line": 3}]
    with pytest.raises(DataError, match=r"f, record 1: evidence \['Page'\]: expected \[page, line\]"):
        found(tmp_path / "f", json.dumps({**row, "predicted_evidence": [["Page"]]}))


def test_words_that_other_readers_take_for_missing_stay_words(tmp_path):
    words = ["a", "", "nan", "None", "NA", "null"]
    csv = "id,prediction\n" + "".join(f"{i},{word}\n" for i, word in enumerate(words))
    assert list(texts(tmp_path / "p.csv", csv).values()) == words
    lines = "".join(json.dumps({"id": i, "prediction": word}) + "\n" for i, word in enumerate([*words, None]))
    rows = found(tmp_path / "p.jsonl", lines)
    assert [row["prediction"] for row in rows.values()] == [*words, None]
    assert [row["status"] for row in rows.values()] == ["ok"] * 6 + ["failed"]


def test_a_pandas_round_trip(tmp_path):
    frame = pd.DataFrame({"id": [1, 2, 3], "prediction": ["a", None, "c"], "passage_ids": [["x"], [], None]})
    frame.to_parquet(tmp_path / "p.parquet")
    table = read_predictions(str(tmp_path / "p.parquet"))
    assert table["question_id"].to_pylist() == ["1", "2", "3"]
    assert table["prediction"].to_pylist() == ["a", None, "c"]
    assert table["passage_ids"].to_pylist() == [["x"], [], []]
    frame["id"] = [1.0, 2.0, 3.0]  # what a left join makes of integers
    frame.to_parquet(tmp_path / "p.parquet")
    assert read_predictions(str(tmp_path / "p.parquet"))["question_id"].to_pylist() == ["1", "2", "3"]
    frame.to_json(tmp_path / "p.jsonl", orient="records", lines=True)
    assert read_predictions(str(tmp_path / "p.jsonl"))["question_id"].to_pylist() == ["1", "2", "3"]


def test_an_id_given_twice_in_an_object_is_seen(tmp_path):
    (tmp_path / "p").write_text('{"1": "a", "1": "b", "3": "z"}')
    joined = join_by_id("p", read_predictions(str(tmp_path / "p")), QUESTIONS, ("prediction",))
    assert joined.counts["contradicted"] == 1 and joined.contradicted == {"1"}


def test_without_ids_by_letters_and_digits(tmp_path):
    (tmp_path / "p").write_text(
        '{"question": "WHO me!", "prediction": "a"}\n{"question": "x", "prediction": "b"}'
    )
    joined = join_by_id("p", read_predictions(str(tmp_path / "p")), QUESTIONS, ("prediction",))
    assert joined.take(["1", "2", "3"], ["prediction"])["prediction"] == ["a", "a", None]
    assert (joined.counts["unknown"], joined.counts["missing"]) == (1, 1)
    assert question_key("Tōkyō, 1964?") == "tōkyō1964"
    (tmp_path / "p").write_text('{"id": "1", "prediction": "a"}\n{"question": "Why?", "prediction": "b"}')
    with pytest.raises(DataError, match="some records have an id and some have none"):
        join_by_id("p", read_predictions(str(tmp_path / "p")), QUESTIONS, ("prediction",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ('{"id": 1, "prediction": "a"}\n{oops', "p, line 2: not valid JSON"),
        (
            '{"id": 1, "guess": "a"}\n{"id": 2, "guess": "b"}',
            "record 1: no answer .expected one of prediction",
        ),
        ('{"prediction": "a"}\n{"prediction": "b"}', "record 1: neither an id nor a question"),
        (
            '{"id": 1, "prediction": 2.5}\n{"id": 2, "prediction": "a"}',
            "record 1: answer '2.5': expected text",
        ),
        ('{"id": 1, "prediction": true}\n{"id": 2, "prediction": "a"}', "record 1: answer 'True'"),
        (
            '{"id": 1, "answers": ["a", "b"]}\n{"id": 2, "answers": ["a"]}',
            "record 1: answer .* expected text",
        ),
        ("id,prediction\n1,a,b\n", "line 2: 3 columns, the header has 2"),
        ("[1, 2]", "record 1: expected an object, found '1'"),
    ],
)
def test_what_cannot_be_read_is_refused_by_record(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        found(tmp_path / "p", text)


def test_odd_texts_survive(tmp_path):
    odd = ["\u200b", "e\u0301", "\r\n", "😀", "\u2028", "\x00", "x" * 10_000_000]
    rows = [{"id": i, "prediction": text} for i, text in enumerate(odd)]
    read = texts(tmp_path / "p", "".join(json.dumps(row) + "\n" for row in rows))
    assert list(read.values()) == odd
    assert texts(tmp_path / "p", '{"1": "\\ud800x"}') == {"1": "\ufffdx"}, "no file can hold a lone surrogate"


def test_a_quote_that_is_never_closed_swallows_nothing(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text('question_id,prediction\n0,"alice\n1,bob\n2,carol\n')
    with pytest.raises(DataError, match=r"p\.csv, line 2: .*never closed"):
        list(_predictions._csv_rows(str(path), path.read_text()))
    rows = list(_predictions._csv_rows("p.tsv", 'question_id\tprediction\n1\t"bob\n3\t1967\n'))
    assert [row for _, row in rows] == [
        {"question_id": "1", "prediction": '"bob'},
        {"question_id": "3", "prediction": "1967"},
    ]
