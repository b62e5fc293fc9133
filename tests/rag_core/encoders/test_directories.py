"""Model directories as others leave them: in many forms, damaged, or of another kind than they say."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from rag_core.encoders import load_encoder
from rag_core.errors import DataError, UsageError
from tests.rag_core.encoders.conftest import config

TITLES = ["river", "", "lake north", "king"]
TEXTS = ["the king is in a town", "", "the river of the south " * 30, "a"]


@pytest.fixture
def copy(bert_dir, tmp_path):
    return shutil.copytree(bert_dir, tmp_path / "copy")


def edit(path, **changes):
    values = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({k: v for k, v in values.items() if v != "gone"}))


def vectors(directory, **options):
    return load_encoder(directory, **options).encode_passages(TITLES, TEXTS)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"hidden_size": 64}, r"embeddings.LayerNorm.bias is \[32\], config.json makes it \[64\]"),
        ({"vocab_size": 5}, r"word_embeddings.weight is \[17, 32\], config.json makes it \[5, 32\]"),
        ({"vocab_size": "17"}, "vocab_size"),
        ({"num_attention_heads": 3}, "not a multiple of the number of attention heads"),
        ({"max_position_embeddings": 3}, "position_embeddings.weight is"),
        ({"max_position_embeddings": "64"}, "max_position_embeddings"),
        ({"num_hidden_layers": 1}, "16 tensors that config.json leaves no room for, such as encoder.layer.1"),
        ({"num_hidden_layers": 3}, "weights lack 16 tensors of BertModel"),
        ({"hidden_act": "nosuch"}, "nosuch"),
        ({"is_decoder": True}, "a decoder"),
        ({"position_embedding_type": "relative_key"}, "relative positions"),
        ({"model_type": "gone"}, "model_type None"),
    ],
)
def test_a_config_that_does_not_fit_its_weights(copy, changes, message):
    edit(copy / "config.json", **changes)
    with pytest.raises(DataError, match=message):
        load_encoder(copy)


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("config.json", "[]", "config.json: expected a JSON object, found list"),
        ("config.json", "{", "config.json: not valid JSON"),
        ("tokenizer.json", "{", "cannot read the tokenizer: JSONDecodeError"),
        ("tokenizer.json", "{}", "cannot read the tokenizer"),
        ("tokenizer_config.json", "[", "cannot read the tokenizer"),
        ("model.safetensors", "", "cannot read the weights: SafetensorError"),
        ("ragline_encoder.json", "[]", "ragline_encoder.json: expected a JSON object"),
        ("ragline_encoder.json", "{}", "ragline_encoder.json: .*missing"),
    ],
)
def test_damaged_files_are_one_error_naming_them(copy, name, content, message):
    (copy / name).write_text(content)
    with pytest.raises(DataError, match=message):
        load_encoder(copy)


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("max_length", 65, "max_length 65 but the model has 64 positions"),
        ("max_length", 3, "needs at least 4 tokens"),
        ("max_length", "64", "max_length '64'"),
        ("max_length", True, "max_length True"),
        ("pooling", "max", "pooling 'max'; known are"),
        ("score_scale", float("nan"), "score_scale nan"),
        ("score_scale", "20", "score_scale '20'"),
        ("normalize", 1, "need true or false"),
    ],
)
def test_own_settings_that_cannot_be(bert_dir, tmp_path, field, value, message):
    load_encoder(bert_dir).save_pretrained(tmp_path / "own")
    edit(tmp_path / "own" / "ragline_encoder.json", **{field: value})
    with pytest.raises(DataError, match=message):
        load_encoder(tmp_path / "own")


def test_settings_that_the_model_cannot_follow(dpr_dirs, tokenizer, tmp_path):
    from transformers import BertConfig, BertModel

    load_encoder(dpr_dirs[1]).save_pretrained(tmp_path / "dpr")
    edit(tmp_path / "dpr" / "ragline_encoder.json", pooling="mean")
    with pytest.raises(DataError, match="DPR's classes give the first token's vector"):
        load_encoder(tmp_path / "dpr")
    one_type = config(BertConfig)
    one_type.type_vocab_size = 1
    BertModel(one_type).save_pretrained(tmp_path / "one")
    tokenizer.save_pretrained(tmp_path / "one")
    load_encoder(tmp_path / "one").save_pretrained(tmp_path / "own")
    edit(tmp_path / "own" / "ragline_encoder.json", pair_token_types=True)
    with pytest.raises(DataError, match="the model knows only type 0"):
        load_encoder(tmp_path / "own")


def test_pickles_that_run_code_are_refused_and_do_not_run(copy, tmp_path):
    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    (copy / "model.safetensors").unlink()
    torch.save({"embeddings.word_embeddings.weight": Hostile()}, copy / "pytorch_model.bin")
    with pytest.raises(DataError, match="not a file of plain tensors"):
        load_encoder(copy)
    assert not (tmp_path / "ran").exists()
    (copy / "pytorch_model.bin").write_bytes(b"garbage")
    with pytest.raises(DataError, match="cannot read the weights"):
        load_encoder(copy)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_on_disk_is_computed_in_fp32(bert_dir, tokenizer, tmp_path, dtype):
    from transformers import BertModel

    module = BertModel.from_pretrained(bert_dir).to(dtype)
    for name, model in (("half", module), ("full", module.float())):
        model.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
    half, full = load_encoder(tmp_path / "half"), load_encoder(tmp_path / "full")
    assert next(half.module.parameters()).dtype == torch.float32
    assert half.fingerprint == full.fingerprint
    assert (half.encode_passages(TITLES, TEXTS) == full.encode_passages(TITLES, TEXTS)).all()


def test_shards_heads_and_pickled_tensors_are_the_same_model(bert_dir, tokenizer, tmp_path):
    from transformers import BertForMaskedLM, BertModel

    right = load_encoder(bert_dir)
    module = BertModel.from_pretrained(bert_dir)
    module.save_pretrained(tmp_path / "sharded", max_shard_size="20KB")
    shards = sorted((tmp_path / "sharded").glob("model-*.safetensors"))
    assert len(shards) > 2
    module.save_pretrained(tmp_path / "pickled")
    torch.save(module.state_dict(), tmp_path / "pickled" / "pytorch_model.bin")
    (tmp_path / "pickled" / "model.safetensors").unlink()
    headed = BertForMaskedLM(module.config)
    headed.bert.load_state_dict(module.state_dict(), strict=False)
    headed.save_pretrained(tmp_path / "headed")
    for name in ("sharded", "pickled", "headed"):
        tokenizer.save_pretrained(tmp_path / name)
        assert load_encoder(tmp_path / name).fingerprint == right.fingerprint
    shards[1].unlink()
    with pytest.raises(DataError, match=shards[1].name):
        load_encoder(tmp_path / "sharded")


# -- tokenizers ---------------------------------------------------------------------------------------


def test_a_tokenizer_without_padding_token_gives_the_same_vectors(bert_dir, copy):
    edit(copy / "tokenizer_config.json", pad_token=None)
    assert load_encoder(copy).tokenizer.pad_token_id is None
    assert (vectors(copy) == vectors(bert_dir)).all()


def test_tokenizers_that_do_not_serve(copy, tokenizer):
    from transformers import BertTokenizerFast

    edit(copy / "tokenizer_config.json", padding_side="left")
    with pytest.raises(DataError, match="pads on the left, need right"):
        load_encoder(copy)
    larger = BertTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer)
    larger.add_tokens(["zebra"])
    larger.save_pretrained(copy)
    with pytest.raises(DataError, match="tokenizer of 18 tokens, embeddings of 17"):
        load_encoder(copy)


def test_an_id_beyond_the_embeddings_is_found_at_the_start(copy):
    state = json.loads((copy / "tokenizer.json").read_text())
    state["model"]["vocab"]["queen"] = 9999
    (copy / "tokenizer.json").write_text(json.dumps(state))
    with pytest.raises(DataError, match="tokenizer of 10000 tokens, embeddings of 17"):
        load_encoder(copy)


def test_a_tokenizer_without_a_fast_form(copy):
    (copy / "tokenizer.json").unlink()
    (copy / "vocab.txt").write_text("[PAD]\n")
    edit(copy / "tokenizer_config.json", tokenizer_class="CanineTokenizer")
    with pytest.raises(DataError, match="CanineTokenizer has no fast form; save a tokenizer.json"):
        load_encoder(copy)


# -- sentence-transformers -----------------------------------------------------------------------------


@pytest.fixture
def sentence_dir(bert_dir, tmp_path):
    """As its releases up to 5 wrote it: mean pooling, normalised, 48 tokens."""
    path = shutil.copytree(bert_dir, tmp_path / "sentence")
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [{"path": p, "type": f"sentence_transformers.models.{kind}"} for p, kind in kinds]
    (path / "modules.json").write_text(json.dumps(modules))
    (path / "1_Pooling").mkdir()
    flags = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (path / "1_Pooling" / "config.json").write_text(json.dumps(flags))
    settings = {"max_seq_length": 48, "do_lower_case": False}
    (path / "sentence_bert_config.json").write_text(json.dumps(settings))
    return path


@pytest.mark.parametrize("pooling, normalize", [("mean", True), ("cls", False)])
def test_what_sentence_transformers_saves_today_gives_its_own_vectors(bert_dir, tmp_path, pooling, normalize):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    from sentence_transformers.models import Normalize, Pooling, Transformer

    modules = [Transformer(bert_dir, max_seq_length=48), Pooling(32, pooling_mode=pooling)]
    oracle = sentence_transformers.SentenceTransformer(
        modules=[*modules, *([Normalize()] if normalize else [])], device="cpu"
    )
    oracle.save_pretrained(str(tmp_path / "saved"))
    encoder = load_encoder(tmp_path / "saved")
    assert encoder.spec.pooling == pooling and encoder.spec.normalize == normalize
    assert encoder.max_length == 48 and encoder.score_scale == (20.0 if normalize else 1.0)
    assert np.abs(vectors(tmp_path / "saved") - oracle.encode(list(zip(TITLES, TEXTS)))).max() <= 1e-5
    assert np.abs(encoder.encode_questions(TEXTS) - oracle.encode(TEXTS)).max() <= 1e-5


def test_weights_in_a_folder_of_their_own(sentence_dir):
    right = vectors(sentence_dir)
    inner = sentence_dir / "0_Transformer"
    inner.mkdir()
    for path in list(sentence_dir.iterdir()):
        if path.is_file() and path.name != "modules.json":
            path.rename(inner / path.name)
    modules = json.loads((sentence_dir / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (sentence_dir / "modules.json").write_text(json.dumps(modules))
    assert (vectors(sentence_dir) == right).all()


@pytest.mark.parametrize("length", ["gone", None])
def test_a_length_that_is_not_given_is_the_models(sentence_dir, length):
    edit(sentence_dir / "sentence_bert_config.json", max_seq_length=length)
    edit(sentence_dir / "tokenizer_config.json", model_max_length=int(1e30))
    assert load_encoder(sentence_dir).max_length == 64
    (sentence_dir / "sentence_bert_config.json").unlink()
    edit(sentence_dir / "tokenizer_config.json", model_max_length=40)
    assert load_encoder(sentence_dir).max_length == 40


@pytest.mark.parametrize(
    "name, changes, message",
    [
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False}, r"pooling \[\]"),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True}, r"pooling \['cls', 'mean'\]"),
        ("1_Pooling/config.json", {"pooling_mode": "lasttoken"}, r"pooling \['lasttoken'\]; known are"),
        ("sentence_bert_config.json", {"max_seq_length": 65}, "max_length 65 but the model has 64"),
        ("sentence_bert_config.json", {"max_seq_length": "48"}, "max_length '48'"),
    ],
)
def test_sentence_settings_that_are_refused(sentence_dir, name, changes, message):
    edit(sentence_dir / name, **changes)
    with pytest.raises(DataError, match=message):
        load_encoder(sentence_dir)


def test_modules_and_prompts_that_would_give_other_vectors_are_refused(sentence_dir):
    prompts = sentence_dir / "config_sentence_transformers.json"
    prompts.write_text(json.dumps({"prompts": {"query": "", "document": ""}, "default_prompt_name": None}))
    load_encoder(sentence_dir)
    prompts.write_text(json.dumps({"prompts": {"query": "query: "}}))
    with pytest.raises(DataError, match="prompt 'query: ' for 'query'"):
        load_encoder(sentence_dir)
    prompts.write_text(json.dumps({"prompts": {"sts": "Same? "}, "default_prompt_name": "sts"}))
    with pytest.raises(DataError, match=r"prompt 'Same\? ' for 'sts'"):
        load_encoder(sentence_dir)
    prompts.unlink()
    modules = json.loads((sentence_dir / "modules.json").read_text())
    (sentence_dir / "modules.json").write_text(json.dumps([*modules[:2], {"path": "2", "type": "x.Dense"}]))
    with pytest.raises(DataError, match="need Transformer, Pooling and perhaps Normalize"):
        load_encoder(sentence_dir)
    (sentence_dir / "modules.json").write_text("[1]")
    with pytest.raises(DataError, match="not a list of modules"):
        load_encoder(sentence_dir)


def test_lower_casing_is_the_tokenizers_or_refused(sentence_dir):
    edit(sentence_dir / "sentence_bert_config.json", do_lower_case=True)
    assert load_encoder(sentence_dir).max_length == 48  # its tokenizer does that
    state = json.loads((sentence_dir / "tokenizer.json").read_text())
    state["normalizer"] = None
    (sentence_dir / "tokenizer.json").write_text(json.dumps(state))
    edit(sentence_dir / "tokenizer_config.json", do_lower_case=False)
    with pytest.raises(DataError, match="tells capitals apart"):
        load_encoder(sentence_dir)


# -- cheaper arithmetic, saving --------------------------------------------------------------------------


def test_layers_that_int8_does_not_know_are_refused_and_left_out_of_a_measurement(copy, monkeypatch):
    from rag_core.encoders import compute as computes

    edit(copy / "config.json", hidden_act="relu")
    if computes.is_supported(torch.device("cpu")):
        with pytest.raises(UsageError, match="compute int8: knows no 'relu' layers; use bf16 or fp32"):
            load_encoder(copy, "int8")
        monkeypatch.setattr(computes, "has_instructions", lambda name, device: name == "int8")
        assert computes.fastest_compute(copy) == "fp32"


@pytest.mark.parametrize("compute", ["bf16", "int8"])
def test_a_projection_in_cheaper_arithmetic(tokenizer, tmp_path, compute):
    from transformers import DPRConfig, DPRContextEncoder

    if compute == "int8" and not torch.cpu._is_vnni_supported():
        pytest.skip("no 8-bit dot products on this machine")
    torch.manual_seed(3)
    settings = config(DPRConfig)
    settings.projection_dim = 8
    DPRContextEncoder(settings).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    right_ND, found_ND = vectors(tmp_path), vectors(tmp_path, compute=compute)
    assert right_ND.shape == found_ND.shape == (4, 8)
    lengths_N = np.linalg.norm(right_ND, axis=1) * np.linalg.norm(found_ND, axis=1)
    assert ((right_ND * found_ND).sum(1) / lengths_N).min() >= 0.995


@pytest.mark.parametrize("again", [False, True])
def test_a_save_that_is_cut_short_is_no_model(bert_dir, copy, tmp_path, monkeypatch, again):
    """At each file: what lies there is the old model, the new one, or refused. Never a mixture."""
    old = load_encoder(bert_dir)
    weights = load_file(copy / "model.safetensors")
    weights["embeddings.word_embeddings.weight"] += 1
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    new = load_encoder(copy)
    replace, seen = os.replace, set()
    for strike in range(9):
        path = tmp_path / f"{again}-{strike}"
        if again:
            old.save_pretrained(path)
        left = iter(range(strike))

        def struck(source, target, left=left):
            if next(left, None) is None and str(tmp_path) in str(target):
                raise OSError("disk full")
            replace(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", struck)
            try:
                new.save_pretrained(path)
            except OSError:
                pass
        try:
            seen.add(load_encoder(path).fingerprint)
        except DataError:
            seen.add("refused")
        assert not [name for name in os.listdir(path) if name.startswith("_attempt-")]
    assert {"refused", new.fingerprint} <= seen <= {"refused", new.fingerprint, old.fingerprint}
