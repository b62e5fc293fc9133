"""Predictions made elsewhere, in every format: joined by id, or by the question's letters and digits."""

import gzip
import json
import math

import pandas as pd
import pytest

from eval import _predictions
from eval._join import join_by_id, question_key
from eval._predictions import read_predictions, read_retrieved
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
        (
            '{"id": 1, "output": [{"answer": "a"}, {"answer": "b"}]}\n{"id": 2, "output": []}',
            "record 1: 2 outputs: a KILT prediction has exactly one",
        ),
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
        list(_predictions._table_rows(str(path), path.read_text()))
    rows = list(_predictions._table_rows("p.tsv", 'question_id\tprediction\n1\t"bob\n3\t1967\n'))
    assert [row for _, row in rows] == [
        {"question_id": "1", "prediction": '"bob'},
        {"question_id": "3", "prediction": "1967"},
    ]


def joined_texts(path, rows, questions):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    joined = join_by_id("p", read_predictions(str(path)), questions, ("prediction",))
    ids = [q.question_id for q in questions]
    return joined.take(ids, ["prediction"])["prediction"], joined


def test_the_very_words_of_a_question_go_before_its_letters(tmp_path):
    """Questions 1 and 2 have the same letters: each takes the row in its own words, whatever the order."""
    rows = [{"question": "who me", "answer": "b"}, {"question": "Who, me?", "answer": "a"}]
    for given in (rows, rows[::-1]):
        found, joined = joined_texts(tmp_path / "p", given, QUESTIONS)
        assert found == ["a", "b", None]
        assert (joined.counts["duplicate"], joined.counts["contradicted"]) == (0, 0)
    rows = [{"question": "WHO ME", "answer": "b"}, {"question": "Who, me?", "answer": "a"}]
    found, joined = joined_texts(tmp_path / "p", rows, QUESTIONS)
    assert found == ["a", "b", None] and joined.counts["duplicate"] == 0, (
        "other words are for the other question"
    )
    found, joined = joined_texts(tmp_path / "p", [*rows, {"question": "who me", "answer": "b"}], QUESTIONS)
    assert joined.counts["duplicate"] == 2 and joined.contradicted == {"1"}


def test_what_letters_are(tmp_path):
    words = ("\u0915\u093e?", "\u0915\u093f?", "caf\u00e9", "\u2026?", "!!!")
    odd = [Question(str(i), text, ("x",)) for i, text in enumerate(words, 1)]
    rows = [{"question": f"{q} \u200b", "answer": a} for q, a in
            (("\u0915\u093e", "ka"), ("\u0915\u093f", "ki"), ("CAFE\u0301!", "c"))]  # fmt: skip
    found, joined = joined_texts(tmp_path / "p", [*rows, {"question": "!!!", "answer": "d"}], odd)
    assert found == ["ka", "ki", "c", None, "d"], "without letters only the very words join"
    _, joined = joined_texts(tmp_path / "p", [{"question": "??", "answer": "e"}], odd)
    assert joined.counts["unknown"] == 1


def test_rows_without_an_answer_or_an_id_are_counted_and_the_others_scored(tmp_path):
    nothing = [None, math.nan, [], [None]]
    rows = [{"id": str(i), "answer": value} for i, value in enumerate(nothing, 1)]
    rows += [{"id": "5", "output": value} for value in (None, [], [None], [{}], [{"answer": None}])]
    rows += [{"id": value, "answer": "x"} for value in ("", " ", None, math.nan)] + [
        {"id": "9", "answer": "z"}
    ]
    questions = [Question(str(i), "q", ("z",)) for i in range(1, 10)]
    found, joined = joined_texts(tmp_path / "p", rows, questions)
    assert found == [None] * 8 + ["z"]
    expected = {"ok": 1, "failed": 5, "without_id": 4, "missing": 3, "duplicate": 4, "unknown": 0}
    assert {key: joined.counts[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": True}, "id 'True': expected text"),
        ({"id": [1]}, "id '.1.': expected text"),
        ({"id": 1.5}, "id '1.5': expected text"),
        ({"status": "fine"}, "status 'fine': expected one of ok, failed, no_passages"),
        ({"status": 7}, "status 7: expected one of"),
        ({"passage_ids": "abc"}, "'abc': expected a list"),
        ({"passage_ids": [None]}, "passage id 'None': expected text"),
        ({"doc_prior": ["a"]}, "'a': expected a number"),
        ({"doc_posterior": 3}, "3: expected a list"),
        ({"log_prob": "x"}, "log_prob: 'x': expected a number"),
        ({"predicted_evidence": 3}, "3: expected a list"),
        ({"output": [{"answer": "a", "provenance": [{}]}]}, "provenance {}: expected an object with 'wiki"),
        ({"output": [{"answer": "a", "provenance": 3}]}, "3: expected a list"),
        ({"output": ["a"]}, "output 'a': expected an object with 'answer'"),
    ],
)  # fmt: skip
def test_fields_of_another_type_are_refused_by_record(tmp_path, row, message):
    rows = [{"id": "1", "answer": "a"}, {"id": "2", "answer": "b", **row}]
    with pytest.raises(DataError, match=f"p, record 2: {message}"):
        found(tmp_path / "p", "".join(json.dumps(row) + "\n" for row in rows))


def test_files_that_are_no_predictions(tmp_path):
    for text, message in (
        ("null", "'null': expected a header"),
        ("3", "'3': expected a header"),
        ("some words\nmore words\n", "expected a header with an id or a question"),
        ("id,prediction,prediction\n1,a,b\n", "each name once"),
        ('{"id": 1, "prediction": "a"}\n' + "[" * 100_000, "line 2: not valid JSON"),
    ):
        with pytest.raises(DataError, match=message):
            found(tmp_path / "p", text)
    for text in ("[]", "{}", "id,prediction\n"):
        assert found(tmp_path / "p", text) == {}
    (tmp_path / "p.gz").write_bytes(gzip.compress(b'{"1": "a"}' * 100)[:-9])
    with pytest.raises(DataError, match="damaged gzip file"):
        read_predictions(str(tmp_path / "p.gz"))
    with pytest.raises(FileNotFoundError) as error:
        read_predictions(str(tmp_path / "nowhere.json"))
    assert error.value.strerror == "No such file or directory"


def test_a_retrieved_file_of_other_columns(tmp_path):
    whole = {"question_id": [1.0, 2.0], "passage_ids": [["a", "b"], ["c"]], "doc_scores": [[1.0, 0.5], [2.0]]}
    pd.DataFrame(whole).to_parquet(tmp_path / "r")
    assert read_retrieved(str(tmp_path / "r"))["question_id"].to_pylist() == ["1", "2"]
    for column, values, message in (
        ("doc_scores", [[1.0], [2.0]], "r, row 1: passage_ids and doc_scores are not lists of one length"),
        ("doc_scores", [[1.0, 0.5], None], "not the columns of a retrieved run"),
        ("doc_scores", [["x", "y"], ["z"]], "not the columns of a retrieved run"),
        ("passage_ids", ["a", "b"], "not the columns of a retrieved run"),
        ("question_id", [1.5, 2.0], "not the columns of a retrieved run"),
    ):
        pd.DataFrame({**whole, column: values}).to_parquet(tmp_path / "r")
        with pytest.raises(DataError, match=message):
            read_retrieved(str(tmp_path / "r"))


def test_a_quoted_cell_may_hold_line_feeds_and_stray_quotes_do_not_pair_up(tmp_path):
    given = texts(tmp_path / "p.tsv", 'id\tprediction\n1\t"a\n\nb ""c"""\n2\t"bob\n3\tx\n4\tal"\n5\t\n')
    assert given == {"1": 'a\n\nb "c"', "2": '"bob', "3": "x", "4": 'al"', "5": ""}
    assert texts(tmp_path / "p.tsv", "id\tprediction\r1\ta\r2\tb\r") == {"1": "a", "2": "b"}
    assert texts(tmp_path / "p.csv", '\ufeffid,prediction\r\n1,"a\r\nb"\r\n\r\n2,\r\n') == {
        "1": "a\r\nb",
        "2": "",
    }
