"""Checkpoints as others save them: bare models, shards, ties, damage; each against `transformers` 5.24."""

import json
import os
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BartForConditionalGeneration, T5ForConditionalGeneration

from rag_core.errors import DataError
from rag_core.models.generator import load_generator
from tests.reference.tiny_models import tiny_bart, tiny_t5
from tests.reference.tiny_training import WORDS, word_tokenizer

IDS, MASK, DECODER = torch.tensor([[3, 4, 5]]), torch.ones((1, 3), dtype=torch.long), torch.tensor([[2, 6]])
HEAD = torch.randn((12, 16), generator=torch.Generator().manual_seed(9))


def logits(generator):
    return generator.project(generator.decode(generator.encode(IDS, MASK), MASK, DECODER))


def theirs(model):
    return model.eval()(input_ids=IDS, decoder_input_ids=DECODER, use_cache=False).logits


def edit(directory, **changes):
    """Change the saved config: null removes a key."""
    path = directory / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}))


def restore(directory, change):
    path = directory / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, metadata={"format": "pt"})


@torch.no_grad()
def test_a_bare_model_without_a_head_loads(tmp_path):
    """`facebook/bart-base` and `bart-large` are `BartModel`s: their names lack the head's prefix."""
    model = tiny_bart(vocab_size=12)
    model.final_logits_bias.zero_()
    model.model.save_pretrained(tmp_path)
    assert "shared.weight" in load_file(tmp_path / "model.safetensors")
    torch.testing.assert_close(logits(load_generator(str(tmp_path))), theirs(model))


@pytest.mark.parametrize("form", ["shards", "one file beside stale shards", "pickled shards"])
@torch.no_grad()
def test_shards_load_by_their_index(tmp_path, form):
    model = tiny_bart(vocab_size=12)
    if form == "pickled shards":
        tensors = dict(model.state_dict())
        half = len(tensors) // 2
        names = ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"]
        where = {n: names[i >= half] for i, n in enumerate(tensors)}
        for name in names:
            torch.save({n: t for n, t in tensors.items() if where[n] == name}, tmp_path / name)
        (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": where}))
        model.config.save_pretrained(tmp_path)
    else:
        model.save_pretrained(tmp_path, max_shard_size="4KB")
    if form == "one file beside stale shards":
        model = tiny_bart(vocab_size=12, seed=5)
        save_file({n: t.clone() for n, t in model.state_dict().items()}, tmp_path / "model.safetensors")
    torch.testing.assert_close(logits(load_generator(str(tmp_path))), theirs(model))


def test_a_lost_shard_is_named(tmp_path):
    tiny_bart(vocab_size=12).save_pretrained(tmp_path, max_shard_size="4KB")
    lost = sorted(tmp_path.glob("model-*.safetensors"))[3]
    lost.unlink()
    with pytest.raises(
        DataError, match=f"{lost.name}: missing, though model.safetensors.index.json names it"
    ):
        load_generator(str(tmp_path))


@pytest.mark.parametrize("tie", [None, True, False])
@pytest.mark.parametrize("head", [False, True])
@torch.no_grad()
def test_t5_is_scaled_and_tied_as_theirs(tmp_path, tie, head):
    """T5 1.1 and FLAN have `tie_word_embeddings: false`, which means: an own head, no scaling."""
    tiny_t5(vocab_size=12, gated=True).save_pretrained(tmp_path / "a")
    edit(tmp_path / "a", tie_word_embeddings=tie, scale_decoder_outputs=None)
    if head:
        restore(tmp_path / "a", lambda t: t.update({"lm_head.weight": HEAD.clone()}))
    expected = theirs(T5ForConditionalGeneration.from_pretrained(tmp_path / "a"))
    ours = load_generator(str(tmp_path / "a"))
    torch.testing.assert_close(logits(ours), expected)
    ours.save(str(tmp_path / "b"))
    torch.testing.assert_close(logits(load_generator(str(tmp_path / "b"))), expected)
    torch.testing.assert_close(theirs(T5ForConditionalGeneration.from_pretrained(tmp_path / "b")), expected)


@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize("stored", ["shared", "lm_head", "decoder.embed_tokens", "all", "own head"])
@torch.no_grad()
def test_the_embedding_is_found_under_any_of_its_names(tmp_path, tie, stored):
    model = tiny_bart(vocab_size=12)
    model.save_pretrained(tmp_path / "a")
    edit(tmp_path / "a", tie_word_embeddings=tie)
    names = ["model.shared", "lm_head", "model.encoder.embed_tokens", "model.decoder.embed_tokens"]

    def change(tensors):
        shared = tensors.pop("model.shared.weight")
        kept = names if stored == "all" else [n for n in names if n.endswith(stored)] or ["model.shared"]
        tensors.update({f"{n}.weight": shared.clone() for n in kept})
        if stored == "own head":
            tensors["lm_head.weight"] = HEAD.clone()

    restore(tmp_path / "a", change)
    if stored == "own head":
        model.lm_head.weight = torch.nn.Parameter(HEAD.clone())
    ours = load_generator(str(tmp_path / "a"))
    torch.testing.assert_close(logits(ours), theirs(model))
    ours.save(str(tmp_path / "b"))
    torch.testing.assert_close(logits(load_generator(str(tmp_path / "b"))), theirs(model))
    torch.testing.assert_close(
        theirs(BartForConditionalGeneration.from_pretrained(tmp_path / "b")), theirs(model)
    )


@torch.no_grad()
def test_a_legacy_config_with_beam_settings_and_half_precision_loads(tmp_path):
    model = tiny_bart(vocab_size=12)
    model.save_pretrained(tmp_path)
    edit(
        tmp_path, num_beams=4, max_length=7, early_stopping=True, length_penalty=2.0, no_repeat_ngram_size=3,
        torch_dtype="float16", task_specific_params={"summarization": {"num_beams": 4}}, output_past=True,
        normalize_before=False, static_position_embeddings=False, eos_token_ids=[2],
    )  # fmt: skip
    restore(tmp_path, lambda t: t.pop("final_logits_bias"))
    model.final_logits_bias.zero_()
    loaded = load_generator(str(tmp_path))
    assert {p.dtype for p in loaded.parameters()} == {torch.float32}
    torch.testing.assert_close(logits(loaded), theirs(model))


class Harmful:
    def __reduce__(self):
        return os.abort, ()


def spoil(directory, kind):
    weights, config = directory / "model.safetensors", directory / "config.json"
    if kind == "cut weights":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif kind == "empty weights":
        weights.write_bytes(b"")
    elif kind in ("cut pickle", "harmful pickle"):
        tensors = load_file(weights)
        weights.unlink()
        path = directory / "pytorch_model.bin"
        torch.save(tensors, path) if kind == "cut pickle" else path.write_bytes(pickle.dumps(Harmful()))
        path.write_bytes(path.read_bytes()[: -100 if kind == "cut pickle" else None])
    elif kind == "NaN":
        restore(directory, lambda t: t["model.shared.weight"].__setitem__((3, 3), torch.nan))
    elif kind == "config is a list":
        config.write_text("[]")
    elif kind == "cut config":
        config.write_text(config.read_text()[:40])
    elif kind == "heads":
        edit(directory, encoder_attention_heads=3)
    elif kind == "wrong type":
        edit(directory, d_model="wide")
    elif kind == "layout":
        edit(directory, target_layout={"begin": 2})
    elif kind == "no padding":
        edit(directory, pad_token_id=None)
        (directory / "generation_config.json").unlink()
    elif kind == "beyond":
        edit(directory, decoder_start_token_id=99)
        (directory / "generation_config.json").unlink()
    elif kind == "cut tokenizer":
        (directory / "tokenizer.json").write_text('{"version":')
    elif kind == "no embedding":
        restore(directory, lambda t: t.pop("model.shared.weight"))


@pytest.mark.parametrize(
    "kind, message",
    [
        ("cut weights", "model.safetensors: cannot be read, perhaps cut short"),
        ("empty weights", "model.safetensors: cannot be read, perhaps cut short"),
        ("cut pickle", "pytorch_model.bin: cannot be read, perhaps cut short"),
        ("harmful pickle", "pytorch_model.bin: holds more than tensors, or is damaged; it was not opened"),
        ("NaN", "model.shared.weight holds NaN"),
        ("config is a list", "config.json: expected a JSON object, found list"),
        ("cut config", "config.json: not valid JSON"),
        ("heads", "config.json: its config makes no bart model: .*num_heads"),
        ("wrong type", "config.json: its config makes no bart model: .*d_model"),
        ("layout", "no target layout: .*begin"),
        ("no padding", "no target layout: .*names no pad token"),
        ("beyond", "token ids {'start': 99} lie beyond the vocabulary of 12"),
        ("cut tokenizer", "tokenizer.json: no tokenizer"),
        ("no embedding", "no token embedding"),
    ],
)
def test_damage_is_one_clear_error(tmp_path, kind, message):
    tiny_bart(vocab_size=12).save_pretrained(tmp_path)
    spoil(tmp_path, kind)
    with pytest.raises(DataError, match=message) as found:
        load_generator(str(tmp_path))
    assert str(tmp_path) in str(found.value)


def test_a_tokenizer_set_to_pad_left_and_to_cut_does_neither(tmp_path):
    """BART counts positions from the left edge; rows are padded here, on the right, and cut here."""
    tiny_bart(vocab_size=len(WORDS)).save_pretrained(tmp_path)
    backend = word_tokenizer().backend
    backend.enable_padding(direction="left", pad_id=1, pad_token="<pad>", length=9)
    backend.enable_truncation(3)
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_generator(str(tmp_path)).tokenizer
    texts = ["where is ada", "where lives ada in"]
    assert tokenizer.encode(texts) == word_tokenizer().encode(texts)
