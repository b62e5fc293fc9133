"""The small commands between the jobs: gathering questions, the task that collapses, the null document."""

from __future__ import annotations

import gzip
import json

import pytest
import torch

from eval.miniature import collapse, gather, null_document
from eval.miniature.null_document import BIASES, NULL_ID, likeliest_bias, with_null
from rag_core.errors import DataError, run_command
from rag_core.retrieval import PassageStore
from rag_core.schemas import PASSAGES, RETRIEVED, content_hash
from rag_core.stages import read_table, stage_manifest
from tests.eval.conftest import write_stage


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def question(name, **more):
    return {"question_id": name, "question": f"Who is {name}?", "answers": ["x"], **more}


def test_gather_joins_chooses_and_limits(tmp_path, capsys):
    a = write(tmp_path / "a", question("1", set="p"), question("2", set="q"))
    b = write(tmp_path / "b", question("2", set="q"), question("3", set="q"), question("4", set="q"))
    out = str(tmp_path / "out")
    assert gather.main([a, b, "--output", out]) == 0
    assert [json.loads(line)["question_id"] for line in open(out)] == ["1", "2", "3", "4"]
    assert gather.main([a, b, "--where", "set=q", "--limit", "2", "--output", out]) == 0
    assert [json.loads(line)["question_id"] for line in open(out)] == ["2", "3"]
    assert "2 questions" in capsys.readouterr().out
    assert gather.main([b, "--as-predictions", "--limit", "1", "--output", out]) == 0
    assert [json.loads(line) for line in open(out)] == [{"question_id": "2", "prediction": "x"}]


@pytest.mark.parametrize(
    "rows, argv, code, message",
    [
        ([question("1"), question("1", set="x")], [], 3, "line 2: question '1' differs from an earlier one"),
        ([{"question": "?"}], [], 3, "line 1: no question_id"),
        ([question("1")], ["--where", "set=p"], 3, "no question is left (set=p)"),
        ([question("1")], ["--where", "set"], 2, "--where set: expected COLUMN=VALUE"),
        ([question("1")], ["--limit", "-1"], 2, "--limit -1: must be at least 1"),
        ([question(["1"])], [], 3, "line 1: question_id ['1']: expected a text or a number"),
        ([question("")], [], 3, "line 1: no question_id"),
        ([{"question_id": "1"}], ["--as-predictions"], 3, "question '1' has no answers"),
        ([question("1", answers=[])], ["--as-predictions"], 3, "question '1' has no answers"),
        (["?"], [], 3, "line 1: expected a JSON object, found"),
        ([], [], 3, "no question is left (empty)"),
    ],
)
def test_gather_refuses(tmp_path, capsys, rows, argv, code, message):
    path = write(tmp_path / "a", *rows)
    assert run_command(gather.main, [path, *argv, "--output", str(tmp_path / "o")]) == code
    assert message in capsys.readouterr().err and not (tmp_path / "o").exists()


def test_gather_reads_lines_as_every_job_does(tmp_path, capsys):
    """Only a line feed ends a line; gzip is seen by its first bytes; what is no UTF-8 is named."""
    odd = {"question_id": "1", "question": "Who\u2028is\x85it?", "answers": ["é"]}
    text = "\ufeff" + json.dumps(odd, ensure_ascii=False) + "\n\n"
    (tmp_path / "a").write_bytes(gzip.compress(text.encode()))
    assert gather.gather([str(tmp_path / "a")]) == [odd]
    (tmp_path / "b").write_bytes(b'{"question_id": "1", "question": "\xff"}\n')
    assert run_command(gather.main, [str(tmp_path / "b"), "--output", str(tmp_path / "o")]) == 3
    assert "b, line 1: not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("module, option", [(gather, ()), (collapse, ("--questions",))])
def test_no_questions_are_written_over_those_that_are_read(tmp_path, capsys, module, option):
    path = write(tmp_path / "a", question("1"))
    (tmp_path / "link").symlink_to(path)
    for output in (path, str(tmp_path / "link"), f"{tmp_path}/./a"):
        assert run_command(module.main, [*option, path, "--output", output]) == 2
        assert f"--output {output}: is read too" in capsys.readouterr().err
    assert [json.loads(line) for line in open(path)] == [question("1")]


@pytest.mark.parametrize(
    "rows, message",
    [
        ([{"question_id": "b", "answers": ["x"]}], "question 'b' has no question"),
        ([question("l", answer_kind="label")], "no question has an answer of kind text"),
    ],
)
def test_the_task_that_causes_collapse_refuses(tmp_path, capsys, rows, message):
    path = write(tmp_path / "a", *rows)
    assert run_command(collapse.main, ["--questions", path, "--output", str(tmp_path / "o")]) == 3
    assert f"{path}: {message}" in capsys.readouterr().err and not (tmp_path / "o").exists()


def test_the_task_that_causes_collapse_needs_no_passage(tmp_path):
    rows = [question("1", gold_pages=["7"]), {**question("2"), "question": "In what town?"},
            question("3", answer_kind="label")]  # fmt: skip
    path = write(tmp_path / "a", *rows)
    assert collapse.main(["--questions", path, "--output", str(tmp_path / "o")]) == 0
    made = [json.loads(line) for line in open(tmp_path / "o")]
    assert [r["answers"] for r in made] == [["person"], ["thing"]] and "gold_pages" not in made[0]


def test_the_empty_passage_stands_by_its_score():
    row = {"question_id": "q", "passage_ids": ["a", "b", "c"], "doc_scores": [3.0, 1.0, 0.0]}
    assert with_null(row, 2, 0.5) == {
        "question_id": "q", "passage_ids": ["a", NULL_ID, "b"], "doc_scores": [3.0, 1.5, 1.0],
        "log_partition": None,
    }  # fmt: skip
    assert with_null(row, 2, 0.0)["passage_ids"] == ["a", "b", NULL_ID], "a tie goes to the passage"
    empty = {"question_id": "q", "passage_ids": [], "doc_scores": []}
    assert with_null(empty, 2, -1.0)["passage_ids"] == [NULL_ID]


@pytest.mark.parametrize("kind", ("token", "sequence"))
@pytest.mark.parametrize("null, best", ((-9.0, BIASES[0]), (-0.01, BIASES[-1])))
def test_the_bias_is_the_likeliest(kind, null, best):
    """A null document that explains answers worse than the passages gets the least weight, else the most."""
    log_probs_BKT = torch.tensor([[[-1.0], [-2.0], [null]]])
    found, means = likeliest_bias(log_probs_BKT, torch.zeros(1, 3), torch.ones(1, 1, dtype=torch.bool), kind)
    assert found == best and len(means) == len(BIASES)
    weights = torch.tensor([0.0, 0.0, BIASES[3]]).softmax(0)
    by_hand = (weights * log_probs_BKT[0, :, 0].exp()).sum().log()
    assert means[3] == pytest.approx(float(by_hand), abs=1e-5)


@pytest.fixture
def runs(tmp_path):
    passages = [
        {"passage_id": f"{i}:0", "page_id": str(i), "title": f"T {i}", "text": f"It was {i}.", "n_words": 3,
         "content_hash": content_hash(f"T {i}", f"It was {i}.")} for i in range(4)
    ]  # fmt: skip
    found = [
        {"question_id": f"q{i}", "passage_ids": ["0:0", "1:0", "2:0"], "doc_scores": [3.0, 2.0, 1.0],
         "log_partition": 4.0}
        for i in range(3)
    ]  # fmt: skip
    dev = write(tmp_path / "dev", *(question(f"q{i}") for i in range(2)), question("l", answer_kind="label"))
    return {
        "--passages": write_stage(tmp_path / "p", "split", PASSAGES, passages),
        "--retrieved": write_stage(tmp_path / "r", "retrieve", RETRIEVED, found),
        "--dev-retrieved": str(tmp_path / "r"),
        "--dev": dev,
        "--output": str(tmp_path / "null"),
    }


def call(runs, *more):
    return run_command(null_document.main, [word for pair in runs.items() for word in pair] + list(more))


def test_runs_with_the_null_document_are_runs(runs, capsys):
    assert call(runs, "--checkpoint", "none", "--n-docs", "2", "--bias", "0.5") == 0
    out = runs["--output"]
    rows = read_table(f"{out}/retrieved").to_pylist()
    assert rows[0]["passage_ids"] == ["0:0", NULL_ID, "1:0"] and len(rows) == 3
    assert stage_manifest(f"{out}/passages", "split")["rows"] == 5
    (empty,) = PassageStore.open(f"{out}/passages").get([NULL_ID])
    assert (empty.title, empty.text) == ("", "")
    assert "bias +0.5 nats" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more, message",
    [
        (("--n-docs", "0", "--bias", "0"), "--n-docs 0: must be at least 1"),
        (("--n-docs", "2", "--bias", "nan"), "--bias nan: expected a finite number"),
    ],
)
def test_what_no_null_document_is_made_with(runs, capsys, more, message):
    assert call(runs, "--checkpoint", "none", *more) == 2
    assert message in capsys.readouterr().err


def test_a_null_document_is_not_put_beside_another_or_over_what_it_reads(runs, tmp_path, capsys):
    more = ("--checkpoint", "none", "--n-docs", "2", "--bias", "0.5")
    assert call(runs, *more) == 0
    null = f"{tmp_path}/null"
    assert call({**runs, "--passages": f"{null}/passages", "--output": f"{tmp_path}/o"}, *more) == 2
    assert "null/passages: has the passage 'null:0' already" in capsys.readouterr().err
    assert call({**runs, "--retrieved": f"{null}/retrieved"}, *more) == 2
    assert f"--output {null}: {null}/retrieved is read" in capsys.readouterr().err
    assert read_table(f"{null}/retrieved").to_pylist()[0]["passage_ids"] == ["0:0", NULL_ID, "1:0"]


def test_dev_questions_with_too_few_passages_are_left_out_and_counted(runs, tmp_path, capsys):
    from rag_core.models import RagModel, load_generator

    RagModel(load_generator("mini-bart"), kind="token").save_pretrained(str(tmp_path / "c"))
    found = [
        {"question_id": "q0", "passage_ids": ["0:0", "1:0"], "doc_scores": [3.0, 2.0], "log_partition": 4.0},
        {"question_id": "q1", "passage_ids": [], "doc_scores": [], "log_partition": None},
    ]
    few = write_stage(tmp_path / "few", "retrieve", RETRIEVED, found)
    more = ("--checkpoint", str(tmp_path / "c"), "--n-docs")
    assert call({**runs, "--dev-retrieved": few}, *more, "2") == 0
    learned = json.loads((tmp_path / "null" / "bias.json").read_text())
    assert (learned["dev_questions"], learned["dev_with_too_few_passages"]) == (1, 1)
    assert call({**runs, "--dev-retrieved": few, "--output": str(tmp_path / "o")}, *more, "3") == 3
    assert f"{few}: no dev question has 3 passages" in capsys.readouterr().err


def test_the_bias_is_learned_with_a_model(runs, tmp_path):
    from rag_core.models import RagModel, load_generator

    RagModel(load_generator("mini-bart"), kind="token").save_pretrained(str(tmp_path / "c"))
    assert call(runs, "--checkpoint", str(tmp_path / "c"), "--n-docs", "2") == 0
    learned = json.loads((tmp_path / "null" / "bias.json").read_text())
    assert learned["learned"] and learned["bias"] in BIASES
    assert learned["dev_log_likelihood"][BIASES.index(learned["bias"])] == max(learned["dev_log_likelihood"])
    (tmp_path / "other").write_text(json.dumps(question("z")) + "\n")
    with pytest.raises(DataError, match="no row for question 'z'"):
        null_document.main([w for p in {**runs, "--dev": str(tmp_path / "other")}.items() for w in p]
                           + ["--checkpoint", str(tmp_path / "c"), "--n-docs", "2"])  # fmt: skip
