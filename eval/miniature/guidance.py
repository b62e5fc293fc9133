"""Where the answer stands in the passage, told to mini-bart while it is pretrained.

Reading is two skills: mark the words that answer the question, and copy them in order. Learnt from
the words of the answer alone, both appear only after many thousand examples. Two auxiliary losses
teach them directly; neither leaves a trace in the model's shape, which stays a plain BART:

- tags: two linear heads on the encoder's states say for every input token whether it is in the
  answer and whether it begins it (nothing is tagged where the passage is another's);
- alignment: the heads of the last cross-attention look at the input token that is to be copied.

Legend: N rows, S input tokens, T scored tokens, D width, H guided heads, d head width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from rag_core.models.generator import Generator

GUIDED_HEADS = 4
_POSITIVE = 20.0  # weight of a tagged token: about one in twenty-five is


@dataclass(frozen=True, slots=True)
class Spans:
    """Where each row's answer stands: its first input token (-1: nowhere) and its length."""

    start_N: torch.Tensor
    length_N: torch.Tensor

    def marks(self, width: int) -> torch.Tensor:
        """For each of `width` input tokens whether it is in the answer and whether it begins it [N, S, 2]."""
        at_S = torch.arange(width)
        start_N1 = self.start_N[:, None]
        inside_NS = (start_N1 >= 0) & (at_S >= start_N1) & (at_S < start_N1 + self.length_N[:, None])
        return torch.stack([inside_NS, inside_NS & (at_S == start_N1)], -1)

    def places(self, steps: int) -> torch.Tensor:
        """The input token that each of `steps` scored tokens copies, -1 where it copies none [N, T]."""
        step_T = torch.arange(steps)
        start_N1 = self.start_N[:, None]
        copies_NT = (start_N1 >= 0) & (step_T < self.length_N[:, None])
        return torch.where(copies_NT, start_N1 + step_T, -1)


def find_spans(
    rows: Sequence[Sequence[int]], answers: Sequence[Sequence[int]], holds: Sequence[bool]
) -> Spans:
    """First place of each answer's tokens in its row; -1 where the passage does not hold it."""
    starts = [
        _first_place(row, list(answer)) if held else -1
        for row, answer, held in zip(rows, answers, holds, strict=True)
    ]
    return Spans(torch.tensor(starts), torch.tensor([len(a) for a in answers]))


def _first_place(row: Sequence[int], piece: list[int]) -> int:
    places = (i for i in range(len(row) - len(piece) + 1) if list(row[i : i + len(piece)]) == piece)
    return next(places, -1)


class Guide(nn.Module):
    """The auxiliary heads and losses for one generator."""

    def __init__(self, generator: Generator) -> None:
        super().__init__()
        config = generator.config
        self.tags = nn.Linear(config.d_model, 2)
        self._attention = [generator.model.get_decoder().layers[-1].encoder_attn]  # a list: not a child
        self._query_NTD: torch.Tensor | None = None
        self._attention[0].q_proj.register_forward_pre_hook(self._keep_query)

    def _keep_query(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        self._query_NTD = args[0]

    def forward(self, states_NSD: torch.Tensor, mask_NS: torch.Tensor, spans: Spans) -> torch.Tensor:
        """The sum of both losses for the batch that the decoder has just read."""
        tags = self.tag_loss(states_NSD, mask_NS, spans.marks(mask_NS.shape[1]))
        return tags + self.alignment_loss(states_NSD, mask_NS, spans.places(self._query_NTD.shape[1]))

    def tag_loss(
        self, states_NSD: torch.Tensor, mask_NS: torch.Tensor, marks_NS2: torch.Tensor
    ) -> torch.Tensor:
        weight = torch.tensor(_POSITIVE)
        loss_NS2 = F.binary_cross_entropy_with_logits(
            self.tags(states_NSD), marks_NS2.float(), reduction="none", pos_weight=weight
        )
        return (loss_NS2.sum(-1) * mask_NS).sum() / mask_NS.sum()

    def alignment_loss(
        self, states_NSD: torch.Tensor, mask_NS: torch.Tensor, place_NT: torch.Tensor
    ) -> torch.Tensor:
        """-log of the attention at `place_NT`, for the scored tokens that copy one (others: -1)."""
        copies_NT = place_NT >= 0
        if not copies_NT.any():
            return states_NSD.new_zeros(())
        attention, query_NTD = self._attention[0], self._query_NTD
        log_probs_NHTS = attention_log_probs(attention, query_NTD, states_NSD, mask_NS, GUIDED_HEADS)
        index_NHT1 = place_NT.clamp(min=0)[:, None, :, None].expand(-1, log_probs_NHTS.shape[1], -1, 1)
        log_probs_NHT = log_probs_NHTS.gather(-1, index_NHT1)[..., 0]
        return -log_probs_NHT[copies_NT[:, None].expand_as(log_probs_NHT)].mean()


def attention_log_probs(
    attention: nn.Module, query_NTD: torch.Tensor, states_NSD: torch.Tensor, mask_NS: torch.Tensor, heads: int
) -> torch.Tensor:
    """Log of what the first `heads` heads of an attention put on each input token [N, H, T, S]."""
    heads = min(heads, attention.num_heads)
    width = attention.head_dim * heads
    n, t = query_NTD.shape[:2]
    q_NTHd = attention.q_proj(query_NTD)[..., :width].view(n, t, heads, -1)
    k_NSHd = attention.k_proj(states_NSD)[..., :width].view(n, -1, heads, attention.head_dim)
    scores_NHTS = torch.einsum("nthd,nshd->nhts", q_NTHd, k_NSHd) * attention.scaling
    return scores_NHTS.masked_fill(mask_NS[:, None, None] == 0, float("-inf")).log_softmax(-1)
