"""Pruning never changes a result: thousands of random trees, with and without it."""

import os

import numpy as np
import pytest
import torch

from rag_core import DecodingConfig
from rag_core.decoding import candidates
from rag_core.decoding.candidates import Candidates, score_candidates
from tests.reference.tiny_models import random_batch, tiny_rag

PAD = 1


class RandomNodes:
    """Stands for `NodeDecoder`: log-probabilities are drawn once per (passage, prefix, token)."""

    device = torch.device("cpu")

    def __init__(self, n_passages, rng, peak):
        self.n_passages, self.n_nodes, self.rng, self.peak = n_passages, 0, rng, peak
        self.tokens_NM = torch.full((n_passages, 1), 2)
        self.parents_NM = torch.full((n_passages, 1), -1)
        self.n_nodes, self.drawn, self.made = 1, {}, 0
        self.rows = None

    def activate(self, rows):
        self.rows = rows

    def expand(self, tokens, parents, depth, valid):
        rows = torch.arange(self.n_passages) if self.rows is None else self.rows
        more_tokens = torch.full((self.n_passages, tokens.shape[1]), -1)
        more_parents = torch.full_like(more_tokens, -2)
        more_tokens[rows] = tokens
        more_parents[rows] = parents.masked_fill(~valid, -2)
        self.tokens_NM = torch.cat([self.tokens_NM, more_tokens], dim=1)
        self.parents_NM = torch.cat([self.parents_NM, more_parents], dim=1)
        self.n_nodes += tokens.shape[1]
        self.made += int(valid.sum())

    def prefix(self, passage, node):
        parent = int(self.parents_NM[passage, node])
        assert parent != -2
        return (*(self.prefix(passage, parent) if parent >= 0 else ()), int(self.tokens_NM[passage, node]))

    def log_prob(self, passage, prefix, token):
        key = (passage, prefix, token)
        if key not in self.drawn:
            self.drawn[key] = -self.rng.exponential(self.peak)
        return self.drawn[key]

    def child_log_probs(self, passages, nodes, tokens):
        found = zip(passages.tolist(), nodes.tolist(), tokens.tolist())
        return torch.tensor([self.log_prob(p, self.prefix(p, n), t) for p, n, t in found], dtype=torch.double)


def case(seed):
    rng = np.random.default_rng(seed)
    K, n_best = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    rows = sorted(
        {(2, *rng.integers(0, 4, int(rng.integers(1, 5))).tolist(), 9) for _ in range(rng.integers(1, 9))}
    )
    prior = rng.normal(0, rng.choice([0.3, 3.0, 15.0]), K)
    prior -= np.logaddexp.reduce(prior)
    nodes = RandomNodes(K, rng, rng.choice([0.2, 2.0, 12.0]))
    question = Candidates(list(range(K)), prior, rows)
    score_candidates(nodes, [question], PAD, n_best)
    exact = [
        np.logaddexp.reduce(
            [
                prior[k]
                + sum(nodes.log_prob(k, row[:i], row[i]) for i in range(1, len(row)) if row[i] != PAD)
                for k in range(K)
            ]
        )
        for row in rows
    ]
    order = sorted(range(len(rows)), key=lambda c: (-exact[c], rows[c]))[:n_best]
    found = question.lower_C()
    best = sorted(range(len(rows)), key=lambda c: (-found[c], rows[c]))[:n_best]
    assert best == order
    np.testing.assert_allclose(found[order], np.array(exact)[order], atol=1e-7)
    whole = K * len({row[:i] for row in rows for i in range(2, len(row))})
    return nodes.made, whole


@pytest.mark.timeout(1800)
def test_pruning_changes_no_result():
    """`RAGLINE_EXHAUSTIVE=1` takes 10,000 trees."""
    n = 10_000 if os.environ.get("RAGLINE_EXHAUSTIVE") else 400
    made, whole = np.sum([case(seed) for seed in range(n)], axis=0)
    assert made < 0.8 * whole  # and it does save work


@torch.no_grad()
def test_thorough_equals_scoring_every_candidate_by_nll(monkeypatch):
    model = tiny_rag("sequence", vocab_size=9)
    config = DecodingConfig(num_beams=3, num_return_sequences=30, max_length=5)
    for seed in range(10):
        batch = random_batch(B=2, K=4, vocab_size=9, seed=seed)
        batch[2][0, 3] = -torch.inf
        every = model.decode(*batch, config)
        best = model.decode(*batch, DecodingConfig(num_beams=3, num_return_sequences=1, max_length=5))
        for b in range(2):
            one = [t[b : b + 1] for t in batch]
            nlls = [float(model.nll(*one, torch.tensor([h.token_ids]))) for h in every[b]]
            assert [-h.log_prob for h in every[b]] == pytest.approx(nlls, abs=1e-5)
            assert nlls == sorted(nlls)
            assert best[b][0].token_ids == every[b][0].token_ids


def test_bounds_enclose_the_sum():
    question = Candidates([0, 1], np.log([0.5, 0.5]), [(2, 5, 9)])
    assert question.upper_C()[0] == pytest.approx(0.0)
    assert question.lower_C()[0] == -np.inf
    question.partial_CK[0] = [-1.0, -3.0]
    question.done_CK[0, 0] = True
    assert question.lower_C()[0] == pytest.approx(np.log(0.5) - 1.0)
    assert question.upper_C()[0] == pytest.approx(np.log(0.5 * np.exp(-1) + 0.5 * np.exp(-3)))
    assert candidates.NEGLIGIBLE > 24 * np.log(2) + np.log(50)
