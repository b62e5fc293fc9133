"""Faults that others have met in decoding (ids of `job_bugs.jsonl`), with their inputs, harmless here."""

import json

import pytest
import torch

from rag_core import DecodingConfig, RagModel
from rag_core.decoding import Prediction, answer_questions
from rag_core.models.generator import Generator, load_generator
from rag_core.models.target_layout import TargetLayout
from rag_core.schemas import Passage, Question
from tests.reference.tiny_models import random_batch, tiny_bart, tiny_rag
from tests.reference.tiny_training import WORDS, word_tokenizer

LONG, SHORT = [3, 4, 5, 6, 7, 8, 3, 4, 5, 6, 7, 8, 3, 4], [5, 3, 8, 6, 4, 7, 5, 3, 8]


@pytest.mark.parametrize("kind", ["sequence", "token"])
@torch.no_grad()
def test_b15_b16_padding_beside_a_longer_input_changes_nothing_and_left_padding_is_refused(kind):
    """One input of 9 tokens alone and beside one of 14."""
    model = tiny_rag(kind, vocab_size=9)
    ids = torch.tensor([[SHORT + [1] * 5], [LONG]])
    mask = (torch.arange(14) < torch.tensor([[[9]], [[14]]])).long()
    scores, labels = torch.zeros(2, 1), torch.tensor([[2, 5, 6, 2]] * 2)
    together = model.nll(ids, mask, scores, labels)
    alone = model.nll(torch.tensor([[SHORT]]), torch.ones(1, 1, 9, dtype=torch.long), scores[:1], labels[:1])
    torch.testing.assert_close(together[:1], alone, atol=1e-5, rtol=1e-5)
    with pytest.raises(ValueError, match="padded on the right"):
        model.decode(ids.flip(2), mask.flip(2), scores, DecodingConfig())


@pytest.mark.parametrize("empty", ["{}", None], ids=["empty generation config", "none at all"])
def test_b18_settings_of_a_legacy_config_neither_rule_nor_vanish(tmp_path, empty):
    """num_beams=4, max_length=7 only in config.json: what is asked for per call holds, and is echoed."""
    tiny_bart(vocab_size=12).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    legacy = {"num_beams": 4, "max_length": 7, "forced_bos_token_id": 0, "no_repeat_ngram_size": 3}
    path.write_text(json.dumps({**json.loads(path.read_text()), **legacy}))
    (tmp_path / "generation_config.json").unlink()
    if empty:
        (tmp_path / "generation_config.json").write_text(empty)
    model = RagModel(load_generator(str(tmp_path)), kind="token").eval()
    assert model.target_layout.bos == 0  # part of the target layout, which the checkpoint decides
    resolved = DecodingConfig(max_length=12).resolved(model.kind, model.target_layout).to_json()
    assert (resolved["num_beams"], resolved["max_length"], resolved["no_repeat_ngram_size"]) == (1, 12, 0)
    assert resolved["forced_bos_token_id"] == 0 and resolved["forced_eos_token_id"] is None
    batch = random_batch(B=1, K=2, vocab_size=12)
    config = DecodingConfig(max_length=12, min_length=12)
    ((best, *_),) = model.decode(*batch, config)
    assert len(best.token_ids) == 12 and best.token_ids[1] == 0


@pytest.mark.parametrize(
    "kind, decoding", [("sequence", "thorough"), ("sequence", "fast"), ("token", "beam")]
)
@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0])
@torch.no_grad()
def test_b19_a_score_is_not_a_likelihood_and_is_kept_apart(kind, decoding, penalty):
    """Forced EOS and a length penalty move the score; log_prob stays the likelihood of the row."""
    model = tiny_rag(kind, vocab_size=9)
    batch = random_batch(B=2, K=2, vocab_size=9)
    config = DecodingConfig(
        decoding=decoding, num_beams=3, num_return_sequences=3, max_length=12, min_length=12,
        length_penalty=penalty, forced_eos_token_id=2,
    )  # fmt: skip
    for b, found in enumerate(model.decode(*batch, config)):
        for h in found:
            nll = float(model.nll(*(t[b : b + 1] for t in batch), torch.tensor([h.token_ids])))
            assert h.token_ids[-1] == 2 and h.log_prob == pytest.approx(-nll, abs=1e-4)
        if kind == "token":
            assert found[0].score > found[0].log_prob


@torch.no_grad()
def test_b17_the_best_answer_is_the_same_at_batches_of_1_7_and_64():
    """fp32: scores within 1e-4, no flips of the first answer."""
    model = tiny_rag("token", vocab_size=31, d_model=32, layers=1, std=0.5)
    batch = random_batch(B=64, K=3, vocab_size=31, seed=3)
    found = {}
    for size in (1, 7, 64):
        pieces = [[t[at : at + size] for t in batch] for at in range(0, 64, size)]
        found[size] = [h for piece in pieces for (h, *_) in model.decode(*piece, DecodingConfig(num_beams=2))]
    for size in (1, 7):
        assert [h.token_ids for h in found[size]] == [h.token_ids for h in found[64]]
        assert [h.log_prob for h in found[size]] == pytest.approx([h.log_prob for h in found[64]], abs=1e-4)


def test_b30_b33_every_prediction_has_the_declared_columns_and_plain_lists():
    from rag_core.schemas import PREDICTIONS

    for prediction in (Prediction("a", "no_passages"), Prediction("b", "failed", error="x")):
        row = prediction.to_row()
        assert set(row) == set(PREDICTIONS.names)
        assert json.loads(json.dumps(row))["candidates"] == []


def test_b34_words_that_look_like_nothing_stay_texts():
    """A label may be called NA, a passage may say null; an empty answer is a text, no missing one."""
    vocabulary = {w: i for i, w in enumerate(WORDS)}
    layout = TargetLayout(start=2, bos=None, eos=2, pad=1)
    model = RagModel(
        Generator(tiny_bart(vocab_size=len(WORDS)), layout, word_tokenizer()), kind="token", n_docs=1
    ).eval()
    questions = [Question("1", "NA", ()), Question("2", "null", ())]
    passages = [[Passage("nan", "None", "null")], [Passage("", "", "")]]
    scores = [[0.0], [0.0]]
    found = answer_questions(model, questions, passages, scores, DecodingConfig(max_length=1))
    assert [(p.status, p.prediction, p.log_prob) for p in found] == [("ok", "", 0.0)] * 2
    assert [p.passage_ids for p in found] == [("nan",), ("",)]
    assert vocabulary["<unk>"] == 3


def test_equal_scores_keep_their_order():
    """B39: two passages of equal score, in either order, give one answer."""
    layout = TargetLayout(start=2, bos=None, eos=2, pad=1)
    model = RagModel(Generator(tiny_bart(vocab_size=len(WORDS)), layout, word_tokenizer()), kind="sequence")
    passages = [Passage("a", "ada", "lives in oslo"), Passage("b", "bea", "lives in rome")]
    config = DecodingConfig(num_beams=3, num_return_sequences=3, max_length=5)
    question = [Question("q", "where is ada", ())]
    answers = [
        answer_questions(model.eval(), question, [order], [[1.0, 1.0]], config)[0]
        for order in (passages, passages[::-1])
    ]
    assert [t for t, _ in answers[0].candidates] == [t for t, _ in answers[1].candidates]
    assert answers[0].doc_posterior == pytest.approx(answers[1].doc_posterior[::-1], abs=1e-5)
