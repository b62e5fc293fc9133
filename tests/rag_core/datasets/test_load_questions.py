"""Every format of every task: right counts on the published files, right rows, clear refusals."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_core.datasets import TASKS, load_questions
from rag_core.datasets.fever import canonical_title
from rag_core.errors import DataError, UsageError


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


def lines(path, *rows):
    return write(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


@pytest.mark.parametrize(
    ("file", "task", "count"),
    [
        ("questions/nq_open.dev.jsonl", "nq", 3610),
        ("questions/dpr.nq.test.txt", "nq", 3610),
        ("questions/dpr.trivia.test.txt.gz", "triviaqa", 11313),
        ("questions/dpr.wq.test.txt", "webquestions", 2032),
        ("questions/webquestions.test.json", "webquestions", 2032),
        ("questions/dpr.curated.test.txt", "curatedtrec", 694),
        ("questions/trec_curated.test.tsv", "curatedtrec", 430),
        ("questions/efficientqa.dev.jsonl", "efficientqa", 1800),
        ("squad/questions.jsonl.gz", "squad", 10570),
        ("squad/xquad.en.json.gz", "squad", 1190),
        ("fever/fever_paper_dev.jsonl.gz", "fever3", 9999),
        ("fever/fever_paper_dev.jsonl.gz", "fever2", 6666),
    ],
)
def test_the_published_files_have_the_right_counts(shared_data, file, task, count):
    loaded = load_questions(str(shared_data / file), task)
    assert len(loaded.questions) == count
    assert len({q.question_id for q in loaded.questions}) == count
    assert all(q.answers and q.question for q in loaded.questions)
    left_out = {"NOT ENOUGH INFO is left out of the 2-way task": 3333} if task == "fever2" else {}
    assert loaded.reasons == left_out


def test_both_nq_files_hold_the_same_questions(shared_data):
    open_nq = load_questions(str(shared_data / "questions/nq_open.dev.jsonl"), "nq")
    dpr = load_questions(str(shared_data / "questions/dpr.nq.test.txt"), "nq")
    keys = [{"".join(filter(str.isalnum, q.question)) for q in l.questions} for l in (open_nq, dpr)]
    assert len(keys[0] & keys[1]) > 3600


def test_ids_are_the_sources_else_task_and_line(tmp_path, shared_data):
    path = write(tmp_path / "q.txt", "who\t['a']\n\nwho\t['b', \"c's\"]\n")
    loaded = load_questions(path, "nq")
    assert [q.question_id for q in loaded.questions] == ["nq-1", "nq-3"]
    assert [q.answers for q in loaded.questions] == [("a",), ("b", "c's")]
    assert [q.question for q in loaded.questions] == ["who", "who"], "the same words, two questions"
    trec = load_questions(str(shared_data / "questions/trec_curated.test.tsv"), "curatedtrec").questions[0]
    assert (trec.question_id, trec.answer_kind) == ("1669", "regex")


def test_an_answer_list_is_a_literal_and_is_never_evaluated(tmp_path):
    quoted = write(tmp_path / "q.tsv", 'who\t"[\'a ""b"" c\', ""d\'s""]"\n')
    assert load_questions(quoted, "nq").questions[0].answers == ('a "b" c', "d's")
    for cell in ("__import__('os').getcwd()", "['a' + 'b']", "[" * 5000, "a", "{'a'}"):
        path = write(tmp_path / "bad.tsv", f"fine\t['a']\nwho\t{cell}\n")
        with pytest.raises(DataError, match=r"bad.tsv, line 2: answers .* expected a (Python )?list"):
            load_questions(path, "nq")


def test_rows_that_cannot_be_scored_are_rejected_by_line_and_reason(tmp_path):
    path = lines(
        tmp_path / "q.jsonl",
        {"question": "a", "answer": ["", "x", " ", "x"]},
        {"question": "b", "answer": [""]},
        {"question": " ", "answer": ["x"]},
        {"question": "c", "answer": []},
    )
    loaded = load_questions(path, "nq")
    assert [q.answers for q in loaded.questions] == [("x",)]
    assert loaded.empty_answers == 2
    assert loaded.rejected == [(2, "only empty answers"), (3, "empty question"), (4, "no answers")]
    assert len(load_questions(path, "nq", require_answers=False).questions) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"question": "a", "answer": ["x"]}\n{"question": "b"}\n', "line 2: expected question and answer"),
        ('{"question": "a", "answer": ["x"]}\n{oops\n', "line 2: not valid JSON"),
        ('{"question": "a", "answer": [1]}\n', "line 1: answers .*expected a list of texts"),
        ('{"question": 7, "answer": ["x"]}\n', "line 1: question 7: expected text"),
        ('{"id": 1.5, "question": "a", "answer": ["x"]}\n', "question id 1.5"),
        ('{"id": 1, "question": "a", "answer": ["x"]}\n{"id": "1", "question": "b", "answer": ["x"]}\n',
         "line 2: question_id '1' was seen in line 1"),
        ("a\tb\tc\n", "line 1: 3 columns"),
        ("[1]", "line 1: expected a JSON object"),
    ],
)  # fmt: skip
def test_what_is_not_in_the_format_is_refused_with_file_and_line(tmp_path, text, message):
    with pytest.raises(DataError, match=f"q.jsonl, {message}" if "line" in message else message):
        load_questions(write(tmp_path / "q.jsonl", text), "nq")


def test_damaged_and_missing_files(tmp_path):
    damaged = tmp_path / "q.gz"
    damaged.write_bytes(gzip.compress(b'{"question": "a", "answer": ["x"]}\n' * 1000)[:-20])
    with pytest.raises(DataError, match="damaged gzip"):
        load_questions(str(damaged), "nq")
    latin = tmp_path / "latin.txt"
    latin.write_bytes("caf\xe9\t['a']\n".encode("latin-1"))
    with pytest.raises(DataError, match="line 1: not UTF-8"):
        load_questions(str(latin), "nq")
    with pytest.raises(FileNotFoundError):
        load_questions(str(tmp_path / "nowhere"), "nq")
    with pytest.raises(UsageError, match="unknown task 'natural'; tasks: nq, "):
        load_questions(str(damaged), "natural")
    assert load_questions(write(tmp_path / "empty", ""), "nq").questions == []


def test_only_a_line_feed_ends_a_line(tmp_path):
    path = write(tmp_path / "q.txt", "one\u2028two\x85\x1c\t['a']\r\nb\t['c']")
    assert [q.question for q in load_questions(path, "nq").questions] == ["one\u2028two\x85\x1c", "b"]


def test_triviaqa_and_webquestions_in_their_own_formats(tmp_path):
    answer = {"Value": "A", "Aliases": ["A", "B"]}
    trivia = {"Data": [{"QuestionId": "tc_1", "Question": "who?", "Answer": answer}]}
    for indent in (None, 1):
        path = write(tmp_path / "t.json", json.dumps(trivia, indent=indent))
        (question,) = load_questions(path, "triviaqa").questions
        assert (question.question_id, question.answers) == ("tc_1", ("A", "B"))
    target = '(list (description "New \\"York\\" (city)") (description Rome))'
    row = {"utterance": "where?", "targetValue": target}
    (question,) = load_questions(write(tmp_path / "w.json", json.dumps([row])), "webquestions").questions
    assert question.answers == ('New "York" (city)', "Rome")


def test_squad_in_both_formats(tmp_path, shared_data):
    first = load_questions(str(shared_data / "squad/questions.jsonl.gz"), "squad").questions[0]
    assert (first.question_id, first.gold_passages) == ("56be4db0acb8001400a502ec", ("1",))
    qas = [
        {"id": "a", "question": "who?", "answers": [{"text": "x"}, {"text": "x"}]},
        {"id": "b", "question": "why?", "answers": [], "is_impossible": True},
    ]
    document = {"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": "c", "qas": qas}]}]}
    loaded = load_questions(write(tmp_path / "s.json", json.dumps(document)), "squad")
    assert [q.question_id for q in loaded.questions] == ["a"]
    assert loaded.reasons == {"unanswerable (SQuAD 2.0)": 1}
    with pytest.raises(DataError, match="not in SQuAD's format at question 1"):
        load_questions(write(tmp_path / "s.json", '{"data": [{"paragraphs": [{}]}]}'), "squad")


def test_fever_keeps_null_pages_apart_and_names_pages_canonically(tmp_path):
    unverifiable = {"claim": "a", "label": "NOT ENOUGH INFO", "evidence": [[[7, None, None, None]]]}
    group = [[7, 8, "Lake_Tana", 4], [7, 9, "", 0]]
    real = {"id": 2, "claim": "b", "label": "supports", "evidence": [group]}
    path = lines(
        tmp_path / "f.jsonl", *[{**unverifiable, "id": i} for i in range(1000)], {**real, "id": 5000}
    )
    loaded = load_questions(path, "fever3")
    assert loaded.questions[0].evidence == (((None, None),),)
    assert loaded.questions[-1].evidence == ((("Lake_Tana", 4), ("", 0)),)
    assert loaded.questions[-1].gold_pages == ("Lake Tana", "")
    assert len(load_questions(path, "fever2").questions) == 1
    assert canonical_title("Beyonce\u0301_-LRB-album-RRB-") == canonical_title("Beyonc\u00e9 (album)")
    for wrong in ([["x"]], [[[1, 2, 3, "line"]]], ["ab"]):
        with pytest.raises(DataError, match=r"line 1: evidence"):
            load_questions(lines(tmp_path / "bad.jsonl", {**real, "evidence": wrong}), "fever3")
    with pytest.raises(DataError, match="label 'MAYBE'"):
        load_questions(lines(tmp_path / "bad.jsonl", {**real, "label": "MAYBE"}), "fever3")


def test_msmarco_in_columns_and_lines(tmp_path):
    columns = {
        "query_id": {"0": 11, "1": 12, "2": 13},
        "query": {"0": "a", "1": "b", "2": "c"},
        "answers": {"0": ["x y"], "1": ["No Answer Present."], "2": "[]"},
    }
    for indent in (None, 2):
        loaded = load_questions(write(tmp_path / "m.json", json.dumps(columns, indent=indent)), "msmarco")
        assert [(q.question_id, q.answers) for q in loaded.questions] == [
            ("11", ("x y",)),
            ("12", ("No Answer Present.",)),
        ]
        assert loaded.reasons == {"no answers": 1}
    path = lines(tmp_path / "m.jsonl", {"query_id": 5, "query": "a", "answers": ["x"]})
    assert load_questions(path, "msmarco").questions[0].question_id == "5"


def test_jeopardy_turns_the_answer_into_the_question(tmp_path):
    rows = [{"question": "'A clue, it is'", "answer": "Hemingway"}, {"question": "x", "answer": 7}]
    for path in (lines(tmp_path / "j.jsonl", *rows), write(tmp_path / "j.json", json.dumps(rows))):
        first, second = load_questions(path, "jeopardy").questions
        assert (first.question, first.answers) == ("Hemingway", ("A clue, it is",))
        assert second.question == "7"
    path = write(tmp_path / "train.txt", "snippets here ||| the clue ||| Hemingway\n")
    assert load_questions(path, "jeopardy").questions[0].answers == ("the clue",)


def test_kilt_keeps_evidence_sets_apart(tmp_path):
    pages = [{"wikipedia_id": 1}, {"wikipedia_id": "2"}, {"wikipedia_id": "1"}]
    output = [
        {"answer": "Paris", "provenance": pages},
        {"answer": "Paris", "provenance": [{"wikipedia_id": "3"}]},
        {"answer": "City of Light"},
        {"meta": {}},
    ]
    path = lines(tmp_path / "k", {"id": "x", "input": "q", "output": output})
    (question,) = load_questions(path, "kilt").questions
    assert question.answers == ("Paris", "City of Light")
    assert question.gold_pages == ("1", "2", "3")
    assert question.evidence == ((("1", None), ("2", None)), (("3", None),))


def test_custom_in_three_formats(tmp_path):
    rows = [
        {"question_id": "a", "question": "who?", "answers": ["x"], "gold_pages": ["7"], "extra": 1},
        {"question_id": "b", "question": "why?", "answers": ["y.*"], "answer_kind": "regex"},
        {"question_id": "c", "question": "true?", "answers": ["SUPPORTS"], "answer_kind": "label",
         "evidence": [[{"page": "P", "line": 1}, ["Q", None]]]},
    ]  # fmt: skip
    by_lines = load_questions(lines(tmp_path / "c.jsonl", *rows), "custom").questions
    assert by_lines[0].gold_pages == ("7",) and by_lines[0].gold_passages is None
    assert [q.answer_kind for q in by_lines] == ["text", "regex", "label"]
    assert by_lines[2].evidence == ((("P", 1), ("Q", None)),)
    rows[2].pop("evidence")
    table = pa.table({key: [row.get(key) for row in rows] for key in ("question", "answers", "answer_kind")})
    pq.write_table(pa.concat_tables([table] * 4000), tmp_path / "c.parquet")
    by_parquet = load_questions(str(tmp_path / "c.parquet"), "custom").questions
    assert [q.answers for q in by_parquet[:3]] == [q.answers for q in by_lines]
    assert by_parquet[1].answer_kind == "regex" and by_parquet[-1].question_id == "custom-12000"
    tsv = 'question_id\tquestion\tanswers\na\t"who?\t["x"]\n'
    (question,) = load_questions(write(tmp_path / "c.tsv", tsv), "custom").questions
    assert (question.question, question.answers) == ('"who?', ("x",)), "a quotation mark is text"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"text": "a"}', "line 1: no column 'question' .found text."),
        ('{"question": "a", "answers": ["x"], "answer_kind": "number"}', "'number': use text, regex"),
        ('{"question": "a", "answers": "x"}', "answers 'x': expected a list of texts"),
        ("id\ttext\n1\ta\n", "no column 'question' in the header"),
        ("question\tanswers\na\n", "line 2: 1 columns, the header has 2"),
        ('{"question": "a", "answers": ["x"], "evidence": [[1]]}', "evidence: expected groups"),
    ],
)
def test_custom_says_what_is_wrong(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        load_questions(write(tmp_path / "c", text), "custom")


def test_all_tasks_have_a_loader():
    assert " ".join(TASKS) == (
        "nq triviaqa webquestions curatedtrec squad efficientqa fever3 fever2 msmarco jeopardy kilt custom"
    )
