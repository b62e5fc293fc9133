"""Scoring through the generator: padding, gradients, and inputs that are refused."""

import math

import pytest
import torch

from tests.reference.tiny_models import random_batch, tiny_rag

LABELS = torch.tensor([[2, 5, 6, 2], [2, 7, 2, 1]])


@pytest.mark.parametrize("kind", ["sequence", "token"])
@torch.no_grad()
def test_padding_changes_nothing(kind):
    model = tiny_rag(kind, vocab_size=9)
    ids, mask, scores = random_batch(B=2, K=3, vocab_size=9)
    expected = model.nll(ids, mask, scores, LABELS)
    wide = [torch.cat([t, torch.full((2, 3, 9), fill)], dim=2) for t, fill in ((ids, 1), (mask, 0))]
    more = torch.cat([LABELS, torch.ones((2, 3), dtype=torch.long)], dim=1)
    torch.testing.assert_close(model.nll(*wide, scores, more), expected, atol=1e-5, rtol=1e-5)
    one_by_one = [
        model.nll(ids[b : b + 1], mask[b : b + 1], scores[b : b + 1], LABELS[b : b + 1]) for b in (0, 1)
    ]
    torch.testing.assert_close(torch.cat(one_by_one), expected, atol=1e-5, rtol=1e-5)


def test_left_padding_is_refused():
    model = tiny_rag(vocab_size=9)
    ids, mask, scores = random_batch(B=2, K=3, vocab_size=9)
    with pytest.raises(ValueError, match="padded on the right"):
        model.nll(ids.flip(2), mask.flip(2), scores, LABELS)


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_gradient_of_doc_scores_is_prior_minus_posterior(kind):
    """∂nll/∂s_z = p(z|x) − p(z|x,y) for RAG-Sequence; per token, summed, for RAG-Token."""
    model = tiny_rag(kind, vocab_size=9)
    ids, mask, scores = random_batch(B=2, K=3, vocab_size=9, spread=1.0)
    scores.requires_grad_(True)
    model.nll(ids, mask, scores, LABELS).sum().backward()
    with torch.no_grad():
        contexts = model.encode(ids, mask, scores)
        prior, posterior = contexts.prior_BK.exp(), model.posterior(contexts, LABELS)
        if kind == "sequence":
            expected = prior - posterior
        else:
            scored = (LABELS[:, 1:] != 1)[:, :, None]
            expected = ((prior[:, None] - posterior) * scored).sum(dim=1)
    torch.testing.assert_close(scores.grad, expected, atol=1e-5, rtol=1e-4)


def test_gradient_equals_finite_differences():
    model = tiny_rag("token", vocab_size=9).double()
    model.generator.model.double()
    ids, mask, scores = random_batch(B=1, K=3, vocab_size=9, spread=1.0)
    scores = scores.double().requires_grad_(True)
    model.nll(ids, mask, scores, LABELS[:1]).sum().backward()
    step = 1e-2
    for k in range(3):
        up, down = scores.detach().clone(), scores.detach().clone()
        up[0, k] += step
        down[0, k] -= step
        with torch.no_grad():
            slope = (model.nll(ids, mask, up, LABELS[:1]) - model.nll(ids, mask, down, LABELS[:1])) / (
                2 * step
            )
        assert slope.item() == pytest.approx(scores.grad[0, k].item(), abs=2e-3)


def test_shapes_that_do_not_agree_are_refused():
    model = tiny_rag(vocab_size=9)
    ids, mask, scores = random_batch(B=2, K=3, vocab_size=9)
    with pytest.raises(ValueError, match=r"\[B, K, S\]"):
        model.nll(ids, mask, scores[:, :2], LABELS)
    with pytest.raises(ValueError, match="has no token"):
        model.nll(ids, mask * 0, scores, LABELS)
    with pytest.raises(ValueError, match="no passage"):
        model.nll(ids, mask, torch.full_like(scores, -math.inf), LABELS)


@pytest.mark.parametrize("kind", ["sequence", "token"])
@torch.no_grad()
def test_masks_and_ids_of_any_kind_say_the_same(kind):
    model = tiny_rag(kind, vocab_size=9)
    ids, mask, scores = random_batch(B=2, K=3, vocab_size=9)
    expected = model.nll(ids, mask, scores, LABELS)
    for other in (mask.bool(), mask.float(), mask.int(), 2 * mask):
        assert torch.equal(model.nll(ids, other, scores, LABELS), expected)
    assert torch.equal(model.nll(ids.int(), mask, scores.double(), LABELS.int()), expected)
    assert model.nll(ids[:0], mask[:0], scores[:0], LABELS[:0]).shape == (0,)


@pytest.mark.parametrize(
    "labels, message",
    [
        (
            torch.tensor([[2, 5, 6, 2], [2, 7, 2, -100]]),
            "token id -100; the vocabulary has 9, and padding is 1",
        ),
        (torch.tensor([[2, 5, 6, 2], [2, 7, 2, 9]]), "token id 9"),
        (LABELS[:1], r"labels \[1, 4\] of torch.int64 for 2 questions"),
        (LABELS[0], r"labels \[4\]"),
        (LABELS.float(), "torch.float32"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels, message):
    model = tiny_rag(vocab_size=9)
    with pytest.raises(ValueError, match=message):
        model.nll(*random_batch(B=2, K=3, vocab_size=9), labels)


def test_a_mask_of_another_shape_is_refused():
    """Cut to the mask's width the contexts would give other numbers without a word."""
    model = tiny_rag(vocab_size=9)
    ids, mask, scores = random_batch(B=2, K=3, vocab_size=9)
    with pytest.raises(ValueError, match=r"attention_mask \[2, 3, 4\].*do not agree"):
        model.nll(ids, mask[:, :, :4], scores, LABELS)
