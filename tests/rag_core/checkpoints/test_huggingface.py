"""Parity with `transformers`' RAG on peaked random weights, and its layout both ways.

Oracle: transformers 5.24, `RagSequenceForGeneration` and `RagTokenForGeneration`. Where they are wrong
(prior lost for short targets, smoothed ranking) the difference itself is tested.
"""

import json

import pytest
import torch
from transformers import DPRConfig, RagConfig, RagSequenceForGeneration, RagTokenForGeneration

from rag_core import DecodingConfig, RagModel
from rag_core.errors import DataError
from tests.reference.tiny_models import random_batch, tiny_bart, tiny_t5

CLASSES = {"sequence": RagSequenceForGeneration, "token": RagTokenForGeneration}
GENERATORS = {
    "bart": lambda: tiny_bart(vocab_size=12),
    "bart wide": lambda: tiny_bart(vocab_size=31, d_model=32, layers=1, seed=2, std=0.4),
    "t5": lambda: tiny_t5(vocab_size=12),
    "t5 gated": lambda: tiny_t5(vocab_size=12, gated=True, seed=3),
}


def theirs(kind: str, generator: str, n_docs: int = 3):
    torch.manual_seed(0)
    dpr = DPRConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32,
    )  # fmt: skip
    model = GENERATORS[generator]()
    config = RagConfig.from_question_encoder_generator_configs(dpr, model.config, n_docs=n_docs)
    made = CLASSES[kind](config).eval()
    made.rag.generator.load_state_dict(model.state_dict())
    if model.config.model_type == "t5":
        made.config.generator.bos_token_id = None  # their RAG-Sequence loss fails on a T5 without it
    return made


def batch_for(model, seed=0, B=2, K=3, padded=True):
    vocab, t5 = model.rag.generator.config.vocab_size, model.rag.generator.config.model_type == "t5"
    ids, mask, scores = random_batch(B=B, K=K, vocab_size=vocab, seed=seed)
    if not padded:
        mask = torch.ones_like(mask)
        ids = ids.clamp(min=3)
    pad = 0 if t5 else 1
    ids = torch.where(mask.bool(), ids, pad)
    start, eos = (0, 1) if t5 else (2, 2)
    labels = torch.tensor([[start, 5, 6, 7, eos], [start, 4, 9, eos, pad]])[:B]
    return ids, mask, scores, labels


def their_loss(model, ids, mask, scores, labels):
    flat = {"context_input_ids": ids.flatten(0, 1), "context_attention_mask": mask.flatten(0, 1)}
    return model(**flat, doc_scores=scores, labels=labels, n_docs=ids.shape[1]).loss


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("kind", CLASSES)
@torch.no_grad()
def test_theirs_loads_here_and_ours_loads_there(tmp_path, kind, generator):
    reference = theirs(kind, generator)
    reference.save_pretrained(tmp_path / "theirs")
    ours = RagModel.from_pretrained(str(tmp_path / "theirs"))
    assert (ours.kind, ours.n_docs, ours.training) == (kind, 3, False)
    *batch, labels = batch_for(reference)
    expected = their_loss(reference, *batch, labels)
    torch.testing.assert_close(ours.nll(*batch, labels), expected, atol=1e-4, rtol=0)
    assert expected.min() > 1  # peaked: a near-uniform model would hide mistakes
    # Back: their class loads what we save, tied weights and all, and so do we.
    ours.save_pretrained(str(tmp_path / "ours"), layout="huggingface")
    back, info = CLASSES[kind].from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    torch.testing.assert_close(their_loss(back.eval(), *batch, labels), expected, atol=1e-5, rtol=0)
    ids = torch.randint(3, 30, (2, 6))
    vectors = ours.question_encoder.embed(ids, torch.ones_like(ids))
    torch.testing.assert_close(vectors, back.question_encoder(ids)[0])
    # And the native layout, by way of both.
    ours.save_pretrained(str(tmp_path / "native"))
    native = RagModel.from_pretrained(str(tmp_path / "native"))
    torch.testing.assert_close(native.nll(*batch, labels), expected, atol=1e-4, rtol=0)
    assert native.target_layout == ours.target_layout
    other = "token" if kind == "sequence" else "sequence"
    assert RagModel.from_pretrained(str(tmp_path / "native"), kind=other).kind == other


@torch.no_grad()
def test_their_sequence_model_loses_the_prior_of_one_token_targets(tmp_path):
    reference = theirs("sequence", "bart")
    reference.save_pretrained(tmp_path)
    ours = RagModel.from_pretrained(str(tmp_path))
    ids, mask, scores, _ = batch_for(reference)
    labels = torch.tensor([[2, 5], [2, 7]])
    lost = their_loss(reference, ids, mask, scores, labels)
    moved = their_loss(reference, ids, mask, scores.flip(1), labels)
    torch.testing.assert_close(lost, moved)  # the prior has no say in it
    contexts = ours.encode(ids, mask, scores)
    log_probs, _ = ours.target_log_probs(contexts, labels)
    expected = -torch.logsumexp(log_probs[:, :, 0] + torch.log_softmax(scores, 1), dim=1)
    torch.testing.assert_close(ours.nll(ids, mask, scores, labels), expected)
    assert not torch.allclose(ours.nll(ids, mask, scores, labels), lost, atol=0.05)


@torch.no_grad()
def test_k_may_differ_from_the_config_and_from_question_to_question(tmp_path):
    reference = theirs("token", "bart", n_docs=5)
    reference.save_pretrained(tmp_path)
    ours = RagModel.from_pretrained(str(tmp_path))
    ids, mask, scores, labels = batch_for(reference, K=4)
    expected = their_loss(reference, ids, mask, scores, labels)
    torch.testing.assert_close(ours.nll(ids, mask, scores, labels), expected, atol=1e-4, rtol=0)
    scores[0, 2:] = -torch.inf
    alone = ours.nll(ids[:1, :2], mask[:1, :2], scores[:1, :2], labels[:1])
    torch.testing.assert_close(ours.nll(ids, mask, scores, labels)[:1], alone)


def test_unexpected_and_missing_weights_are_named(tmp_path):
    from safetensors.torch import load_file, save_file

    theirs("token", "bart").save_pretrained(tmp_path)
    whole = load_file(tmp_path / "model.safetensors")
    save_file({**whole, "rag.extra.weight": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(DataError, match="unexpected weight 'rag.extra.weight'"):
        RagModel.from_pretrained(str(tmp_path))
    name = "rag.generator.model.decoder.layers.0.fc1.weight"
    save_file({n: t for n, t in whole.items() if n != name}, tmp_path / "model.safetensors")
    with pytest.raises(DataError, match="missing .*decoder.layers.0.fc1.weight"):
        RagModel.from_pretrained(str(tmp_path))
    save_file(whole, tmp_path / "model.safetensors")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": None}))
    with pytest.raises(DataError, match="give kind="):
        RagModel.from_pretrained(str(tmp_path))
    assert RagModel.from_pretrained(str(tmp_path), kind="sequence").kind == "sequence"


DECODING = [
    {"num_beams": 1, "max_length": 6},
    {"num_beams": 3, "max_length": 6},
    {"num_beams": 4, "max_length": 8, "early_stopping": True, "length_penalty": 2.0},
    {"num_beams": 2, "max_length": 7, "no_repeat_ngram_size": 2, "min_length": 4},
    {
        "num_beams": 3,
        "max_length": 5,
        "forced_bos_token_id": 5,
        "early_stopping": "never",
        "length_penalty": 0.0,
    },
]


def trimmed(row, eos, pad):
    row = row.tolist()
    end = next((i for i in range(1, len(row)) if row[i] == eos), len(row) - 1)
    return row[: end + 1]


@pytest.mark.parametrize("options", DECODING)
@pytest.mark.parametrize("generator", GENERATORS)
@torch.no_grad()
def test_rag_token_decodes_the_same_ids(tmp_path, generator, options):
    reference = theirs("token", generator)
    reference.save_pretrained(tmp_path)
    ours = RagModel.from_pretrained(str(tmp_path))
    layout = ours.target_layout
    for seed in range(4):
        ids, mask, scores, _ = batch_for(reference, seed=seed)
        for b in range(2):
            expected = reference.generate(
                context_input_ids=ids[b],
                context_attention_mask=mask[b],
                doc_scores=scores[b : b + 1],
                n_docs=3,
                decoder_start_token_id=layout.start,
                eos_token_id=layout.eos,
                pad_token_id=layout.pad,
                forced_eos_token_id=None,
                **options,
            )
            config = DecodingConfig(**options)
            (found,) = ours.decode(ids[b : b + 1], mask[b : b + 1], scores[b : b + 1], config)
            assert found[0].token_ids == trimmed(expected[0], layout.eos, layout.pad)


@pytest.mark.parametrize("options", DECODING[:3])
@pytest.mark.parametrize("generator", ["bart", "bart wide", "t5", "t5 gated"])
@torch.no_grad()
def test_thorough_decodes_the_same_ids(tmp_path, generator, options):
    """On contexts of full length: theirs generates from padded ones without their mask."""
    reference = theirs("sequence", generator)
    reference.save_pretrained(tmp_path)
    reference.generator.generation_config.forced_eos_token_id = None
    ours = RagModel.from_pretrained(str(tmp_path))
    same = 0
    for seed in range(6):
        ids, mask, scores, _ = batch_for(reference, seed=seed, padded=False)
        for b in range(2):
            expected = reference.generate(
                context_input_ids=ids[b],
                context_attention_mask=mask[b],
                doc_scores=scores[b : b + 1],
                n_docs=3,
                **options,
            )
            one = (ids[b : b + 1], mask[b : b + 1], scores[b : b + 1])
            (found,) = ours.decode(*one, DecodingConfig(**options))
            row = trimmed(expected[0], ours.target_layout.eos, ours.target_layout.pad)
            same += found[0].token_ids == row
            if found[0].token_ids != row:
                # Their scores lack the prior where a row has fewer than two scored tokens.
                lost = their_loss(reference, *one, torch.tensor([found[0].token_ids]))
                assert len(row) < 3 or len(found[0].token_ids) < 3 or lost > -found[0].log_prob
                assert -found[0].log_prob <= float(ours.nll(*one, torch.tensor([row]))) + 1e-5
    assert same >= 8
