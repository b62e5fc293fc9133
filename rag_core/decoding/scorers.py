"""What a search sees of a model: next-token log-probabilities per problem.

A problem is a question for RAG-Token (its passages are marginalised at every step) and a single
passage for RAG-Sequence. Shapes: P problems, K passages of a problem (1 for RAG-Sequence), N passages
in all, H hypotheses, C candidates, V vocabulary.
"""

from __future__ import annotations

import torch

from rag_core.decoding.nodes import NodeDecoder, NodeSteps
from rag_core.models.generator import Generator
from rag_core.models.rag_model import EncodedContexts


class PassageScorer:
    """RAG-Sequence: log p(y_i | x, z, y_<i); every passage is a problem of its own."""

    def __init__(self, generator: Generator, contexts: EncodedContexts):
        self.nodes = NodeDecoder(generator, contexts.states_NSD, contexts.mask_NS)
        self.decoder = NodeSteps(self.nodes)
        self.n_problems = len(contexts.mask_NS)

    def step(self, tokens_PH: torch.Tensor, parents_PH: torch.Tensor | None) -> torch.Tensor:
        """Log-probabilities of the next token [P, H, V]."""
        logits_PHV, lse_PH = self.decoder.step(tokens_PH, parents_PH)
        self._log_probs_PHV = logits_PHV.sub_(lse_PH[:, :, None])
        return self._log_probs_PHV

    def chosen(self, parents_PC: torch.Tensor, tokens_PC: torch.Tensor) -> torch.Tensor:
        """log p(token | x, z, prefix) of chosen continuations under each passage [P, C, K=1]."""
        P, _, V = self._log_probs_PHV.shape
        return self._log_probs_PHV.view(P, -1).gather(1, parents_PC * V + tokens_PC)[:, :, None]

    def keep(self, problems: torch.Tensor) -> None:
        self.decoder.keep(problems)


class MarginalScorer:
    """RAG-Token: log Σ_z p(z|x) p(y_i | x, z, y_<i); every question is a problem."""

    def __init__(self, generator: Generator, contexts: EncodedContexts):
        self.decoder = NodeSteps(NodeDecoder(generator, contexts.states_NSD, contexts.mask_NS))
        self.question_N = contexts.question_N
        self.prior_PK = contexts.prior_BK
        self.cell_N = contexts.present_BK.flatten().nonzero()[:, 0]
        self.n_problems = len(self.prior_PK)

    def step(self, tokens_PH: torch.Tensor, parents_PH: torch.Tensor | None) -> torch.Tensor:
        """Log-probabilities of the next token under the marginal [P, H, V]."""
        parents_NH = None if parents_PH is None else parents_PH[self.question_N]
        logits_NHV, lse_NH = self.decoder.step(tokens_PH[self.question_N], parents_NH)
        prior_N = self.prior_PK.flatten()[self.cell_N]
        joint_NHV = logits_NHV.add_((prior_N[:, None] - lse_NH)[:, :, None])
        self._joint_NHV, self._prior_N = joint_NHV, prior_N
        P, K = self.prior_PK.shape
        if len(joint_NHV) == P * K:
            return torch.logsumexp(joint_NHV.view(P, K, *joint_NHV.shape[1:]), dim=1)
        counts = torch.bincount(self.question_N, minlength=P).tolist()
        return torch.stack([torch.logsumexp(j, dim=0) for j in joint_NHV.split(counts)])

    def chosen(self, parents_PC: torch.Tensor, tokens_PC: torch.Tensor) -> torch.Tensor:
        """log p(token | x, z, prefix) of chosen continuations [P, C, K]; 0 where a passage is absent."""
        N, _, V = self._joint_NHV.shape
        index_NC = (parents_PC * V + tokens_PC)[self.question_N]
        chosen_NC = self._joint_NHV.view(N, -1).gather(1, index_NC) - self._prior_N[:, None]
        P, K = self.prior_PK.shape
        out_MC = chosen_NC.new_zeros((P * K, tokens_PC.shape[1]))
        out_MC[self.cell_N] = chosen_NC
        return out_MC.view(P, K, -1).transpose(1, 2)

    def keep(self, problems: torch.Tensor) -> None:
        P, K = self.prior_PK.shape
        new_of_P = torch.full((P,), -1, dtype=torch.long, device=problems.device)
        new_of_P[problems] = torch.arange(len(problems), device=problems.device)
        rows = (new_of_P[self.question_N] >= 0).nonzero()[:, 0]
        self.decoder.keep(rows)
        column_N = self.cell_N[rows] % K
        self.question_N = new_of_P[self.question_N[rows]]
        self.cell_N = self.question_N * K + column_N
        self.prior_PK = self.prior_PK[problems]
