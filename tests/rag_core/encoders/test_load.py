"""Names and places of encoders, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from rag_core import files
from rag_core.encoders import UnknownModelError, load_encoder, locate


@pytest.fixture
def minilm():
    pytest.importorskip("tokenizers")
    try:
        return load_encoder("minilm")
    except UnknownModelError as error:
        pytest.skip(str(error))


def test_minilm_vectors_are_sentence_transformers_own(minilm):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    oracle = sentence_transformers.SentenceTransformer(locate.locate("minilm"), device="cpu")
    questions = ["Which NFL team represented the AFC at Super Bowl 50?", "", "ελλάδα 東京"]
    right_QD = oracle.encode(questions, normalize_embeddings=False)
    assert np.abs(minilm.encode_questions(questions) - right_QD).max() <= 1e-5
    titles = ["Super_Bowl_50", "Nikola Tesla"]
    texts = ["An American football game. " * 60, "Born in Smiljan."]
    right_ND = oracle.encode(list(zip(titles, texts)))
    assert np.abs(minilm.encode_passages(titles, texts) - right_ND).max() <= 1e-5
    assert (minilm.dim, minilm.max_length, minilm.score_scale) == (384, 256, 20.0)
    assert minilm.fits_passage_encoder == minilm.fingerprint


def test_loading_minilm_does_not_import_its_framework():
    code = (
        "import sys; from rag_core.encoders import locate; "
        "locate.locate('minilm'); sys.exit('sentence_transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_changed_weights_are_refused(monkeypatch, minilm):
    monkeypatch.setitem(locate.MINILM_SHA256, "model.safetensors", "0" * 64)
    with pytest.raises(ValueError, match="model.safetensors: SHA-256 53aa51.*expected 000"):
        load_encoder("minilm")


def test_an_absent_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr(locate, "MINILM_PACKAGE", "no_such_package_here")
    with pytest.raises(UnknownModelError, match=r"pip install 'ragline\[minilm\]'"):
        load_encoder("minilm")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bert", "unknown model 'bert'; built-in: minilm, mini-bart; or a directory, gs://, s3://, org/name"),
        ("mini-bart", "is a generator"),
        ("/no/such/dir", "no such model directory"),
        ("./models/x/y", "no such model directory"),
    ],
)
def test_unknown_names(name, message):
    with pytest.raises(UnknownModelError, match=message):
        load_encoder(name)


def test_a_hub_id_that_cannot_be_had_is_one_error(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UnknownModelError, match="nobody/nothing: no such directory, and not to be had"):
        load_encoder("nobody/nothing")


def copy(directory, tmp_path):
    return shutil.copytree(directory, tmp_path / "copy")


def test_missing_weights_are_not_made_up(bert_dir, tmp_path):
    from safetensors.torch import load_file, save_file

    path = copy(bert_dir, tmp_path)
    tensors = load_file(path / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="lack 1 tensors.*encoder.layer.1.output.dense.weight"):
        load_encoder(path)


def test_bin_weights_are_read_without_pickle(dpr_dirs, tmp_path):
    import torch
    from safetensors.torch import load_file

    path = copy(dpr_dirs[1], tmp_path)
    torch.save(load_file(path / "model.safetensors"), path / "pytorch_model.bin")
    (path / "model.safetensors").unlink()
    assert load_encoder(path).fingerprint == load_encoder(dpr_dirs[1]).fingerprint


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_unusable_directories(bert_dir, tmp_path):
    with pytest.raises(ValueError, match="no config.json"):
        load_encoder(tmp_path)
    path = copy(bert_dir, tmp_path)
    (path / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="no tokenizer.json"):
        load_encoder(path)
    edit(path / "config.json", model_type="bart")
    with pytest.raises(ValueError, match="model_type 'bart'"):
        load_encoder(path)


def test_own_metadata_with_an_unknown_key_is_refused(bert_dir, tmp_path):
    load_encoder(bert_dir).save_pretrained(tmp_path / "own")
    edit(tmp_path / "own" / "ragline_encoder.json", prefix="query: ")
    with pytest.raises(ValueError, match="ragline_encoder.json.*prefix"):
        load_encoder(tmp_path / "own")


def test_a_rag_checkpoint_serves_as_its_question_encoder(dpr_dirs, tmp_path):
    (tmp_path / "checkpoint.json").write_text("{}")
    shutil.copytree(dpr_dirs[1], tmp_path / "question_encoder")
    assert load_encoder(tmp_path).fingerprint == load_encoder(dpr_dirs[1]).fingerprint


def test_the_two_halves_of_dpr_differ_in_fingerprint(dpr_dirs):
    assert load_encoder(dpr_dirs[0]).fingerprint != load_encoder(dpr_dirs[1]).fingerprint


def test_a_model_in_a_store_is_fetched_once(bert_dir, tmp_path, monkeypatch):
    """A store of our own scheme, served from a local directory."""
    fetched = []

    class Store:
        def open_input(self, url):
            fetched.append(url)
            return open(url.replace("mem://", f"{bert_dir}/../"), "rb")

        def match(self, pattern):
            root = bert_dir.rsplit("/", 1)[1]
            return [
                files.FileInfo(f"mem://{root}/{files.base_name(f.url)}", f.size, f.modified)
                for f in files.list_files(bert_dir)
            ]

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(files._backends, "mem", Store())
    url = "mem://" + bert_dir.rsplit("/", 1)[1]
    assert load_encoder(url).fingerprint == load_encoder(bert_dir).fingerprint
    n = len(fetched)
    load_encoder(url)
    assert len(fetched) == n > 0
