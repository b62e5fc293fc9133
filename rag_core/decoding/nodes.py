"""The decoder over a tree of prefixes, one level at a time, for many passages at once.

A *node* is a prefix that has been through the decoder: its self-attention keys and values, its last
hidden state and the normaliser of its next-token distribution are kept. A new node attends to its
ancestors by a mask, so that nothing is copied or reordered when beams change parents, and scoring a
candidate later starts from the nodes that some beam has already made. Cross-attention keys and values
exist once per passage, whatever the number of hypotheses.

Shapes: N passages, R active ones, H new nodes of each, M nodes so far, S context tokens, A heads,
E numbers of a head, D width, V vocabulary.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from rag_core.models.decoder_layers import decoder_layers
from rag_core.models.generator import Generator
from rag_core.models.packing import Packing, attend, split_heads


class NodeDecoder:
    """Grows one tree per passage; in every step each active passage gets the same number of nodes."""

    def __init__(self, generator: Generator, states_NSD: torch.Tensor, mask_NS: torch.Tensor):
        self.generator = generator
        self.layers = decoder_layers(generator.model.get_decoder())
        self.device = states_NSD.device
        self.n_passages = len(mask_NS)
        self.n_nodes = 0
        self.depths_M = torch.empty(0, dtype=torch.long, device=self.device)
        self.tokens_NM = torch.empty((self.n_passages, 0), dtype=torch.long, device=self.device)
        self.parents_NM = torch.empty_like(self.tokens_NM)
        self.lse_NM = states_NSD.new_empty((self.n_passages, 0))
        self.hidden_NMD = states_NSD.new_empty((self.n_passages, 0, states_NSD.shape[2]))
        self._ancestors_NMM = torch.empty((self.n_passages, 0, 0), dtype=torch.bool, device=self.device)
        self._past: list[tuple[torch.Tensor, torch.Tensor] | None] = [None] * len(self.layers.layers)
        packing = Packing(mask_NS)
        states_PD = packing.pack(states_NSD)
        self._cross = [
            tuple(packing.heads(t, self.layers.n_heads) for t in self.layers.cross_kv(layer, states_PD))
            for layer in range(len(self.layers.layers))
        ]
        self._mask_N11S = torch.zeros_like(mask_NS, dtype=states_NSD.dtype)
        self._mask_N11S = self._mask_N11S.masked_fill(mask_NS == 0, -torch.inf)[:, None, None, :]
        self.activate(None)

    def activate(self, rows: torch.Tensor | None) -> None:
        """Go on with these passages (None: all). Only these cross-attention keys and values are read."""
        self.rows = rows
        if rows is None:
            self._cross_R, self._mask_R11S = self._cross, self._mask_N11S
        else:
            self._cross_R = [(k[rows], v[rows]) for k, v in self._cross]
            self._mask_R11S = self._mask_N11S[rows]

    def expand(
        self,
        tokens_RH: torch.Tensor,
        parents_RH: torch.Tensor | None,
        depth: int,
        valid_RH: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add a node for each token below its parent node.

        Returns the logits of what may follow [R, H, V] and their log-sum-exp [R, H].
        `parents` are node numbers (None: the tree's root), all one level above `depth`. Nodes that are
        not `valid` fill the shape; they get no parent and are found by nobody.
        """
        first, M = self.n_nodes, self.n_nodes + tokens_RH.shape[1]
        self._append_nodes(tokens_RH, parents_RH, valid_RH, depth)
        mask_R1HM = self._self_mask(first, M)
        bias_A1L = self.layers.self_bias(depth, depth + 1)
        if bias_A1L is not None:
            mask_R1HM = mask_R1HM + bias_A1L[:, :, self.depths_M.clamp(max=depth)][None]
        x_RHD = self.layers.embed(tokens_RH, tokens_RH.new_tensor(depth))
        for layer in range(len(self.layers.layers)):
            q, k, v = (split_heads(t, self.layers.n_heads) for t in self.layers.self_qkv(layer, x_RHD))
            k, v = self._remember(layer, k, v)
            attended = attend(q, k, v, mask_R1HM.to(q.dtype), self.layers.scale)
            x_RHD = self.layers.after_self(layer, x_RHD, attended)
            q = split_heads(self.layers.cross_q(layer, x_RHD), self.layers.n_heads)
            attended = attend(q, *self._cross_R[layer], self._mask_R11S.to(q.dtype), self.layers.scale)
            x_RHD = self.layers.after_cross(layer, x_RHD, attended)
        hidden_RHD = self.layers.finish(x_RHD)
        logits_RHV = self.generator.project(hidden_RHD).float()
        lse_RH = torch.logsumexp(logits_RHV, dim=-1)
        self._write(self.hidden_NMD, hidden_RHD, first)
        self._write(self.lse_NM, lse_RH, first)
        return logits_RHV, lse_RH

    def child_log_probs(
        self, passages_C: torch.Tensor, nodes_C: torch.Tensor, tokens_C: torch.Tensor
    ) -> torch.Tensor:
        """log p(token | passage, prefix of node) for nodes that exist: one dot product each."""
        hidden_CD = self.hidden_NMD[passages_C, nodes_C]
        model = self.generator.model
        if self.generator.family == "t5" and self.generator.config.scale_decoder_outputs:
            hidden_CD = hidden_CD * self.generator.config.d_model**-0.5
        logits_C = (hidden_CD.float() * model.lm_head.weight[tokens_C].float()).sum(dim=-1)
        if self.generator.family == "bart":
            logits_C = logits_C + model.final_logits_bias[0, tokens_C].float()
        return logits_C - self.lse_NM[passages_C, nodes_C].float()

    # -- inside ----------------------------------------------------------------------------------

    def _append_nodes(self, tokens_RH, parents_RH, valid_RH, depth: int) -> None:
        """Grow the tables of nodes; a node's ancestors are its parent's and itself."""
        R, H = tokens_RH.shape
        N, first = self.n_passages, self.n_nodes
        self.n_nodes += H
        self.depths_M = F.pad(self.depths_M, (0, H), value=depth)
        self.tokens_NM = F.pad(self.tokens_NM, (0, H), value=-1)
        self.parents_NM = F.pad(self.parents_NM, (0, H), value=-2)  # -2: no node of this passage
        self.lse_NM = F.pad(self.lse_NM, (0, H))
        self.hidden_NMD = F.pad(self.hidden_NMD, (0, 0, 0, H))
        ancestors_NMM = self._ancestors_NMM.new_zeros((N, self.n_nodes, self.n_nodes))
        ancestors_NMM[:, :first, :first] = self._ancestors_NMM
        new = torch.arange(first, self.n_nodes, device=self.device)
        rows_R = torch.arange(N, device=self.device) if self.rows is None else self.rows
        if parents_RH is not None:
            ancestors_NMM[rows_R[:, None], new] = ancestors_NMM[rows_R[:, None], parents_RH]
        ancestors_NMM[:, new, new] = True
        self._ancestors_NMM = ancestors_NMM
        parent_value = torch.full_like(tokens_RH, -1) if parents_RH is None else parents_RH
        if valid_RH is not None:
            parent_value = parent_value.masked_fill(~valid_RH, -2)
        self.tokens_NM[rows_R, first:] = tokens_RH
        self.parents_NM[rows_R, first:] = parent_value

    def _self_mask(self, first: int, M: int) -> torch.Tensor:
        ancestors_NHM = self._ancestors_NMM[:, first:M]
        ancestors_RHM = ancestors_NHM if self.rows is None else ancestors_NHM[self.rows]
        mask_RHM = torch.zeros(ancestors_RHM.shape, dtype=self.hidden_NMD.dtype, device=self.device)
        return mask_RHM.masked_fill(~ancestors_RHM, -torch.inf)[:, None]

    def _remember(self, layer: int, k_RAHE, v_RAHE) -> tuple[torch.Tensor, torch.Tensor]:
        """Keep a layer's new keys and values; give those of all nodes of the active passages."""
        out = []
        past = self._past[layer]
        kept = []
        for i, new in enumerate((k_RAHE, v_RAHE)):
            if self.rows is None:
                whole = new if past is None else torch.cat([past[i], new], dim=2)
                kept.append(whole)
                out.append(whole)
            else:
                wide = F.pad(past[i], (0, 0, 0, new.shape[2]))
                wide[self.rows, :, -new.shape[2] :] = new
                kept.append(wide)
                out.append(wide[self.rows])
        self._past[layer] = (kept[0], kept[1])
        return out[0], out[1]

    def _write(self, table_NMX: torch.Tensor, values_RHX: torch.Tensor, first: int) -> None:
        if self.rows is None:
            table_NMX[:, first:] = values_RHX
        else:
            table_NMX[self.rows, first:] = values_RHX.to(table_NMX.dtype)


class NodeSteps:
    """Drives a `NodeDecoder` step by step: the hypotheses of one step are the parents of the next."""

    def __init__(self, nodes: NodeDecoder):
        self.nodes = nodes
        self._first, self._depth = 0, -1

    def step(
        self, tokens_NH: torch.Tensor, parents_NH: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append one token to each hypothesis; logits of the next one [N, H, V], and log-sum-exp [N, H].

        `parents` says which of the previous hypotheses each new one continues; None: the same.
        """
        first, nodes = self.nodes.n_nodes, None
        if first:
            if parents_NH is None:
                parents_NH = torch.arange(tokens_NH.shape[1], device=tokens_NH.device).expand_as(tokens_NH)
            nodes = self._first + parents_NH
        self._first, self._depth = first, self._depth + 1
        return self.nodes.expand(tokens_NH, nodes, self._depth)

    def keep(self, rows: torch.Tensor) -> None:
        """Go on with these of the passages that are still active."""
        active = self.nodes.rows
        self.nodes.activate(rows if active is None else active[rows])
