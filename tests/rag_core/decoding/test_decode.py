"""The ways of decoding: against enumeration, and log_prob against nll."""

import math

import pytest
import torch

from rag_core import DecodingConfig
from tests.reference import enumerate_rag
from tests.reference.tiny_models import random_batch, tiny_rag

CONFIGS = [
    DecodingConfig(max_length=5),
    DecodingConfig(num_beams=3, num_return_sequences=3, max_length=5),
    DecodingConfig(num_beams=4, num_return_sequences=2, max_length=6, length_penalty=0.5, min_length=4),
    DecodingConfig(num_beams=2, num_return_sequences=2, max_length=5, forced_eos_token_id=2),
    DecodingConfig(num_beams=2, max_length=7, no_repeat_ngram_size=2, forced_bos_token_id=3),
]


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("kind", ["sequence", "token"])
@torch.no_grad()
def test_log_prob_is_minus_nll_of_the_row(kind, config):
    model = tiny_rag(kind, vocab_size=9)
    batch = random_batch(B=3, K=4, vocab_size=9)
    batch[2][1, 2:] = -math.inf
    for b, found in enumerate(model.decode(*batch, config)):
        assert 1 <= len(found) <= config.num_return_sequences
        for h in found:
            nll = model.nll(*(t[b : b + 1] for t in batch), torch.tensor([h.token_ids]))
            assert h.log_prob == pytest.approx(-nll.item(), abs=1e-5)
            sums = h.doc_posterior.sum(dim=-1)
            torch.testing.assert_close(sums, torch.ones_like(sums))
            assert h.doc_posterior.shape == ((len(h.token_ids) - 1, 4) if kind == "token" else (4,))
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        assert len({tuple(h.token_ids) for h in found}) == len(found)


@pytest.mark.parametrize("decoding", ["thorough", "fast"])
@torch.no_grad()
def test_wide_beams_find_the_best_row_of_all(decoding):
    """With beams as wide as the space, thorough is the argmax over every row of five tokens."""
    model = tiny_rag("sequence", seed=3)
    batch = random_batch(B=2, K=3, seed=3)
    rows = [r for r in enumerate_rag.all_rows(2, 2, range(5), 4)]
    config = DecodingConfig(
        decoding=decoding, num_beams=125, max_length=4, length_penalty=0.0, early_stopping="never"
    )
    for b, found in enumerate(model.decode(*batch, config)):
        one = [t[b : b + 1].expand(len(rows), *t.shape[1:]) for t in batch]
        log_probs = -model.nll(*one, model.target_layout.batch(rows))
        best = int(log_probs.argmax())
        assert found[0].log_prob == pytest.approx(log_probs[best].item(), abs=1e-5)


@torch.no_grad()
def test_wide_beams_of_rag_token_find_the_best_row_of_all():
    model = tiny_rag("token", seed=4)
    batch = random_batch(B=2, K=3, seed=4)
    rows = [r for r in enumerate_rag.all_rows(2, 2, range(5), 4) if 1 not in r]
    config = DecodingConfig(
        num_beams=125, num_return_sequences=125, max_length=4, length_penalty=0.0, early_stopping="never"
    )
    for b, found in enumerate(model.decode(*batch, config)):
        one = [t[b : b + 1].expand(len(rows), *t.shape[1:]) for t in batch]
        log_probs = -model.nll(*one, model.target_layout.batch(rows))
        best = next(h for h in found if 1 not in h.token_ids)
        assert best.log_prob == pytest.approx(log_probs.max().item(), abs=1e-5)


@torch.no_grad()
def test_thorough_is_never_worse_than_fast():
    model = tiny_rag("sequence", vocab_size=9)
    for seed in range(20):
        batch = random_batch(B=2, K=3, vocab_size=9, seed=seed)
        ways = [
            model.decode(*batch, DecodingConfig(decoding=w, num_beams=2, max_length=5))
            for w in ("thorough", "fast")
        ]
        for thorough, fast in zip(*ways):
            assert thorough[0].log_prob >= fast[0].log_prob - 1e-5
            assert fast[0].score <= fast[0].log_prob + 1e-5


@pytest.mark.parametrize("kind", ["sequence", "token"])
@torch.no_grad()
def test_the_answer_does_not_depend_on_the_batch(kind):
    model = tiny_rag(kind, vocab_size=9)
    batch = random_batch(B=6, K=3, vocab_size=9, S=12)
    config = DecodingConfig(num_beams=3, max_length=6)
    together = model.decode(*batch, config)
    for b in range(6):
        (alone,) = model.decode(*(t[b : b + 1] for t in batch), config)
        assert alone[0].token_ids == together[b][0].token_ids
        assert alone[0].log_prob == pytest.approx(together[b][0].log_prob, abs=1e-5)


@pytest.mark.parametrize("kind", ["sequence", "token"])
@torch.no_grad()
def test_labels_are_one_scored_token_and_the_models_coincide(kind):
    model = tiny_rag(kind, vocab_size=9)
    batch = random_batch(B=2, K=3, vocab_size=9)
    config = DecodingConfig(allowed_answers=(4, 6, 8), num_return_sequences=3)
    other = tiny_rag("token" if kind == "sequence" else "sequence", vocab_size=9).decode(*batch, config)
    for b, found in enumerate(model.decode(*batch, config)):
        assert sorted(h.token_ids[1] for h in found) == [4, 6, 8]
        assert [h.token_ids for h in found] == [h.token_ids for h in other[b]]
        for h in found:
            assert len(h.token_ids) == 2
            nll = model.nll(*(t[b : b + 1] for t in batch), torch.tensor([h.token_ids]))
            assert h.log_prob == pytest.approx(-nll.item(), abs=1e-5)


@pytest.mark.parametrize("kind", ["sequence", "token"])
@torch.no_grad()
def test_edges(kind):
    model = tiny_rag(kind, vocab_size=9)
    batch = random_batch(B=2, K=3, vocab_size=9)
    (empty, _) = model.decode(*batch, DecodingConfig(max_length=1))
    assert (empty[0].token_ids, empty[0].log_prob) == ([2], 0.0)
    (many, _) = model.decode(*batch, DecodingConfig(num_beams=20, num_return_sequences=20, max_length=2))
    assert len(many) == 9  # beams > vocabulary: every row there is, once
    with pytest.raises(ValueError, match="eval mode"):
        model.train().decode(*batch, DecodingConfig())


def test_configs_that_make_no_sense_are_refused():
    for options, message in (
        ({"decoding": "best"}, "'best'"),
        ({"num_beams": 0}, "num_beams 0"),
        ({"decoding": "greedy", "num_beams": 2}, "greedy"),
        ({"early_stopping": "maybe"}, "maybe"),
        ({"allowed_answers": ()}, "allowed_answers"),
    ):
        with pytest.raises(ValueError, match=message):
            DecodingConfig(**options)
    with pytest.raises(ValueError, match="unknown decoding option 'beams'"):
        DecodingConfig.from_dict({"beams": 4})
    layout = tiny_rag().target_layout
    with pytest.raises(ValueError, match="does not exist for token models"):
        DecodingConfig(decoding="thorough").resolved("token", layout)
    assert DecodingConfig(num_beams=4).resolved("token", layout).to_json()["decoding"] == "beam"
