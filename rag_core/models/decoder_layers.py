"""BART's and T5's decoder layers as the pieces between their attentions.

The weights and dropouts are the `transformers` module's own; only the order of work is ours: in
training cross-attention's keys and values are made of real tokens alone, and in decoding hypotheses
share them while their past is a tree, for which there is no place in `transformers`' cache.
Shapes: … any leading sizes, D width, A heads, E numbers of a head, T tokens of a row, M nodes.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import torch
from torch import nn
from torch.nn import functional as F


class DecoderLayers(Protocol):
    """What teacher forcing and `decoding.nodes` need of a family."""

    stack: nn.Module
    layers: nn.ModuleList
    n_heads: int
    scale: float

    @property
    def attention_dropout(self) -> float: ...
    def embed(self, tokens: torch.Tensor, depths: torch.Tensor) -> torch.Tensor:
        """Token ids [...] at places of their rows (0 first), of a shape that broadcasts to it; [..., D]."""
        ...

    def self_qkv(self, layer: int, x: torch.Tensor) -> tuple[torch.Tensor, ...]: ...
    def after_self(self, layer: int, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor: ...
    def cross_kv(self, layer: int, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]: ...
    def cross_q(self, layer: int, x: torch.Tensor) -> torch.Tensor: ...
    def after_cross(self, layer: int, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor: ...
    def finish(self, x: torch.Tensor) -> torch.Tensor: ...
    def self_bias(self, first: int, length: int) -> torch.Tensor | None:
        """What is added to self-attention's scores [A, length - first, length] of the queries at depths
        from `first` on, over the keys at depths below `length`; None for nothing."""
        ...


class BartLayers:
    """Post-norm, learned positions (with BART's offset of 2), biases everywhere."""

    def __init__(self, stack: Any):
        self.stack, self.layers = stack, stack.layers
        self.n_heads = stack.config.decoder_attention_heads
        self.scale = 1.0 / math.sqrt(stack.config.d_model // self.n_heads)
        self._joined = _JoinedWeights([projections(layer.self_attn) for layer in stack.layers])

    @property
    def attention_dropout(self) -> float:
        return self.stack.config.attention_dropout if self.stack.training else 0.0

    def embed(self, tokens: torch.Tensor, depths: torch.Tensor) -> torch.Tensor:
        stack, table = self.stack, self.stack.embed_positions
        deepest = int(depths.max())
        if deepest + table.offset >= len(table.weight):
            raise ValueError(
                f"row of {deepest + 1} tokens; the generator holds {len(table.weight) - table.offset}"
            )
        x = stack.embed_tokens(tokens) + table.weight[depths + table.offset]
        return F.dropout(stack.layernorm_embedding(x), stack.dropout, stack.training)

    def self_qkv(self, layer: int, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self._joined(layer, x)

    def after_self(self, layer: int, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        part = self.layers[layer]
        attended = F.dropout(part.self_attn.out_proj(attended), part.dropout, part.training)
        return part.self_attn_layer_norm(x + attended)

    def cross_kv(self, layer: int, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        attention = self.layers[layer].encoder_attn
        return attention.k_proj(states), attention.v_proj(states)

    def cross_q(self, layer: int, x: torch.Tensor) -> torch.Tensor:
        return self.layers[layer].encoder_attn.q_proj(x)

    def after_cross(self, layer: int, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        part = self.layers[layer]
        attended = F.dropout(part.encoder_attn.out_proj(attended), part.dropout, part.training)
        x = part.encoder_attn_layer_norm(x + attended)
        inner = F.dropout(part.activation_fn(part.fc1(x)), part.activation_dropout, part.training)
        return part.final_layer_norm(x + F.dropout(part.fc2(inner), part.dropout, part.training))

    def finish(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def self_bias(self, first: int, length: int) -> torch.Tensor | None:
        return None


class T5Layers:
    """Pre-norm without biases, unscaled scores, relative positions from the first layer's table."""

    scale = 1.0

    def __init__(self, stack: Any):
        self.stack, self.layers = stack, stack.block
        self.n_heads = stack.config.num_heads
        self._joined = _JoinedWeights([projections(block.layer[0].SelfAttention) for block in stack.block])

    @property
    def attention_dropout(self) -> float:
        return self.stack.config.dropout_rate if self.stack.training else 0.0

    def embed(self, tokens: torch.Tensor, depths: torch.Tensor) -> torch.Tensor:
        return self.stack.dropout(self.stack.embed_tokens(tokens))

    def self_qkv(self, layer: int, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self._joined(layer, self.layers[layer].layer[0].layer_norm(x))

    def after_self(self, layer: int, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        part = self.layers[layer].layer[0]
        return x + part.dropout(part.SelfAttention.o(attended))

    def cross_kv(self, layer: int, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        attention = self.layers[layer].layer[1].EncDecAttention
        return attention.k(states), attention.v(states)

    def cross_q(self, layer: int, x: torch.Tensor) -> torch.Tensor:
        part = self.layers[layer].layer[1]
        return part.EncDecAttention.q(part.layer_norm(x))

    def after_cross(self, layer: int, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        parts = self.layers[layer].layer
        return parts[2](x + parts[1].dropout(parts[1].EncDecAttention.o(attended)))

    def finish(self, x: torch.Tensor) -> torch.Tensor:
        return self.stack.dropout(self.stack.final_layer_norm(x))

    def self_bias(self, first: int, length: int) -> torch.Tensor | None:
        attention = self.layers[0].layer[0].SelfAttention
        return attention.compute_bias(length - first, length, past_seen_tokens=first)[0]


class _JoinedWeights:
    """Queries, keys and values of a layer in one product while no gradient is wanted.

    In decoding the rows are few, so the way of the weights counts; they are joined at the first use.
    """

    def __init__(self, projections: list[tuple[nn.Module, ...]]):
        self._projections = projections
        self._joined: dict[int, tuple[torch.Tensor, torch.Tensor | None]] = {}

    def __call__(self, layer: int, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        parts = self._projections[layer]
        if torch.is_grad_enabled():
            return tuple(part(x) for part in parts)
        if layer not in self._joined:
            biases = [part.bias for part in parts if part.bias is not None]
            self._joined[layer] = (
                torch.cat([part.weight for part in parts]),
                torch.cat(biases) if biases else None,
            )
        return F.linear(x, *self._joined[layer]).chunk(3, dim=-1)


def projections(attention: Any) -> tuple[nn.Module, ...]:
    """The projections of queries, keys and values, whatever the family calls them."""
    if hasattr(attention, "q_proj"):
        return attention.q_proj, attention.k_proj, attention.v_proj
    return attention.q, attention.k, attention.v


def decoder_layers(stack: Any) -> DecoderLayers:
    """The layers of a BART or T5 decoder."""
    return (T5Layers if hasattr(stack, "block") else BartLayers)(stack)
