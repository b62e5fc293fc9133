"""Directories as they are published: old tokenizer folders, pickled weights, a generator without a head.

`RAGLINE_REAL_CHECKPOINTS` names a directory with the real ones (docs/training.md says what it holds); then
the figures that are known of them are reproduced. Without it the same code runs on random weights, against
`transformers` 5.24.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers, trainers
from transformers import (
    DPRConfig,
    DPRQuestionEncoder,
    RagConfig,
    RagSequenceForGeneration,
    RagTokenForGeneration,
    RagTokenizer,
)

from rag_core import RagModel
from rag_core.encoders import load_encoder
from rag_core.models import ContextBuilder, ContextFormat, load_generator
from rag_core.models.context import pad_rows
from rag_core.retrieval import ExactIndex
from rag_core.schemas import Passage
from tests.reference.tiny_models import tiny_bart

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] who sings does he love me with reba linda davis the a".split()
QUESTION, ANSWER = "who sings does he love me with reba", "Linda Davis"


@pytest.fixture(scope="module")
def bpe():
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([QUESTION, ANSWER, "Reba McEntire / a singer // who"] * 3, trainer)
    return made


def old_bart_tokenizer(bpe, directory):
    """vocab.json and merges.txt, and a tokenizer_config.json that names no class."""
    directory.mkdir(exist_ok=True, parents=True)
    bpe.model.save(str(directory))
    (directory / "tokenizer_config.json").write_text('{"model_max_length": 1024}')


def old_dpr_tokenizer(directory):
    directory.mkdir(exist_ok=True, parents=True)
    (directory / "vocab.txt").write_text("\n".join(WORDS))
    (directory / "tokenizer_config.json").write_text('{"do_lower_case": true, "model_max_length": 512}')


def dpr(seed=0):
    torch.manual_seed(seed)
    return DPRQuestionEncoder(
        DPRConfig(
            vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=32, max_position_embeddings=32, initializer_range=0.3,
        )
    ).eval()  # fmt: skip


@pytest.fixture
def parts(tmp_path, bpe):
    """A question encoder and a generator as the hub holds them, pickled, with old buffers."""
    encoder, bart = dpr(), tiny_bart(vocab_size=bpe.get_vocab_size())
    encoder.config.save_pretrained(tmp_path / "dpr-question_encoder-single-nq-base")
    config = tmp_path / "dpr-question_encoder-single-nq-base" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "architectures": ["DPRQuestionEncoder"]}))
    extra = {
        "question_encoder.bert_model.embeddings.position_ids": torch.arange(32)[None],
        "question_encoder.bert_model.pooler.dense.weight": torch.zeros(16, 16),
        "question_encoder.bert_model.pooler.dense.bias": torch.zeros(16),
    }
    torch.save({**encoder.state_dict(), **extra}, config.with_name("pytorch_model.bin"))
    old_dpr_tokenizer(config.parent)
    bart.config.save_pretrained(tmp_path / "bart-large-cnn")
    torch.save(bart.state_dict(), tmp_path / "bart-large-cnn" / "pytorch_model.bin")
    old_bart_tokenizer(bpe, tmp_path / "bart-large-cnn")
    rng = np.random.default_rng(0)
    rows = [
        {"title": f"Reba {i}", "text": f"a singer {i}", "embeddings": rng.normal(size=16).tolist()}
        for i in range(20)
    ]
    passages = tmp_path / "wiki_dpr_dummy.jsonl"
    passages.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path, encoder, bart


def answer_of(directory: Path):
    """doc_scores and both losses of the question, from a directory of parts, as their retriever has it."""
    encoder = load_encoder(str(directory / "dpr-question_encoder-single-nq-base"), device="cpu")
    generator = load_generator(str(directory / "bart-large-cnn"))
    rows = [json.loads(line) for line in open(directory / "wiki_dpr_dummy.jsonl")]
    passages = [Passage(str(i), row["title"], row["text"]) for i, row in enumerate(rows)]
    vectors_ND = np.array([row["embeddings"] for row in rows], dtype=np.float32)
    index = ExactIndex(vectors_ND, [p.passage_id for p in passages])
    scores, ids = index.search(encoder.encode_questions([QUESTION]), 5)
    asked = encoder.tokenizer.decode(encoder.tokenizer(QUESTION).input_ids, skip_special_tokens=True)
    builder = ContextBuilder(generator.tokenizer, ContextFormat(compat="huggingface"))
    ids_KS, mask_KS = pad_rows(builder.build([passages[int(i)] for i in ids[0]], asked), 1)
    row = [*generator.tokenizer.before, *generator.tokenizer.encode([ANSWER])[0], *generator.tokenizer.after]
    batch = (ids_KS[None], mask_KS[None], torch.tensor(scores), torch.tensor([row]))
    with torch.no_grad():
        return batch, [
            float(RagModel(generator, encoder, kind=kind).eval().nll(*batch))
            for kind in ("sequence", "token")
        ]


def test_parts_as_published_give_their_losses(parts):
    directory, encoder, bart = parts
    (ids, mask, scores, labels), losses = answer_of(directory)
    for kind, ours in zip((RagSequenceForGeneration, RagTokenForGeneration), losses):
        config = RagConfig.from_question_encoder_generator_configs(encoder.config, bart.config, n_docs=5)
        theirs = kind(config, question_encoder=encoder, generator=bart).eval()
        with torch.no_grad():
            loss = theirs(
                context_input_ids=ids[0], context_attention_mask=mask[0], doc_scores=scores, labels=labels
            ).loss
        assert ours == pytest.approx(float(loss), abs=1e-4)


def test_real_checkpoints_give_the_known_figures():
    """DPR and bart-large-cnn, figures of `transformers`' own integration test."""
    directory = os.environ.get("RAGLINE_REAL_CHECKPOINTS")
    if not directory:
        pytest.skip("not run: RAGLINE_REAL_CHECKPOINTS names no directory with the real checkpoints")
    (_, _, scores, _), losses = answer_of(Path(directory))
    assert scores[0].tolist() == pytest.approx([75.0286, 74.4998, 74.0804, 74.0306, 73.9504], abs=2e-3)
    assert losses == pytest.approx([36.7368, 36.3557], abs=1e-2)


def test_a_rag_directory_with_old_tokenizer_folders_loads_and_goes_back(tmp_path, bpe):
    bart = tiny_bart(vocab_size=bpe.get_vocab_size())
    bart.config.prefix = " "
    config = RagConfig.from_question_encoder_generator_configs(dpr().config, bart.config, n_docs=3)
    RagTokenForGeneration(config, question_encoder=dpr(), generator=bart).save_pretrained(tmp_path / "theirs")
    old_bart_tokenizer(bpe, tmp_path / "theirs" / "generator_tokenizer")
    old_dpr_tokenizer(tmp_path / "theirs" / "question_encoder_tokenizer")
    ours = RagModel.from_pretrained(str(tmp_path / "theirs"))
    assert ours.context_format.prefix == " "
    ours.context_format = ContextFormat(prefix=" ", compat="huggingface", max_length=50)
    ours.labels = ("yes", "no")
    ours.save_pretrained(str(tmp_path / "ours"), layout="huggingface")
    before, after = (RagTokenizer.from_pretrained(tmp_path / name) for name in ("theirs", "ours"))
    for text in (QUESTION, ANSWER):
        assert before.generator(text).input_ids == after.generator(text).input_ids
        assert before.question_encoder(text).input_ids == after.question_encoder(text).input_ids
        expected = before.generator(text).input_ids
        assert ours.generator.tokenizer.encode([text])[0] == expected[1:-1]
    assert RagConfig.from_pretrained(tmp_path / "ours").generator.prefix == " "
    again = RagModel.from_pretrained(str(tmp_path / "ours"))
    assert (again.context_format, again.labels) == (ours.context_format, ("yes", "no"))
    again.save_pretrained(str(tmp_path / "native"))
    native = RagModel.from_pretrained(str(tmp_path / "native"))
    assert (native.context_format, native.labels) == (ours.context_format, ("yes", "no"))
    vectors = ours.question_encoder.encode_questions([QUESTION])
    np.testing.assert_allclose(native.question_encoder.encode_questions([QUESTION]), vectors, atol=1e-6)
