"""The native layout: whole or not at all, whatever strikes, and one clear error for what is damaged."""

import json
import shutil

import pytest
import torch

from rag_core import RagModel
from rag_core.checkpoints import store
from rag_core.encoders import load_encoder
from rag_core.errors import DataError, UsageError
from rag_core.models.generator import Generator
from rag_core.models.target_layout import TargetLayout
from tests.rag_core.encoders.conftest import bert_dir, tokenizer  # noqa: F401
from tests.reference.strikes import killed_at
from tests.reference.tiny_models import random_batch, tiny_bart
from tests.reference.tiny_training import WORDS, word_tokenizer

LABELS = torch.tensor([[2, 5, 6, 2], [2, 7, 2, 1]])


def model_of(seed, encoder=None, **options):
    layout = TargetLayout(start=2, bos=None, eos=2, pad=1)
    generator = Generator(tiny_bart(vocab_size=len(WORDS), seed=seed), layout, word_tokenizer())
    return RagModel(generator, encoder, kind="token", n_docs=3, **options).eval()


@torch.no_grad()
def nll(model):
    return model.nll(*random_batch(B=2, K=3, vocab_size=len(WORDS)), LABELS)


@pytest.mark.parametrize("swap", [True, False])
def test_a_save_killed_at_any_file_leaves_the_old_or_the_new(tmp_path, monkeypatch, swap):
    if not swap:  # two renames: for one moment neither stands under the name, but the old one is whole
        monkeypatch.setattr(store, "_exchange", lambda *_: False)
    path, old, new = tmp_path / "checkpoint", model_of(0), model_of(1)
    expected = [nll(old), nll(new)]
    seen = []
    for n in range(1, 500, 1 if swap else 3):
        shutil.rmtree(tmp_path, ignore_errors=True)
        old.save_pretrained(str(path))
        if killed_at(n, lambda: new.save_pretrained(str(path)), str(tmp_path)) == 0:
            break
        places = [path] if swap or path.exists() else list(tmp_path.glob("checkpoint.old-*"))
        found = nll(RagModel.from_pretrained(str(*places)))
        seen.append(int(torch.equal(found, expected[1])))
        assert torch.equal(found, expected[seen[-1]])
    assert len(seen) > 7 and seen == sorted(seen) and seen[0] == 0
    assert torch.equal(nll(RagModel.from_pretrained(str(path))), expected[1])
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint"]


def test_a_full_disk_leaves_the_old_checkpoint_and_no_rest(tmp_path, monkeypatch):
    from rag_core import files

    path = tmp_path / "checkpoint"
    model_of(0).save_pretrained(str(path))
    write, calls = files.write_bytes, []

    def full(url, data):
        calls.append(url)
        if len(calls) == 3:
            raise OSError(28, "No space left on device", url)
        write(url, data)

    monkeypatch.setattr(files, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        model_of(1).save_pretrained(str(path))
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint"]
    assert torch.equal(nll(RagModel.from_pretrained(str(path))), nll(model_of(0)))


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda p: (p / "checkpoint.json").unlink(), "a save that was cut short has none"),
        (lambda p: (p / "checkpoint.json").write_text('{"format"'), "checkpoint.json: not valid JSON"),
        (lambda p: (p / "checkpoint.json").write_text("[1]"), "checkpoint.json: expected a JSON object"),
        (lambda p: (p / "checkpoint.json").write_text('{"format": 1}'), "checkpoint.json: damaged: .*kind"),
        (lambda p: (p / "checkpoint.json").write_text('{"format": 9}'), "checkpoint format 9"),
        (lambda p: cut(p / "generator" / "model.safetensors"), "generator/model.safetensors: cannot be read"),
        (lambda p: (p / "generator" / "model.safetensors").unlink(), "generator: no "),
        (lambda p: (p / "generator" / "config.json").unlink(), "generator: no config.json"),
        (lambda p: cut(p / "question_encoder" / "model.safetensors"), "question_encoder.*cannot read"),
        (lambda p: shutil.rmtree(p / "question_encoder"), "question_encoder: no config.json"),
    ],
)
def test_a_checkpoint_cut_short_is_one_clear_error(tmp_path, bert_dir, spoil, message):  # noqa: F811
    model_of(0, load_encoder(bert_dir)).save_pretrained(str(tmp_path / "c"))
    spoil(tmp_path / "c")
    with pytest.raises(DataError, match=message):
        RagModel.from_pretrained(str(tmp_path / "c"))


def cut(path):
    path.write_bytes(path.read_bytes()[:-50])


def test_what_a_checkpoint_says_of_itself(tmp_path, bert_dir):  # noqa: F811
    encoder = load_encoder(bert_dir)
    model = model_of(0, encoder, labels=("yes", "no"), info={"preset": "tiny"})
    model.save_pretrained(str(tmp_path / "c"))
    saved = json.loads((tmp_path / "c" / "checkpoint.json").read_text())
    assert (saved["kind"], saved["n_docs"], saved["labels"]) == ("token", 3, ["yes", "no"])
    assert saved["fingerprints"]["question_encoder"] == encoder.fingerprint
    assert len(saved["fingerprints"]["generator"]) == 64 and saved["info"] == {"preset": "tiny"}
    again = RagModel.from_pretrained(str(tmp_path / "c"))
    assert (again.labels, again.info) == (("yes", "no"), {"preset": "tiny"})
    model_of(1).save_pretrained(str(tmp_path / "d"))
    other = json.loads((tmp_path / "d" / "checkpoint.json").read_text())
    assert other["fingerprints"]["generator"] != saved["fingerprints"]["generator"]


def test_no_checkpoint_there(tmp_path):
    with pytest.raises(UsageError, match="no checkpoint there"):
        RagModel.from_pretrained(str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="not to be had from the hub"):
        RagModel.from_pretrained("facebook/rag-token-nq")
    with pytest.raises(ValueError, match="kind 'both'"):
        model_of(0).save_pretrained(str(tmp_path / "c"))
        RagModel.from_pretrained(str(tmp_path / "c"), kind="both")
