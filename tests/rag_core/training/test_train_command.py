"""`python -m rag_core.train` from run directories to a checkpoint that answers."""

import json
import re
from pathlib import Path

import pytest
import torch

from rag_core import DecodingConfig, RagModel
from rag_core.decoding import answer_questions
from rag_core.encoders import load_encoder
from rag_core.errors import run_command
from rag_core.models.generator import Generator
from rag_core.models.target_layout import TargetLayout
from rag_core.retrieval import Bm25Index, FaissIndex
from rag_core.schemas import Passage, Question
from rag_core.train import main
from tests.rag_core.encoders.conftest import bert_dir, tokenizer  # noqa: F401
from tests.rag_core.retrieval.conftest import embeddings_run, passages_run  # noqa: F401
from tests.reference.tiny_models import tiny_bart
from tests.reference.tiny_training import NAMES, TOWNS, WORDS, word_tokenizer

PASSAGES = [Passage(f"p{i}", n, f"{n} lives in {t}") for i, (n, t) in enumerate(zip(NAMES, TOWNS))]


@pytest.fixture
def world(tmp_path, bert_dir, embeddings_run, passages_run):  # noqa: F811
    """Everything a training needs, as a list of command-line options."""
    layout = TargetLayout(start=2, bos=None, eos=2, pad=1)
    generator = Generator(tiny_bart(vocab_size=len(WORDS), std=0.2), layout, word_tokenizer())
    generator.save(str(tmp_path / "generator"))
    encoder = load_encoder(bert_dir)
    vectors = encoder.encode_passages([p.title for p in PASSAGES], [p.text for p in PASSAGES])
    embeddings = embeddings_run(vectors, [p.passage_id for p in PASSAGES])
    manifest = json.loads(open(f"{embeddings}/_manifest.json").read())
    manifest["encoder"]["fingerprint"] = encoder.fingerprint
    (tmp_path / "embeddings" / "_manifest.json").write_text(json.dumps(manifest))
    rows = [
        {"question_id": f"q{i}", "question": f"where is {n}", "answers": [t]}
        for i, (n, t) in enumerate(zip(NAMES, TOWNS))
    ]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return {
        "--task": "custom",
        "--questions": str(tmp_path / "train.jsonl"),
        "--generator": str(tmp_path / "generator"),
        "--question-encoder": bert_dir,
        "--embeddings": embeddings,
        "--passages": passages_run(PASSAGES),
        "--output": str(tmp_path / "out"),
        "--steps": "3",
        "--batch-size": "4",
        "--n-docs": "3",
        "--lr": "0.01",
        "--max-context-length": "30",
    }


def write_index_manifest(directory, **extra):
    """What `beam_jobs.index` adds to a built index, as far as it is read."""
    manifest = {
        "job": "index",
        "fingerprint": "i",
        "parts": [],
        "rows": 6,
        "content_digest": "c",
        "kind": "flat",
        **extra,
    }
    (directory / "_manifest.json").write_text(json.dumps(manifest))


def run(options, *flags):
    return run_command(main, [a for pair in options.items() for a in pair] + list(flags))


def test_a_training_makes_a_checkpoint_that_answers(world, tmp_path, capsys, bert_dir):  # noqa: F811
    out = tmp_path / "out"
    assert run(world, "--dev", world["--questions"], "--eval-every", "2") == 0
    printed = capsys.readouterr()
    assert "plan: 3 steps of 4 questions (2.0 epochs)" in printed.err
    assert re.search(r"checkpoint: .*out \(3 steps, dev EM", printed.out.splitlines()[0])
    assert {p.name for p in out.iterdir()} >= {
        "checkpoint.json", "generator", "question_encoder", "_config.json", "_log.jsonl", "_manifest.json",
    }  # fmt: skip
    assert not (out / "_work").exists()
    model = RagModel.from_pretrained(str(out))
    assert (model.kind, model.n_docs, model.training) == ("token", 3, False)
    # The trained question encoder still fits the passages that its untrained self embedded.
    assert model.question_encoder.fits_passage_encoder == load_encoder(bert_dir).fingerprint
    assert model.question_encoder.fingerprint != load_encoder(bert_dir).fingerprint
    assert load_encoder(str(out)).fingerprint == model.question_encoder.fingerprint
    questions = [
        Question("a", "where is ada", ("oslo",)),
        Question("b", "", ("rome",)),
        Question("c", "x", ("y",)),
    ]
    passages, scores = [PASSAGES[:2], PASSAGES[:3], []], [[1.0, 0.0], [0.0, 1.0, 2.0], []]
    for kind in ("token", "sequence"):
        model = RagModel.from_pretrained(str(out), kind=kind)
        found = answer_questions(model, questions, passages, scores, DecodingConfig(max_length=5))
        assert [p.status for p in found] == ["ok", "ok", "no_passages"]
        assert found[0].passage_ids == ("p0", "p1")
        assert found[0].doc_prior == pytest.approx(torch.tensor([1.0, 0.0]).softmax(0).tolist())
        assert sum(found[1].doc_posterior) == pytest.approx(1.0)
        assert (found[0].token_posterior is None) == (kind == "sequence")
        if kind == "token":
            assert len(found[0].token_posterior) == len(found[0].tokens)
        assert found[0].to_row()["candidates"][0]["text"] == found[0].prediction


@pytest.mark.parametrize("mixture", [True, False])
def test_labels_are_one_token_in_a_mixture_as_alone(world, tmp_path, mixture):
    rows = [
        {"question_id": "c", "question": "ada lives in oslo", "answers": ["oslo"], "answer_kind": "label"}
    ]
    if mixture:
        rows.append({"question_id": "t", "question": "where is bea", "answers": ["rome"]})
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert run(world, "--labels", "oslo", "nice", "--dev", world["--questions"], "--eval-every", "3") == 0
    model = RagModel.from_pretrained(str(tmp_path / "out"))
    assert model.info["text_answers"] == mixture
    claim = Question("c", "bea lives in nice", ("nice",), answer_kind="label")
    asked = Question("t", "where is ada", ("rome",))
    config = DecodingConfig(max_length=4, num_return_sequences=2, num_beams=2)
    passages, scores = [PASSAGES[:2], PASSAGES[:3]], [[1.0, 0.0], [0.0, 1.0, 2.0]]
    found = answer_questions(model, [claim, asked], passages, scores, config)
    assert [p.question_id for p in found] == ["c", "t"]
    assert {c[0] for c in found[0].candidates} == {"oslo", "nice"}
    assert ({c[0] for c in found[1].candidates} == {"oslo", "nice"}) == (not mixture)


def test_the_same_command_again_returns_at_once_and_another_is_refused(world, capsys):
    assert run(world) == 0
    before = open(f"{world['--output']}/_log.jsonl").read()
    assert run(world) == 0
    assert open(f"{world['--output']}/_log.jsonl").read() == before
    capsys.readouterr()
    assert run({**world, "--lr": "0.5"}) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert run({**world, "--lr": "0.5"}, "--overwrite") == 0
    assert '"lr": 0.5' in open(f"{world['--output']}/_config.json").read()


def test_closed_book_and_bm25_and_a_frozen_question_encoder(world, tmp_path):
    closed = {k: v for k, v in world.items() if k not in ("--embeddings", "--passages")}
    assert run({**closed, "--output": str(tmp_path / "closed")}, "--closed-book") == 0
    model = RagModel.from_pretrained(str(tmp_path / "closed"))
    assert (model.kind, model.question_encoder) == ("closed_book", None)
    question = Question("a", "where is ada", ("oslo",))
    (found,) = answer_questions(model, [question], [[]], [[]], DecodingConfig(max_length=5))
    assert (found.status, found.passage_ids, found.doc_posterior) == ("ok", (), ())
    assert run({**world, "--output": str(tmp_path / "frozen")}, "--freeze-question-encoder") == 0
    Bm25Index.build(PASSAGES, str(tmp_path / "bm25"))
    write_index_manifest(tmp_path / "bm25")
    sparse = {k: v for k, v in world.items() if k != "--embeddings"}
    sparse |= {"--index": str(tmp_path / "bm25"), "--retriever": "bm25", "--output": str(tmp_path / "sparse")}
    assert run(sparse) == 0
    assert RagModel.from_pretrained(str(tmp_path / "sparse")).question_encoder is None


@pytest.mark.parametrize(
    "change, code, message",
    [
        ({"--steps": "0"}, 2, "no training step to make"),
        ({"--generator": "nobody"}, 2, "unknown model 'nobody'"),
        ({"--questions": "/nowhere.jsonl"}, 2, "nowhere.jsonl"),
        ({"--passages": None}, 2, "--passages DIR is needed"),
        ({"--preset": "huge"}, 2, "unknown preset 'huge'"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_work_begins(world, capsys, change, code, message):
    options = {k: v for k, v in {**world, **change}.items() if v is not None}
    assert run(options) == code
    assert message in capsys.readouterr().err


def test_directories_of_another_kind_are_named(world, tmp_path, capsys):
    Bm25Index.build(PASSAGES, str(tmp_path / "bm25"))
    write_index_manifest(tmp_path / "bm25", kind="bm25")
    sparse = {k: v for k, v in world.items() if k != "--embeddings"} | {"--index": str(tmp_path / "bm25")}
    for options, code, message in (
        (sparse, 2, "an index of kind 'bm25' holds no vectors to train with"),
        ({**world, "--embeddings": world["--passages"]}, 3, "passages"),
        ({**world, "--passages": world["--embeddings"]}, 3, "embeddings"),
        ({**world, "--embeddings": str(tmp_path / "none")}, 2, "none: No such directory"),
        ({**world, "--index": str(tmp_path / "bm25")}, 2, "one of --embeddings DIR and --index DIR"),
    ):
        assert run(options) == code, options
        error = capsys.readouterr().err
        assert message in error and error.count("error:") == 1 and "Traceback" not in error


def test_the_next_steps_are_whole_commands(world, capsys):
    assert run(world) == 0
    first, second = capsys.readouterr().out.splitlines()[-2:]
    assert first.startswith(
        "next: python -m beam_jobs.retrieve --questions FILE --task custom --question-encoder"
    )
    assert f"--embeddings {world['--embeddings']}" in first
    assert f"--checkpoint {world['--output']} --retrieved RETRIEVED --passages" in second


def test_vectors_of_another_encoder_are_refused(world, tmp_path, capsys):
    path = tmp_path / "embeddings" / "_manifest.json"
    manifest = json.loads(path.read_text())
    manifest["encoder"]["fingerprint"] = "f" * 64
    path.write_text(json.dumps(manifest))
    assert run(world) == 2
    assert "made by encoder ffffffffffff" in capsys.readouterr().err


def test_passages_may_come_through_an_index(world, tmp_path, capsys):
    FaissIndex.build(world["--embeddings"], "flat", str(tmp_path / "flat"))
    manifest = json.loads((tmp_path / "embeddings" / "_manifest.json").read_text())
    write_index_manifest(tmp_path / "flat", encoder=manifest["encoder"])
    options = {k: v for k, v in world.items() if k != "--embeddings"} | {"--index": str(tmp_path / "flat")}
    assert run(options) == 0
    exact = {**world, "--output": str(tmp_path / "exact")}
    assert run(exact) == 0
    logs = [
        [json.loads(r)["loss"] for r in open(f"{o['--output']}/_log.jsonl") if "loss" in json.loads(r)]
        for o in (options, exact)
    ]
    assert logs[0] == pytest.approx(logs[1], rel=1e-5)


def test_a_checkpoint_cut_short_is_named(world, tmp_path):
    assert run(world) == 0
    (tmp_path / "out" / "checkpoint.json").unlink()
    with pytest.raises(ValueError, match="a save that was cut short has none"):
        RagModel.from_pretrained(str(tmp_path / "out"))


def test_a_training_is_not_written_where_it_reads(world, capsys):
    """Of an overwritten run the files are deleted before anything is read."""
    before = sorted(p.name for p in Path(world["--embeddings"]).iterdir())
    assert run(world | {"--output": world["--embeddings"] + "/"}, "--overwrite") == 2
    assert "also --embeddings; name a new directory" in capsys.readouterr().err
    assert sorted(p.name for p in Path(world["--embeddings"]).iterdir()) == before
