"""Scoring candidates under every passage, with exact pruning.

The candidates of a question form a tree of prefixes. Level by level, every passage whose beam did not
make a prefix makes it now, from cached keys and values; the log-probabilities of the tokens that
follow come from the kept hidden states. After each level two things are dropped, neither of which can
change a result:

- a candidate whose upper bound (tokens still to come cost nothing) lies below the best score that
  enough others reach already with the passages that have finished them;
- a (passage, candidate) pair so unlikely that adding it to the candidate's sum would not change the
  sum in float32 (its bound lies `NEGLIGIBLE` nats below what the sum has for certain).

Shapes: K passages of a question, C candidates, T scored tokens, N passages of all questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from rag_core.decoding.nodes import NodeDecoder

Row = tuple[int, ...]
MARGIN = 1e-3  # nats by which a bound must be beaten: far more than float32 rounding in the sums
NEGLIGIBLE = 25.0  # e^-25 · 50 passages < 2^-24: lost in float32


@dataclass
class Candidates:
    """One question's candidates: `partial[c, k]` is log p of the tokens scored so far under passage k."""

    passages: list[int]  # the decoder's passage numbers of this question
    prior_K: np.ndarray
    rows: list[Row]
    partial_CK: np.ndarray = field(init=False)
    done_CK: np.ndarray = field(init=False)
    alive_CK: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        shape = (len(self.rows), len(self.passages))
        self.partial_CK = np.zeros(shape)
        self.done_CK = np.repeat([[len(row) < 2] for row in self.rows], shape[1], axis=1).astype(bool)
        self.alive_CK = np.ones(shape, dtype=bool)

    def upper_C(self) -> np.ndarray:
        return _logsumexp(self.prior_K + self.partial_CK)

    def lower_C(self) -> np.ndarray:
        return _logsumexp(np.where(self.done_CK, self.prior_K + self.partial_CK, -np.inf))

    def prune(self, n_best: int) -> None:
        """Drop what cannot change the n best candidates or their scores."""
        upper_C, lower_C = self.upper_C(), self.lower_C()
        if len(self.rows) > n_best:
            threshold = np.partition(lower_C, -n_best)[-n_best]
            self.alive_CK &= (upper_C >= threshold - MARGIN)[:, None]
        bound_CK = self.prior_K + self.partial_CK
        self.alive_CK &= bound_CK >= (lower_C - NEGLIGIBLE)[:, None]


def score_candidates(decoder: NodeDecoder, questions: Sequence[Candidates], pad: int, n_best: int) -> None:
    """Fill `partial_CK` so that the n best candidates of each question are scored exactly."""
    found = _node_tables(decoder)
    depth = 1
    while True:
        longest = max((len(row) for q in questions for row in q.rows), default=0)
        if depth >= longest:
            return
        wanted = _missing_nodes(questions, found, depth)
        if wanted:
            _expand(decoder, wanted, found)
        _add_level(decoder, questions, found, depth, pad)
        for question in questions:
            question.prune(n_best)
        depth += 1


def _node_tables(decoder: NodeDecoder) -> list[dict[Row, int]]:
    """For each passage: prefix → node, over the nodes its beam has made."""
    tokens, parents = decoder.tokens_NM.tolist(), decoder.parents_NM.tolist()
    tables: list[dict[Row, int]] = []
    for token_M, parent_M in zip(tokens, parents):
        prefix_of: dict[int, Row] = {-1: ()}
        table: dict[Row, int] = {}
        for node, (token, parent) in enumerate(zip(token_M, parent_M)):
            if parent in prefix_of:
                prefix_of[node] = (*prefix_of[parent], token)
                table.setdefault(prefix_of[node], node)
        tables.append(table)
    return tables


def _missing_nodes(
    questions: Sequence[Candidates], found: list[dict[Row, int]], depth: int
) -> dict[int, list[Row]]:
    """The prefixes of `depth` tokens that passages still have to make, for pairs that are alive."""
    wanted: dict[int, list[Row]] = {}
    for question in questions:
        for c, row in enumerate(question.rows):
            if len(row) <= depth or not question.alive_CK[c].any():
                continue
            prefix = row[:depth]
            for k in question.alive_CK[c].nonzero()[0].tolist():
                passage = question.passages[k]
                if prefix not in found[passage]:
                    found[passage][prefix] = -1  # taken; its number comes with `_expand`
                    wanted.setdefault(passage, []).append(prefix)
    return wanted


def _expand(decoder: NodeDecoder, wanted: dict[int, list[Row]], found: list[dict[Row, int]]) -> None:
    """Make the wanted nodes of all passages in one step, short lists filled up with nodes of nobody."""
    passages = sorted(wanted)
    if 4 * len(passages) >= 3 * decoder.n_passages:
        passages = list(range(decoder.n_passages))  # a few idle rows cost less than copying keys
    width, first = max(map(len, wanted.values())), decoder.n_nodes
    tokens_RH = np.zeros((len(passages), width), dtype=np.int64)
    parents_RH, valid_RH = np.zeros_like(tokens_RH), np.zeros(tokens_RH.shape, dtype=bool)
    for r, passage in enumerate(passages):
        for h, prefix in enumerate(wanted.get(passage, ())):
            tokens_RH[r, h], valid_RH[r, h] = prefix[-1], True
            parents_RH[r, h] = found[passage][prefix[:-1]]
            found[passage][prefix] = first + h
    whole, device = len(passages) == decoder.n_passages, decoder.device
    decoder.activate(None if whole else torch.tensor(passages, device=device))
    tensors = [torch.from_numpy(x).to(device) for x in (tokens_RH, parents_RH, valid_RH)]
    depth = len(next(iter(wanted.values()))[0]) - 1
    decoder.expand(tensors[0], tensors[1] if depth else None, depth, tensors[2])


def _add_level(
    decoder: NodeDecoder, questions: Sequence[Candidates], found: list[dict[Row, int]], depth: int, pad: int
) -> None:
    """Add log p of every candidate's token at `depth` under the passages that made its prefix."""
    cells: list[tuple[Candidates, int, int]] = []
    passages, nodes, tokens = [], [], []
    for question in questions:
        for c, row in enumerate(question.rows):
            if len(row) <= depth:
                continue
            last = len(row) == depth + 1
            for k in question.alive_CK[c].nonzero()[0].tolist():
                question.done_CK[c, k] = last
                if row[depth] != pad:
                    passage = question.passages[k]
                    cells.append((question, c, k))
                    passages.append(passage)
                    nodes.append(found[passage][row[:depth]])
                    tokens.append(row[depth])
    if not cells:
        return
    at = [torch.tensor(x, device=decoder.device) for x in (passages, nodes, tokens)]
    for (question, c, k), value in zip(cells, decoder.child_log_probs(*at).tolist()):
        question.partial_CK[c, k] += value


def _logsumexp(values_CK: np.ndarray) -> np.ndarray:
    top_C1 = values_CK.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        total_C = np.log(np.exp(values_CK - top_C1).sum(axis=1)) + top_C1[:, 0]
    return np.where(np.isneginf(top_C1[:, 0]), -np.inf, total_C)
