"""Both marginals against enumeration, and where they must coincide. Weights are peaked."""

import functools
import math

import pytest
import torch

from rag_core.models import marginals
from tests.reference import enumerate_rag
from tests.reference.tiny_models import random_batch, tiny_rag

PAD = 1


def conditionals(model, ids, mask, b):
    """log p(·|x, z, prefix) straight from the transformers module, one passage at a time."""

    @functools.cache
    def log_probs(z, prefix):
        n = int(mask[b, z].sum())
        out = model.generator.model(
            input_ids=ids[b, z, :n][None], decoder_input_ids=torch.tensor([prefix]), use_cache=False
        )
        return torch.log_softmax(out.logits[0, -1].double(), dim=-1).tolist()

    return log_probs


@pytest.mark.parametrize("kind", ["sequence", "token"])
@pytest.mark.parametrize("seed", [0, 1])
@torch.no_grad()
def test_nll_equals_enumeration_over_five_tokens(kind, seed):
    model = tiny_rag(kind, seed=seed)
    ids, mask, scores = random_batch(B=2, K=3, seed=seed)
    scores[1, 2] = -math.inf
    reference = getattr(enumerate_rag, f"{kind}_log_prob")
    peaked = 0.0
    for b in range(2):
        log_probs = conditionals(model, ids, mask, b)
        prior = enumerate_rag.log_softmax(scores[b].tolist())
        rows = list(enumerate_rag.all_rows(2, 2, range(5), 4))
        expected = [reference(log_probs, prior, row, PAD) for row in rows]
        batch = [t[b : b + 1].expand(len(rows), *t.shape[1:]) for t in (ids, mask, scores)]
        labels = model.target_layout.batch(rows)
        # Rows that end in the padding token are another row's target; enumeration skips it as well.
        nll = model.nll(*batch, labels)
        torch.testing.assert_close(
            -nll.double(), torch.tensor(expected, dtype=torch.double), atol=2e-5, rtol=1e-5
        )
        peaked = max(peaked, max(log_probs(0, (2,))))
        # Rows without padding inside share out all probability.
        if kind == "token":
            whole = [e for row, e in zip(rows, expected) if PAD not in row]
            assert math.exp(enumerate_rag.logsumexp(whole)) <= 1 + 1e-9
    assert math.exp(peaked) > 0.5


@torch.no_grad()
def test_the_marginals_differ_in_general_and_coincide_for_one_scored_token_and_for_one_passage():
    sequence, token = tiny_rag("sequence", vocab_size=9), tiny_rag("token", vocab_size=9)
    batch = random_batch(B=3, K=4, vocab_size=9, spread=0.5)
    long = torch.tensor([[2, 5, 6, 7, 2]] * 3)
    assert not torch.allclose(sequence.nll(*batch, long), token.nll(*batch, long), atol=1e-2)
    one = torch.tensor([[2, 5, 1], [2, 6, 1], [2, 7, 1]])
    torch.testing.assert_close(sequence.nll(*batch, one), token.nll(*batch, one))
    single = [t[:, :1] for t in batch]
    torch.testing.assert_close(sequence.nll(*single, long), token.nll(*single, long))


@pytest.mark.parametrize("kind", ["sequence", "token"])
@torch.no_grad()
def test_absent_passages_take_part_in_nothing(kind):
    model = tiny_rag(kind, vocab_size=9)
    ids, mask, scores = random_batch(B=2, K=4, vocab_size=9)
    labels = torch.tensor([[2, 5, 6, 2], [2, 7, 2, 1]])
    expected = model.nll(ids[:, :3], mask[:, :3], scores[:, :3], labels)
    scores[:, 3] = -math.inf
    torch.testing.assert_close(model.nll(ids, mask, scores, labels), expected)
    mask[:, 3] = 0  # no token at all, as a padded batch has it
    torch.testing.assert_close(model.nll(ids, mask, scores, labels), expected)


def test_very_small_probabilities_stay_finite_and_empty_targets_cost_nothing():
    prior = torch.log_softmax(torch.tensor([[0.0, -300.0, -math.inf]]), dim=1)
    log_probs = torch.full((1, 3, 2), -120.0)
    log_probs[0, 2] = math.nan  # whatever stands in an absent passage's place is never read
    scored = torch.ones((1, 2), dtype=torch.bool)
    assert marginals.sequence_log_likelihood(log_probs, prior, scored).item() == pytest.approx(-240.0)
    assert marginals.token_log_likelihood(log_probs, prior, scored).item() == pytest.approx(-240.0)
    none = torch.zeros_like(scored)
    assert marginals.sequence_log_likelihood(log_probs, prior, none).item() == 0.0
    assert marginals.token_log_likelihood(log_probs, prior, none).item() == 0.0


def test_posteriors_sum_to_one_and_follow_bayes():
    prior = torch.log(torch.tensor([[0.5, 0.5, 0.0]]))
    log_probs = torch.log(torch.tensor([[[0.9, 0.5], [0.1, 0.5], [0.3, 0.3]]]))
    scored = torch.ones((1, 2), dtype=torch.bool)
    per_token = marginals.token_posterior(log_probs, prior, scored)
    torch.testing.assert_close(per_token, torch.tensor([[[0.9, 0.1, 0.0], [0.5, 0.5, 0.0]]]))
    whole = marginals.sequence_posterior(log_probs, prior, scored)
    torch.testing.assert_close(whole, torch.tensor([[0.9, 0.1, 0.0]]))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_scores_that_are_no_scores_are_refused(bad):
    with pytest.raises(ValueError, match="doc_scores of question 1"):
        marginals.doc_log_prior(torch.tensor([[0.0, 1.0], [0.0, bad]]))
    with pytest.raises(ValueError, match="question 0 has no passage"):
        marginals.doc_log_prior(torch.full((1, 2), -math.inf))
