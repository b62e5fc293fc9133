"""What helps mini-bart to verify a claim: to see that a name stands twice.

Whether a passage states what a claim says is a comparison of names, token by token, and nothing in
question answering teaches the encoder that. Two auxiliary losses do; neither changes the model's shape:

- match: heads of one encoder layer look from every token of the claim at the same token in the
  passage, and at the row's first token where the passage has none;
- agreement: a linear head on the encoder's states says for each token of the claimed name whether the
  passage's fact is that name.

What was seen with and without them: docs/mini-bart.md, "Other forms".

Legend: N rows, S input tokens, D width, H guided heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from eval.miniature.guidance import attention_log_probs
from rag_core.models.generator import Generator

MATCH_LAYER = 1  # the second: words know their neighbours, and a layer follows to draw the conclusion
MATCH_HEADS = 2


@dataclass(frozen=True, slots=True)
class Matches:
    """`same_NSS`: where each of the claim's tokens (rows of `asked_NS`) should look; `claimed_NS`: the
    tokens of the claimed name; `agrees_N`: whether the passage's fact is that name."""

    same_NSS: torch.Tensor
    asked_NS: torch.Tensor
    claimed_NS: torch.Tensor
    agrees_N: torch.Tensor


def find_matches(
    rows: Sequence[Sequence[int]],
    begins: Sequence[int],
    claimed: Sequence[Sequence[int]],
    agrees: Sequence[bool],
) -> Matches:
    """`begins`: where each row's claim begins; raises ValueError when its name is not in it."""
    width = max(map(len, rows))
    same = torch.zeros(len(rows), width, width, dtype=torch.bool)
    asked, names = (torch.zeros(len(rows), width, dtype=torch.bool) for _ in range(2))
    for n, (row, begin, name) in enumerate(zip(rows, begins, claimed, strict=True)):
        places: dict[int, list[int]] = {}
        for at, token in enumerate(row[:begin]):
            places.setdefault(token, []).append(at)
        for at in range(begin, len(row)):
            same[n, at, places.get(row[at], [0])] = True
        asked[n, begin : len(row)] = True
        found = [at for at in range(begin, len(row)) if list(row[at : at + len(name)]) == list(name)]
        if not found:
            raise ValueError(f"row {n}: the claim does not hold the tokens {list(name)}")
        names[n, found[-1] : found[-1] + len(name)] = True
    return Matches(same, asked, names, torch.tensor(agrees))


class Matcher(nn.Module):
    """The auxiliary head and losses for one generator."""

    def __init__(self, generator: Generator) -> None:
        super().__init__()
        self.agreement = nn.Linear(generator.config.d_model, 1)
        self._encoder = [generator.model.get_encoder()]  # a list: not a child

    def states(self, ids_NS: torch.Tensor, mask_NS: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The encoder's states, and what enters `MATCH_LAYER` [N, S, D]."""
        (encoder,) = self._encoder
        out = encoder(input_ids=ids_NS, attention_mask=mask_NS, output_hidden_states=True)
        return out.last_hidden_state, out.hidden_states[MATCH_LAYER]

    def forward(
        self, states_NSD: torch.Tensor, inner_NSD: torch.Tensor, mask_NS: torch.Tensor, matches: Matches
    ) -> torch.Tensor:
        """The sum of both losses."""
        attention = self._encoder[0].layers[MATCH_LAYER].self_attn
        log_probs_NHSS = attention_log_probs(attention, inner_NSD, inner_NSD, mask_NS, MATCH_HEADS)
        mass_NHS = log_probs_NHSS.masked_fill(~matches.same_NSS[:, None], -1e9).logsumexp(-1)
        match = -mass_NHS[matches.asked_NS[:, None].expand_as(mass_NHS)].mean()
        logits_NS = self.agreement(states_NSD)[..., 0]
        agrees_NS = matches.agrees_N[:, None].expand_as(logits_NS)[matches.claimed_NS].float()
        return match + F.binary_cross_entropy_with_logits(logits_NS[matches.claimed_NS], agrees_NS)
