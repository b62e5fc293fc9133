"""The tree decoder against the plain one: branching, subsets of passages, both families."""

import pytest
import torch

from rag_core.decoding.nodes import NodeDecoder, NodeSteps
from tests.reference.prefix_decoder import PrefixDecoder
from tests.reference.tiny_models import generator_of, random_batch, tiny_bart, tiny_t5

MODELS = {
    "bart": lambda: tiny_bart(vocab_size=11),
    "t5": lambda: tiny_t5(vocab_size=11),
    "t5 gated": lambda: tiny_t5(vocab_size=11, gated=True),
}


def contexts(generator, N=5):
    ids, mask, _ = random_batch(B=1, K=N, vocab_size=11)
    ids, mask = ids[0], mask[0]
    return generator.encode(ids, mask), mask


@pytest.mark.parametrize("family", MODELS)
@torch.no_grad()
def test_steps_equal_the_whole_prefix_through_the_decoder(family):
    generator = generator_of(MODELS[family]())
    states, mask = contexts(generator)
    plain, tree = PrefixDecoder(generator, states, mask), NodeSteps(NodeDecoder(generator, states, mask))
    g = torch.Generator().manual_seed(1)
    beams, alive = 1, torch.arange(5)
    for step in range(6):
        wide = 3 if step else 1
        parents = torch.randint(0, beams, (len(alive), wide), generator=g) if step else None
        tokens = torch.randint(0, 11, (len(alive), wide), generator=g)
        expected = plain.step(tokens, parents)
        logits, _ = tree.step(tokens, parents)
        torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)
        beams = wide
        if step in (1, 3):
            keep = torch.arange(len(alive))[step != 1 :: 2] if step == 3 else torch.tensor([0, 2, 3])
            plain.keep(keep)
            tree.keep(keep)
            alive = alive[keep]


@pytest.mark.parametrize("family", MODELS)
@torch.no_grad()
def test_children_of_nodes_that_exist_cost_a_dot_product(family):
    generator = generator_of(MODELS[family]())
    states, mask = contexts(generator)
    nodes = NodeDecoder(generator, states, mask)
    steps = NodeSteps(nodes)
    steps.step(torch.full((5, 1), 2), None)
    logits, _ = steps.step(torch.full((5, 2), 4), torch.zeros((5, 2), dtype=torch.long))
    log_probs = torch.log_softmax(logits, -1)
    passages, tokens = torch.tensor([0, 3, 4]), torch.tensor([5, 6, 10])
    found = nodes.child_log_probs(passages, torch.tensor([1, 2, 2]), tokens)
    expected = log_probs[passages, torch.tensor([0, 1, 1]), tokens]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_a_row_longer_than_the_positions_is_refused():
    generator = generator_of(tiny_bart(vocab_size=11))
    steps = NodeSteps(NodeDecoder(generator, *contexts(generator)))
    with pytest.raises(ValueError, match="the generator holds 64"):
        for _ in range(65):
            steps.step(torch.full((5, 1), 4), None)
