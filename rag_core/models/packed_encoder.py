"""The generator's encoder on packed contexts (`rag_core.models.packing`).

The weights and layers are the `transformers` module's own, and so are its dropout, gradient
checkpointing and LayerDrop; only padding takes no part. Shapes as in `packing`, F inner width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from rag_core.models.decoder_layers import projections
from rag_core.models.packing import Packing


def encode_packed(encoder: Any, input_ids_NS: torch.Tensor, mask_NS: torch.Tensor) -> torch.Tensor:
    """Last states [N, S, D] of a BART or T5 encoder; zero where `mask_NS` is 0 (on the right)."""
    packing = Packing(mask_NS, encoder.config.d_model)
    run = (_T5 if hasattr(encoder, "block") else _Bart)(encoder, packing)
    x_TD = run.embed(packing.pack(input_ids_NS))
    for layer in run.layers:
        if dropped(encoder):
            continue
        x_TD = run_layer(layer, run.layer, layer, x_TD)
    return packing.pad(run.finish(x_TD))


def dropped(stack: nn.Module) -> bool:
    """LayerDrop: whether a layer of `stack` is left out this time; never outside training."""
    share = getattr(stack, "layerdrop", 0.0)
    return stack.training and share > 0 and float(torch.rand([])) < share


def run_layer(layer: nn.Module, function: Any, *args: Any) -> torch.Tensor:
    """`function(*args)`, with its activations recomputed in backward where `layer` is set to."""
    if layer.training and getattr(layer, "gradient_checkpointing", False):
        return checkpoint(function, *args, use_reentrant=False)
    return function(*args)


def _qkv(attention: Any, x_TD: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Queries, keys and values [T, D] each; one product where they were joined (`models.compute`)."""
    if hasattr(attention, "joined"):
        return attention.joined(x_TD).chunk(3, dim=-1)
    return tuple(project(x_TD) for project in projections(attention))


class _Bart:
    """Post-norm, learned positions."""

    def __init__(self, encoder: Any, packing: Packing):
        self.encoder, self.packing, self.layers = encoder, packing, encoder.layers

    def embed(self, ids_T: torch.Tensor) -> torch.Tensor:
        encoder, table = self.encoder, self.encoder.embed_positions
        positions_T = self.packing.index_T % self.packing.shape[1] + table.offset
        x_TD = encoder.embed_tokens(ids_T) + table.weight[positions_T]
        return F.dropout(encoder.layernorm_embedding(x_TD), encoder.dropout, encoder.training)

    def layer(self, layer: Any, x_TD: torch.Tensor) -> torch.Tensor:
        part, packing, training = layer.self_attn, self.packing, layer.training
        dropout = part.dropout if training else 0.0
        attended_TD = packing.self_attention(_qkv(part, x_TD), part.num_heads, part.scaling, dropout)
        attended_TD = F.dropout(part.out_proj(attended_TD), layer.dropout, training)
        x_TD = layer.self_attn_layer_norm(x_TD + attended_TD)
        inner_TF = F.dropout(layer.activation_fn(layer.fc1(x_TD)), layer.activation_dropout, training)
        return layer.final_layer_norm(x_TD + F.dropout(layer.fc2(inner_TF), layer.dropout, training))

    def finish(self, x_TD: torch.Tensor) -> torch.Tensor:
        return x_TD


class _T5:
    """Pre-norm, scores unscaled, relative positions from the first layer's table in every layer."""

    def __init__(self, encoder: Any, packing: Packing):
        self.encoder, self.packing, self.layers = encoder, packing, encoder.block
        length, first = packing.shape[1], self.layers[0].layer[0].SelfAttention
        self.bias_1ASS = first.compute_bias(length, length)

    def embed(self, ids_T: torch.Tensor) -> torch.Tensor:
        return self.encoder.dropout(self.encoder.embed_tokens(ids_T))

    def layer(self, block: Any, x_TD: torch.Tensor) -> torch.Tensor:
        outer, packing = block.layer[0], self.packing
        part, normed_TD = outer.SelfAttention, outer.layer_norm(x_TD)
        dropout = part.dropout if block.training else 0.0
        attended_TD = packing.self_attention(
            _qkv(part, normed_TD), part.n_heads, part.scaling, dropout, self.bias_1ASS
        )
        return block.layer[1](x_TD + outer.dropout(part.o(attended_TD)))

    def finish(self, x_TD: torch.Tensor) -> torch.Tensor:
        return self.encoder.dropout(self.encoder.final_layer_norm(x_TD))
