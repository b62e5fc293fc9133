"""The generate job against `answer_questions` without Beam."""

from __future__ import annotations

import json

import pytest
import torch

from beam_jobs import generate, index, retrieve, split
from beam_jobs.handlers import shared_model
from rag_core.datasets import load_questions
from rag_core.decoding import DecodingConfig, answer_questions
from rag_core.errors import DataError, UsageError
from rag_core.int8 import is_supported
from rag_core.models import Generator, RagModel, TargetLayout
from rag_core.retrieval import PassageStore
from rag_core.run_dir import read_manifest
from rag_core.schemas import PREDICTIONS
from rag_core.stages import read_table
from tests.reference.tiny_models import tiny_bart
from tests.reference.tiny_training import NAMES, TOWNS, WORDS, word_tokenizer


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A tiny checkpoint, passages, questions and a BM25 run over them, by name."""
    root = tmp_path_factory.mktemp("generate")
    rows = [
        f"{i}\t{name} lives in {town}\t{name}"
        for i, (name, town) in enumerate(zip(NAMES * 3, TOWNS * 2 + TOWNS[::-1]))
    ]
    (root / "c.tsv").write_text("\n".join(rows) + "\n")
    asked = [{"question_id": n, "question": f"where lives {n}", "answers": [t]} for n, t in zip(NAMES, TOWNS)]
    asked.append({"question_id": "nobody", "question": "zzz", "answers": ["rome"]})
    (root / "q.jsonl").write_text("".join(json.dumps(a) + "\n" for a in asked))
    paths = {name: str(root / name) for name in ("passages", "bm25", "retrieved", "rag", "bare")}
    paths["questions"] = str(root / "q.jsonl")
    split.run(["--input", str(root / "c.tsv"), "--input-format", "tsv", "--output", paths["passages"]])
    index.run(["--passages", paths["passages"], "--kind", "bm25", "--output", paths["bm25"]])
    argv = ["--questions", paths["questions"], "--task", "custom", "--index", paths["bm25"]]
    retrieve.run([*argv, "--top-k", "5", "--output", paths["retrieved"]])
    layout = TargetLayout(start=2, bos=None, eos=2, pad=1)
    generator = Generator(tiny_bart(vocab_size=len(WORDS)), layout, word_tokenizer()).eval()
    RagModel(generator, kind="token", n_docs=2).save_pretrained(paths["rag"])
    generator.save(paths["bare"])
    return paths


def run(world, out, *extra, checkpoint="rag", retrieved=True):
    argv = ["--questions", world["questions"], "--task", "custom", "--checkpoint", world[checkpoint]]
    argv += ["--retrieved", world["retrieved"], "--passages", world["passages"]] if retrieved else []
    assert generate.run([*argv, "--max-length", "6", "--output", str(out), *extra]) == 0
    return read_table(str(out))


def test_the_job_is_the_function(world, tmp_path, monkeypatch):
    monkeypatch.setattr(generate, "QUESTIONS_PER_PART", 3)
    table = run(world, tmp_path / "p", "--kind", "sequence", "--n-docs", "3")
    assert table.schema.equals(PREDICTIONS)
    rows = table.to_pylist()
    questions = load_questions(world["questions"], "custom").questions
    retrieved = {r["question_id"]: r for r in read_table(world["retrieved"]).to_pylist()}
    store = PassageStore.open(world["passages"])
    found = [retrieved[q.question_id] for q in questions]
    passages = [store.get(r["passage_ids"][:3]) for r in found]
    scores = [r["doc_scores"][:3] for r in found]
    model = RagModel.from_pretrained(world["rag"], kind="sequence")
    expected = answer_questions(model, questions, passages, scores, DecodingConfig(max_length=6))
    assert [r["question_id"] for r in rows] == [q.question_id for q in questions]
    assert [r["prediction"] for r in rows] == [p.prediction for p in expected]
    assert [r["passage_ids"] for r in rows] == [list(p.passage_ids) for p in expected]
    for row, prediction in zip(rows, expected):
        if prediction.log_prob is not None:
            assert row["log_prob"] == pytest.approx(prediction.log_prob, abs=1e-4)
            assert row["doc_posterior"] == pytest.approx(prediction.doc_posterior, abs=1e-4)
    assert rows[-1]["status"] == "no_passages" and rows[-1]["prediction"] is None
    manifest = read_manifest(str(tmp_path / "p"))
    assert manifest["counts"]["status_ok"] == 6 and manifest["counts"]["status_no_passages"] == 1
    assert manifest["options"]["decoding"]["decoding"] == "thorough" and len(manifest["parts"]) == 3


def test_a_failing_question_is_isolated(world, tmp_path, monkeypatch):
    import rag_core.decoding as decoding

    real = decoding.answer_questions

    def fragile(model, questions, *rest):
        if any(q.question_id == "cyd" for q in questions):
            raise RuntimeError("no answer for cyd")
        return real(model, questions, *rest)

    clean = run(world, tmp_path / "clean").to_pylist()
    monkeypatch.setattr(decoding, "answer_questions", fragile)
    rows = run(world, tmp_path / "p", "--num-return-sequences", "1", "--length-penalty", "0.5").to_pylist()
    failed = next(r for r in rows if r["question_id"] == "cyd")
    assert failed["status"] == "failed" and failed["error"] == "RuntimeError: no answer for cyd"
    assert len(failed["passage_ids"]) == 2
    others = [(r["question_id"], r["prediction"]) for r in rows if r["question_id"] != "cyd"]
    assert others == [(r["question_id"], r["prediction"]) for r in clean if r["question_id"] != "cyd"]


def test_a_bare_generator_closed_book_and_as_a_reader(world, tmp_path):
    closed = run(world, tmp_path / "c", "--closed-book", checkpoint="bare", retrieved=False).to_pylist()
    assert {r["status"] for r in closed} == {"ok"} and {len(r["passage_ids"]) for r in closed} == {0}
    reader = run(world, tmp_path / "r", "--kind", "token", "--n-docs", "2", checkpoint="bare").to_pylist()
    rag = run(world, tmp_path / "p").to_pylist()
    assert [r["prediction"] for r in reader] == [r["prediction"] for r in rag]


def test_given_contexts(world, tmp_path):
    rows = [
        {
            "question_id": "a",
            "question": "where lives ada",
            "answers": ["oslo"],
            "ctxs": [
                {"id": "7", "title": "ada", "text": "ada lives in oslo", "score": "1.5"},
                {"text": "in rome"},
            ],
        },
        {"question_id": "b", "question": "where lives bea", "answers": ["rome"], "ctxs": []},
    ]
    path = tmp_path / "given.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    argv = ["--questions", str(path), "--task", "custom", "--checkpoint", world["rag"], "--given-contexts"]
    assert generate.run([*argv, "--output", str(tmp_path / "p")]) == 0
    first, second = read_table(str(tmp_path / "p")).to_pylist()
    assert first["passage_ids"] == ["7", "a#1"] and second["status"] == "no_passages"
    assert first["doc_prior"] == pytest.approx([0.8176, 0.1824], abs=1e-4)
    path.write_text(json.dumps({"question_id": "a", "question": "q", "answers": ["x"]}) + "\n")
    with pytest.raises(DataError, match="row 1: no list `ctxs`"):
        generate.run([*argv, "--output", str(tmp_path / "p2")])


def test_labels_given_are_the_only_answers(world, tmp_path):
    for name, labels in (("two", ["oslo", "rome"]), ("other", ["nice", "lima"])):
        rows = run(world, tmp_path / name, "--labels", *labels).to_pylist()
        assert {r["prediction"] for r in rows if r["status"] == "ok"} <= set(labels)
        assert all(len(r["tokens"]) == 1 for r in rows if r["status"] == "ok")
        assert read_manifest(str(tmp_path / name))["options"]["decoding"]["allowed_answers"] == labels


@pytest.mark.parametrize(
    "extra, message",
    [
        (["--closed-book", "--labels", "oslo town", "oslo"], "begin with the same token"),
        (["--closed-book", "--labels", "oslo", "oslo"], "allowed_answers"),
        ([], "give exactly one of"),
        (["--closed-book", "--given-contexts"], "give exactly one of"),
        (["--retrieved", "r"], "--retrieved and --passages belong together"),
        (["--closed-book", "--n-docs", "0"], "--n-docs 0"),
        (["--closed-book", "--decoding", "fast"], "does not exist for closed_book"),
        (["--closed-book", "--max-length", "66"], "--max-length 66: the generator holds 65"),
        (["--closed-book", "--max-length", "0"], "max_length 0; right"),
        (["--closed-book", "--num-beams", "0"], "num_beams 0; right"),
        (["--closed-book", "--length-penalty", "nan"], "length_penalty nan"),
        (["--closed-book", "--num-return-sequences", "2"], "exceeds num_beams"),
        (["--closed-book", "--labels", "oslo", "oslo rome"], "begin with the same token"),
    ],
)
def test_options_that_do_not_go_together(world, tmp_path, extra, message):
    argv = ["--questions", world["questions"], "--task", "custom", "--checkpoint", world["bare"]]
    with pytest.raises(UsageError, match=message):
        generate.run([*argv, "--output", str(tmp_path / "p"), *extra])


def write_questions(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return str(path)


def given(name, question, *texts, score="0"):
    ctxs = [{"title": "t", "text": text, "score": score} for text in texts]
    return {"question_id": name, "question": question, "answers": ["oslo"], "ctxs": ctxs}


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_odd_questions_and_passages_among_good_ones(world, tmp_path, kind):
    """Each has its defined row, and none touches its neighbours; what was cut is counted."""
    rows = [
        given("good", "where lives ada", "ada lives in oslo", "in rome"),
        given("long question", "where " * 3000, "ada lives in oslo"),
        given("long passage", "where lives ada", "ada " * 3000, "in rome"),
        given("no passages", "where lives ada"),
        given("one word", "where lives ada", "oslo"),
        given("empty passage", "where lives ada", ""),
        given("fifty", "where lives ada", *["ada lives in oslo", "in rome"] * 25),
        given("bad score", "where lives ada", "ada lives in oslo", score="nan"),
        given("nothing found", "where lives ada", "ada lives in oslo", score="-inf"),
        given("null", "null", "NA", "nan"),
    ]
    path = write_questions(tmp_path / "q.jsonl", rows)
    argv = ["--questions", path, "--task", "custom", "--checkpoint", world["rag"], "--given-contexts"]
    argv += ["--kind", kind, "--n-docs", "50", "--max-length", "6"]
    assert generate.run([*argv, "--output", str(tmp_path / "p")]) == 0
    found = {r["question_id"]: r for r in read_table(str(tmp_path / "p")).to_pylist()}
    assert [found[r["question_id"]]["status"] for r in rows] == [
        "ok", "ok", "ok", "no_passages", "ok", "ok", "ok", "failed", "no_passages", "ok",
    ]  # fmt: skip
    assert "question 'bad score': scores [nan]" in found["bad score"]["error"]
    assert len(found["fifty"]["doc_posterior"]) == 50
    assert sum(found["fifty"]["doc_posterior"]) == pytest.approx(1, abs=1e-4)
    for row in found.values():
        assert (row["prediction"] is None) == (row["status"] != "ok")
        assert (row["token_posterior"] is None) == (kind == "sequence" or row["status"] != "ok")
    counts = read_manifest(str(tmp_path / "p"))["counts"]
    assert (counts["truncated_questions"], counts["truncated_passages"]) == (1, 2)
    alone = write_questions(tmp_path / "one.jsonl", rows[:1])
    argv[1] = alone
    assert generate.run([*argv, "--output", str(tmp_path / "alone")]) == 0
    (row,) = read_table(str(tmp_path / "alone")).to_pylist()
    assert row["prediction"] == found["good"]["prediction"]
    assert row["log_prob"] == pytest.approx(found["good"]["log_prob"], abs=1e-4)


def test_rows_that_are_no_questions_are_dead_letters(world, tmp_path):
    rows = [json.loads(line) for line in open(world["questions"])]
    bad = [{"question_id": "e", "question": " ", "answers": ["x"]}, {"question": "", "answers": []}]
    path = write_questions(tmp_path / "q.jsonl", [rows[0], bad[0], *rows[1:], bad[1]])
    argv = ["--questions", path, "--task", "custom"]
    retrieve.run([*argv, "--index", world["bm25"], "--top-k", "2", "--output", str(tmp_path / "r")])
    asked = ["--retrieved", str(tmp_path / "r"), "--passages", world["passages"]]
    generate.run([*argv, *asked, "--checkpoint", world["rag"], "--output", str(tmp_path / "p")])
    for job in ("r", "p"):
        counts = read_manifest(str(tmp_path / job))["counts"]
        assert (counts["read"], counts["written"], counts["dead_lettered"]) == (9, 7, {"empty question": 2})
        letters = (tmp_path / job / "_dead_letter" / "part-00000.jsonl").read_text().splitlines()
        assert [json.loads(letter)["record"] for letter in letters] == ["line 2", "line 9"]


def test_presets_fill_what_is_not_given(world, tmp_path):
    argv = [
        "--questions",
        world["questions"],
        "--task",
        "custom",
        "--checkpoint",
        world["rag"],
        "--output",
        "x",
    ]
    argv += ["--retrieved", world["retrieved"], "--passages", world["passages"], "--preset"]

    def options(*more):
        return generate.make_plan(generate.parser().parse_args([*argv, *more])).options

    nq = options("nq")
    assert (nq["kind"], nq["n_docs"], nq["decoding"]["decoding"]) == ("sequence", 50, "thorough")
    token = options("nq", "--kind", "token")
    assert (token["kind"], token["n_docs"], token["decoding"]["decoding"]) == ("token", 15, "greedy")
    marco = options("msmarco", "--n-docs", "3", "--max-length", "9")
    assert (marco["n_docs"], marco["decoding"]["decoding"], marco["decoding"]["num_beams"]) == (3, "fast", 4)
    assert marco["decoding"]["max_length"] == 9
    assert options("msmarco", "--kind", "token")["decoding"]["decoding"] == "beam"
    assert options("fever3")["kind"] == "token" and options("tiny")["decoding"]["max_length"] == 24
    with pytest.raises(UsageError, match="unknown preset 'huge'"):
        options("huge")


def test_labels_are_part_of_what_a_run_is(world, tmp_path):
    model = RagModel.from_pretrained(world["rag"])
    digests = set()
    for name, labels in (("a", ("oslo", "rome")), ("b", ("rome", "bonn")), ("c", ())):
        model.labels = labels
        model.save_pretrained(str(tmp_path / name))
        world = {**world, name: str(tmp_path / name)}
        rows = run(world, tmp_path / f"out-{name}", checkpoint=name).to_pylist()
        manifest = read_manifest(str(tmp_path / f"out-{name}"))
        assert manifest["options"]["labels"] == list(labels)
        digests.add(manifest["fingerprint"])
        if labels:
            assert {r["prediction"] for r in rows} <= {*labels, None}
    assert len(digests) == 3


def test_a_closed_book_checkpoint_does_not_pretend_to_read(world, tmp_path):
    model = RagModel.from_pretrained(world["rag"], kind="closed_book")
    model.save_pretrained(str(tmp_path / "closed"))
    world = {**world, "closed": str(tmp_path / "closed")}
    with pytest.raises(UsageError, match="it would leave the passages unread"):
        run(world, tmp_path / "p", checkpoint="closed")
    assert run(world, tmp_path / "p", "--kind", "token", checkpoint="closed").num_rows == 7
    assert run(world, tmp_path / "q", "--closed-book", checkpoint="closed", retrieved=False).num_rows == 7


def test_a_question_that_was_not_retrieved_is_bad_data(world, tmp_path):
    (tmp_path / "q.jsonl").write_text(
        json.dumps({"question_id": "new", "question": "where", "answers": ["x"]}) + "\n"
    )
    argv = ["--questions", str(tmp_path / "q.jsonl"), "--task", "custom", "--checkpoint", world["rag"]]
    argv += [
        "--retrieved",
        world["retrieved"],
        "--passages",
        world["passages"],
        "--output",
        str(tmp_path / "p"),
    ]
    with pytest.raises(DataError, match="no row for question 'new'"):
        generate.run(argv)


def test_the_model_is_loaded_once(world):
    assert shared_model(world["rag"], None) is shared_model(world["rag"], None)


@pytest.mark.parametrize("compute", ["bf16", "int8"])
def test_cheaper_arithmetic_is_an_option_of_the_run(world, tmp_path, compute):
    if compute == "int8" and not is_supported(torch.device("cpu")):
        pytest.skip("no 8-bit dot products on this machine")
    exact, cheap = run(world, tmp_path / "fp32"), run(world, tmp_path / compute, "--compute", compute)
    assert cheap["question_id"].equals(exact["question_id"])
    assert cheap["status"].equals(exact["status"])
    exact, cheap = (read_manifest(str(tmp_path / name)) for name in ("fp32", compute))
    assert (exact["options"]["compute"], cheap["options"]["compute"]) == ("fp32", compute)
    assert exact["models"] == cheap["models"]
