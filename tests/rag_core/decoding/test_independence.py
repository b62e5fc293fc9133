"""An answer depends on its question alone: not on the batch, the order, the padding, or empty places.

`RAGLINE_EXHAUSTIVE=1` asks 500 questions of each model instead of 40.
"""

import os

import pytest
import torch

from rag_core import DecodingConfig
from rag_core.models.rag_model import RagModel
from tests.reference.tiny_models import generator_of, random_batch, tiny_rag, tiny_t5

N = 500 if os.environ.get("RAGLINE_EXHAUSTIVE") else 40
WAYS = {
    "RAG-Token greedy": ("token", DecodingConfig(max_length=6)),
    "RAG-Token beam": ("token", DecodingConfig(num_beams=3, num_return_sequences=2, max_length=6)),
    "thorough": ("sequence", DecodingConfig(num_beams=3, num_return_sequences=2, max_length=6)),
    "fast": ("sequence", DecodingConfig(decoding="fast", num_beams=3, num_return_sequences=2, max_length=6)),
}


def model_of(family, kind):
    if family == "bart":  # without its bias, so that the passages decide
        model = tiny_rag(kind, vocab_size=31, d_model=32, layers=1, std=0.5)
        model.generator.model.final_logits_bias.zero_()
        return model
    return RagModel(generator_of(tiny_t5(vocab_size=31, d_model=32)), kind=kind).eval()


def questions(family):
    """N questions with 1 to 6 passages of 2 to 12 tokens."""
    ids, mask, scores = random_batch(B=N, K=6, S=12, vocab_size=31, seed=7)
    if family == "t5":
        ids = torch.where(mask.bool(), ids, 0)
    n_docs = torch.randint(1, 7, (N, 1), generator=torch.Generator().manual_seed(8))
    return ids, mask, scores.masked_fill(torch.arange(6) >= n_docs, -torch.inf)


def answers(model, batch, config, size):
    return [
        found
        for at in range(0, len(batch[0]), size)
        for found in model.decode(*(t[at : at + size] for t in batch), config)
    ]


def assert_same(found, expected, case):
    """The same rows with the same likelihoods; rows whose likelihoods agree to 1e-4 may change places."""
    assert len(found) == len(expected)
    ties = 0
    for b, (one, other) in enumerate(zip(found, expected)):
        assert len(one) == len(other), (case, b)
        for mine, yours in zip(one, other):
            assert mine.log_prob == pytest.approx(yours.log_prob, abs=1e-4), (case, b)
        ties += [h.token_ids for h in one] != [h.token_ids for h in other]
    assert ties <= N // 100, (case, ties)


@pytest.mark.timeout(1800 if N == 500 else 300)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", ["bart", "t5"])
@torch.no_grad()
def test_an_answer_depends_on_its_question_alone(family, way):
    kind, config = WAYS[way]
    model = model_of(family, kind)
    ids, mask, scores = batch = questions(family)
    expected = answers(model, batch, config, 20)
    assert len({tuple(found[0].token_ids) for found in expected}) > N // 8  # not one answer for all
    assert_same(answers(model, batch, config, 1), expected, "alone")
    assert_same(answers(model, batch, config, 7), expected, "other batches")
    order = torch.randperm(N, generator=torch.Generator().manual_seed(9))
    shuffled = answers(model, [t[order] for t in batch], config, 20)
    assert_same([shuffled[i] for i in order.argsort()], expected, "shuffled")
    wide = [torch.nn.functional.pad(t, (0, 9, 0, 2), value=v) for t, v in ((ids, 1), (mask, 0))]
    wide += [torch.nn.functional.pad(scores, (0, 2), value=-torch.inf)]
    assert_same(answers(model, wide, config, 20), expected, "more padding and empty places")
