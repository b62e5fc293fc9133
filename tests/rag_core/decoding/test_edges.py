"""Decoding at its edges: rows that cannot go on, token ids that do not exist, models that overflow."""

import math

import pytest
import torch

from rag_core import DecodingConfig
from tests.reference.tiny_models import random_batch, tiny_rag

WAYS = [("sequence", "thorough"), ("sequence", "fast"), ("token", None)]


@pytest.mark.parametrize("kind, decoding", WAYS)
@pytest.mark.parametrize("beams", [1, 2, 6])
@torch.no_grad()
def test_rows_end_where_every_token_is_banned(kind, decoding, beams):
    """Five tokens, none twice: after four more nothing may follow, and EOS, the start token, is banned."""
    model = tiny_rag(kind)
    batch = random_batch(B=2, K=3)
    config = DecodingConfig(decoding=decoding, num_beams=beams, no_repeat_ngram_size=1, max_length=12)
    for b, found in enumerate(model.decode(*batch, config)):
        assert found
        for h in found:
            assert sorted(h.token_ids) == [0, 1, 2, 3, 4]
            nll = model.nll(*(t[b : b + 1] for t in batch), torch.tensor([h.token_ids]))
            assert h.log_prob == pytest.approx(-float(nll), abs=1e-5)


@pytest.mark.parametrize("kind, decoding", WAYS)
@torch.no_grad()
def test_a_token_that_the_model_excludes_is_never_generated(kind, decoding):
    """Some checkpoints give padding a bias of −inf."""
    model = tiny_rag(kind, vocab_size=9)
    model.generator.model.final_logits_bias[0, 1] = -math.inf
    batch = random_batch(B=3, K=3, vocab_size=9)
    config = DecodingConfig(decoding=decoding, num_beams=4, num_return_sequences=4, max_length=6)
    for found in model.decode(*batch, config):
        for h in found:
            assert 1 not in h.token_ids and math.isfinite(h.log_prob) and h.log_prob < 0
            sums = h.doc_posterior.sum(dim=-1)
            torch.testing.assert_close(sums, torch.ones_like(sums))


@pytest.mark.parametrize("kind, decoding", WAYS)
@pytest.mark.parametrize("beams", [1, 3])
@torch.no_grad()
def test_a_model_that_overflows_is_an_error_and_no_answer(kind, decoding, beams):
    model = tiny_rag(kind, vocab_size=9)
    model.generator.model.final_logits_bias[0, 5] = math.nan
    batch = random_batch(B=2, K=3, vocab_size=9)
    with pytest.raises(ValueError, match="not finite"):
        model.decode(*batch, DecodingConfig(decoding=decoding, num_beams=beams, max_length=4))
    with pytest.raises(ValueError, match="not finite"):
        model.decode(*batch, DecodingConfig(allowed_answers=(4, 6)))


@pytest.mark.parametrize("kind, decoding", WAYS)
@torch.no_grad()
def test_priors_at_the_ends_of_float32(kind, decoding):
    model = tiny_rag(kind, vocab_size=9)
    ids, mask, _ = random_batch(B=3, K=3, vocab_size=9)
    scores = torch.tensor([[0.0, -1e5, -3e38], [3e38, 1.0, -3e38], [-400.0, -math.inf, -400.0]])
    config = DecodingConfig(decoding=decoding, num_beams=3, max_length=6)
    for b, found in enumerate(model.decode(ids, mask, scores, config)):
        nll = model.nll(
            ids[b : b + 1], mask[b : b + 1], scores[b : b + 1], torch.tensor([found[0].token_ids])
        )
        assert found[0].log_prob == pytest.approx(-float(nll), abs=1e-5)
        last = found[0].doc_posterior.reshape(-1, 3)[-1]
        assert last[1] == 0 if b != 1 else last[0] == 1


@pytest.mark.parametrize("kind, decoding", WAYS)
@torch.no_grad()
def test_log_probabilities_far_below_120(kind, decoding):
    """Rows of 60 tokens without an end in sight: products of probabilities would be 0 in float32."""
    model = tiny_rag(kind, vocab_size=31, std=0.1)
    batch = random_batch(B=1, K=3, vocab_size=31)
    config = DecodingConfig(
        decoding=decoding, num_beams=2, max_length=60, min_length=60, no_repeat_ngram_size=2,
        length_penalty=0.0,
    )  # fmt: skip
    ((best, *_),) = model.decode(*batch, config)
    assert best.log_prob < -120 and len(best.token_ids) == 60
    assert best.log_prob == pytest.approx(-float(model.nll(*batch, torch.tensor([best.token_ids]))), rel=1e-5)


@pytest.mark.parametrize("kind, decoding", WAYS)
@torch.no_grad()
def test_one_to_fifty_passages_and_uneven_numbers_of_them(kind, decoding):
    model = tiny_rag(kind, vocab_size=9)
    ids, mask, scores = random_batch(B=50, K=50, vocab_size=9, S=5)
    for b in range(50):
        scores[b, b + 1 :] = -math.inf  # question b has b + 1 passages
    scores = torch.stack([s[torch.randperm(50, generator=torch.Generator().manual_seed(b))]
                          for b, s in enumerate(scores)])  # fmt: skip
    config = DecodingConfig(decoding=decoding, num_beams=2, max_length=5)
    found = model.decode(ids, mask, scores, config)
    for b in (0, 1, 9, 30, 49):
        there = ~torch.isneginf(scores[b])
        alone = [t[b : b + 1][:, there] for t in (ids, mask, scores)]
        assert alone[0].shape[1] == b + 1
        ((best, *_),) = model.decode(*alone, config)
        assert found[b][0].token_ids == best.token_ids
        assert found[b][0].log_prob == pytest.approx(best.log_prob, abs=1e-4)
        posterior = found[b][0].doc_posterior[..., there]
        torch.testing.assert_close(posterior, best.doc_posterior, atol=1e-4, rtol=1e-3)
        assert float(found[b][0].doc_posterior[..., ~there].sum()) == 0


@pytest.mark.parametrize("kind, decoding", WAYS)
@torch.no_grad()
def test_equal_passages_count_twice_and_equal_hypotheses_once(kind, decoding):
    model = tiny_rag(kind, vocab_size=9)
    ids, mask, scores = (t[:, [0, 0, 1, 0]] for t in random_batch(B=2, K=2, vocab_size=9))
    config = DecodingConfig(decoding=decoding, num_beams=3, num_return_sequences=3, max_length=5)
    once = (ids[:, 1:3], mask[:, 1:3], torch.stack([scores[:, 0] + math.log(3), scores[:, 2]], dim=1))
    for found, other in zip(model.decode(ids, mask, scores, config), model.decode(*once, config)):
        rows = [tuple(h.token_ids) for h in found]
        assert len(set(rows)) == len(rows) and rows[0] == tuple(other[0].token_ids)
        assert found[0].log_prob == pytest.approx(other[0].log_prob, abs=1e-5)


@pytest.mark.parametrize("kind", ["sequence", "token"])
@torch.no_grad()
def test_token_ids_beyond_the_vocabulary_are_named(kind):
    model = tiny_rag(kind, vocab_size=9)
    batch = random_batch(B=1, K=2, vocab_size=9)
    for options, message in (
        ({"eos_token_id": 9}, "eos_token_id 9 lies beyond the vocabulary of 9"),
        ({"decoder_start_token_id": 99}, "decoder_start_token_id 99"),
        ({"forced_bos_token_id": 12}, "forced_bos_token_id 12"),
        ({"allowed_answers": (4, 40)}, "allowed_answers 40"),
        ({"max_length": 500, "min_length": 500}, "the generator holds 64"),
    ):
        with pytest.raises(ValueError, match=message):
            model.decode(*batch, DecodingConfig(**options))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_beams": 2.5}, "num_beams 2.5; right: an integer of at least 1"),
        ({"num_beams": "4"}, "num_beams '4'"),
        ({"num_beams": True}, "num_beams True"),
        ({"max_length": None}, "max_length None"),
        ({"max_length": 0}, "max_length 0"),
        ({"min_length": -1}, "min_length -1"),
        ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size -1"),
        ({"length_penalty": math.nan}, "length_penalty nan"),
        ({"length_penalty": "1"}, "length_penalty '1'"),
        ({"early_stopping": 1}, "early_stopping 1"),
        ({"eos_token_id": -1}, "eos_token_id -1"),
        ({"forced_bos_token_id": "</s>"}, "forced_bos_token_id '</s>'"),
        ({"allowed_answers": "SUPPORTS"}, "right: a list of labels"),
        ({"allowed_answers": (3, -1)}, "right: texts or token ids"),
        ({"allowed_answers": ("yes", "yes")}, "distinct"),
    ],
)
def test_options_of_a_wrong_kind(options, message):
    with pytest.raises(ValueError, match=message):
        DecodingConfig(**options)
