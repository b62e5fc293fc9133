"""T5 from training to answers: through the marginal and closed-book, in both layouts."""

import json

import pytest
import tokenizers
import torch
from tokenizers import models, pre_tokenizers, processors

from beam_jobs import generate
from rag_core import RagModel
from rag_core.models import load_generator
from rag_core.models.generator import Generator
from rag_core.models.target_layout import TargetLayout
from rag_core.models.tokenizer import TextTokenizer
from rag_core.stages import read_table
from tests.rag_core.encoders.conftest import bert_dir, tokenizer  # noqa: F401
from tests.rag_core.retrieval.conftest import embeddings_run, passages_run  # noqa: F401
from tests.rag_core.training.test_train_command import run, world  # noqa: F401
from tests.reference.tiny_models import random_batch, tiny_t5
from tests.reference.tiny_training import NAMES, TOWNS, WORDS

PIECES = ["<pad>", "</s>", "<unk>", *WORDS[4:]]


@pytest.fixture(params=[False, True], ids=["t5", "t5 gated"])
def t5_dir(tmp_path, request):
    """A tiny T5 as `transformers` saves it, with a tokenizer that ends its inputs by `</s>` alone."""
    backend = tokenizers.Tokenizer(models.WordLevel({w: i for i, w in enumerate(PIECES)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.add_special_tokens(["<pad>", "</s>", "<unk>"])
    backend.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    model = tiny_t5(vocab_size=len(PIECES), factor=1.0, gated=request.param)
    model.save_pretrained(tmp_path / "t5")
    backend.save(str(tmp_path / "t5" / "tokenizer.json"))
    return str(tmp_path / "t5")


def test_tokens_and_layout_of_t5(t5_dir):
    loaded = load_generator(t5_dir)
    assert (loaded.tokenizer.before, loaded.tokenizer.after) == ([], [1])
    assert loaded.layout == TargetLayout(start=0, bos=None, eos=1, pad=0)
    assert loaded.layout.text_ids([0, 7, 8, 1, 0]) == [7, 8]


def test_train_generate_and_both_layouts(t5_dir, world, tmp_path):  # noqa: F811
    """Trained from the command line, it answers by the job; the layouts give the same likelihoods."""
    trained = {
        **world,
        "--generator": t5_dir,
        "--steps": "4",
        "--kind": "sequence",
        "--max-target-length": "5",
    }
    assert run(trained, "--dev", world["--questions"], "--gradient-checkpointing") == 0
    losses = [json.loads(r) for r in open(f"{world['--output']}/_log.jsonl")]
    assert all(r["loss"] > 0 and r["question_encoder_norm"] > 0 for r in losses if "loss" in r)
    rows = [
        {"question_id": n, "question": f"where is {n}", "answers": [t], "ctxs": [
            {"id": "1", "title": n, "text": f"{n} lives in {t}", "score": 1},
            {"id": "2", "title": "x", "text": f"lives in {t}", "score": 0},
        ]}
        for n, t in zip(NAMES, TOWNS)
    ]  # fmt: skip
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    argv = ["--questions", str(tmp_path / "q.jsonl"), "--task", "custom", "--given-contexts"]
    argv += ["--checkpoint", world["--output"], "--max-length", "5", "--num-beams", "3"]
    for kind, decoding in (("sequence", "thorough"), ("sequence", "fast"), ("token", "beam")):
        out = str(tmp_path / f"{kind}-{decoding}")
        assert generate.run([*argv, "--kind", kind, "--decoding", decoding, "--output", out]) == 0
        found = read_table(out).to_pylist()
        assert [r["status"] for r in found] == ["ok"] * 6
        assert all(
            r["log_prob"] <= 0 and sum(r["doc_posterior"]) == pytest.approx(1, abs=1e-4) for r in found
        )
    model = RagModel.from_pretrained(world["--output"])
    ids, mask, scores = random_batch(B=2, K=3, vocab_size=len(PIECES))
    ids = torch.where(mask.bool(), ids, 0)
    labels = torch.tensor([[0, 7, 8, 1], [0, 9, 1, 0]])
    with torch.no_grad():
        expected = model.nll(ids, mask, scores, labels)
        model.save_pretrained(str(tmp_path / "huggingface"), layout="huggingface")
        again = RagModel.from_pretrained(str(tmp_path / "huggingface"))
        torch.testing.assert_close(again.nll(ids, mask, scores, labels), expected)
    assert again.generator.tokenizer.encode(["where is ada"]) == model.generator.tokenizer.encode(
        ["where is ada"]
    )


def test_closed_book_learns_by_heart(t5_dir, world, tmp_path):  # noqa: F811
    closed = {k: v for k, v in world.items() if k not in ("--embeddings", "--passages")}
    closed |= {"--generator": t5_dir, "--steps": "100", "--batch-size": "6", "--warmup-steps": "10"}
    closed |= {"--max-target-length": "5", "--clip": "1"}
    assert run(closed, "--closed-book") == 0
    argv = ["--questions", world["--questions"], "--task", "custom", "--closed-book", "--max-length", "5"]
    assert generate.run([*argv, "--checkpoint", world["--output"], "--output", str(tmp_path / "p")]) == 0
    assert [r["prediction"] for r in read_table(str(tmp_path / "p")).to_pylist()] == TOWNS


def test_a_t5_generator_keeps_its_tokenizer_and_layout(t5_dir, tmp_path):
    loaded = load_generator(t5_dir)
    loaded.save(str(tmp_path / "again"))
    again = load_generator(str(tmp_path / "again"))
    assert isinstance(again, Generator) and isinstance(again.tokenizer, TextTokenizer)
    assert again.layout == loaded.layout and again.tokenizer.after == [1]
