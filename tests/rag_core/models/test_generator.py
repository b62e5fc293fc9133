"""Loading and saving generators: tied weights, old files, names, and what does not fit."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BartForConditionalGeneration, T5ForConditionalGeneration

from rag_core.errors import DataError, UnknownModelError
from rag_core.models.generator import load_generator
from tests.reference.tiny_models import generator_of, tiny_bart, tiny_t5

CASES = {
    "bart": (lambda: tiny_bart(vocab_size=12), BartForConditionalGeneration),
    "t5": (lambda: tiny_t5(vocab_size=12), T5ForConditionalGeneration),
    "t5 gated": (lambda: tiny_t5(vocab_size=12, gated=True), T5ForConditionalGeneration),
}
IDS, MASK, DECODER = torch.tensor([[3, 4, 5]]), torch.ones((1, 3), dtype=torch.long), torch.tensor([[2, 6]])


def logits(generator):
    return generator.project(generator.decode(generator.encode(IDS, MASK), MASK, DECODER))


@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_saved_by_either_loads_in_both(tmp_path, case):
    make, kind = CASES[case]
    model = make()
    expected = model(input_ids=IDS, decoder_input_ids=DECODER, use_cache=False).logits
    model.save_pretrained(tmp_path / "theirs")
    loaded = load_generator(str(tmp_path / "theirs"))
    torch.testing.assert_close(logits(loaded), expected)
    loaded.save(str(tmp_path / "ours"))
    torch.testing.assert_close(logits(load_generator(str(tmp_path / "ours"))), expected)
    back, info = kind.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    out = back.eval()(input_ids=IDS, decoder_input_ids=DECODER, use_cache=False).logits
    torch.testing.assert_close(out, expected)
    stored = load_file(tmp_path / "ours" / "model.safetensors")
    assert sum(t.shape == (12, 16) for t in stored.values()) == 1  # the embedding, once


@torch.no_grad()
def test_a_half_precision_and_a_pickled_file_load_as_float32(tmp_path):
    model = tiny_bart(vocab_size=12)
    model.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    save_file({n: t.half() for n, t in tensors.items()}, path)
    half = load_generator(str(tmp_path))
    assert next(half.parameters()).dtype == torch.float32
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    path.unlink()
    torch.testing.assert_close(logits(load_generator(str(tmp_path))), logits(generator_of(model)))


@torch.no_grad()
def test_an_output_matrix_of_its_own_is_kept(tmp_path):
    model = tiny_t5(vocab_size=12)
    model.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    head = torch.randn(12, 16)
    save_file({**load_file(path), "lm_head.weight": head}, path)
    loaded = load_generator(str(tmp_path))
    assert torch.equal(loaded.model.lm_head.weight, head)
    assert not torch.equal(loaded.model.shared.weight, head)
    loaded.save(str(tmp_path / "again"))
    assert torch.equal(load_generator(str(tmp_path / "again")).model.lm_head.weight, head)


def test_settings_in_a_legacy_config_are_not_lost(tmp_path):
    tiny_bart(vocab_size=12).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "forced_bos_token_id": 0}))
    (tmp_path / "generation_config.json").write_text("{}")
    assert load_generator(str(tmp_path)).layout.bos == 0


def test_what_does_not_fit_is_named(tmp_path):
    with pytest.raises(UnknownModelError, match="unknown model 'maxi-bart'"):
        load_generator("maxi-bart")
    with pytest.raises(DataError, match="no config.json"):
        load_generator(str(tmp_path))
    tiny_bart(vocab_size=12).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "decoder_ffn_dim": 8}))
    with pytest.raises(DataError, match=r"has shape \[.*32.*the config says \[.*8"):
        load_generator(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_type": "gpt2"}))
    with pytest.raises(DataError, match="generator of type 'gpt2'; supported: bart, t5"):
        load_generator(str(tmp_path))
