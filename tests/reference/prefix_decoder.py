"""The decoder in its plain form: the whole prefix of every hypothesis, at every step."""

import torch

from rag_core.models.generator import Generator


class PrefixDecoder:
    """Right by construction; what `rag_core.decoding.nodes` is compared with."""

    def __init__(self, generator: Generator, states_NSD: torch.Tensor, mask_NS: torch.Tensor):
        self.generator, self.states_NSD, self.mask_NS = generator, states_NSD, mask_NS
        self.prefix_NHt = torch.empty((len(mask_NS), 1, 0), dtype=torch.long, device=mask_NS.device)

    def step(self, tokens_NH: torch.Tensor, parents_NH: torch.Tensor | None) -> torch.Tensor:
        prefix_NHt = self.prefix_NHt
        if parents_NH is not None:
            index_NHt = parents_NH[:, :, None].expand(-1, -1, prefix_NHt.shape[2])
            prefix_NHt = prefix_NHt.gather(1, index_NHt)
        self.prefix_NHt = torch.cat([prefix_NHt, tokens_NH[:, :, None]], dim=2)
        N, H, t = self.prefix_NHt.shape
        hidden_RtD = self.generator.decode(
            self.states_NSD.repeat_interleave(H, dim=0),
            self.mask_NS.repeat_interleave(H, dim=0),
            self.prefix_NHt.reshape(N * H, t),
        )
        return self.generator.project(hidden_RtD[:, -1]).view(N, H, -1)

    def keep(self, rows: torch.Tensor) -> None:
        self.states_NSD, self.mask_NS = self.states_NSD[rows], self.mask_NS[rows]
        self.prefix_NHt = self.prefix_NHt[rows]
