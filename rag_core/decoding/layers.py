"""BART's and T5's decoder layers as the pieces between their attentions.

The weights are the `transformers` module's own; only the order of work is ours, because a decoder
whose hypotheses share cross-attention keys and whose past is a tree has no place in their cache.
Shapes: … any leading sizes, D width, A heads, E numbers of a head.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch.nn import functional as F

from rag_core.models.generator import Generator


class DecoderLayers(Protocol):
    """What `NodeDecoder` needs of a family."""

    n_layers: int
    n_heads: int
    scale: float

    def embed(self, tokens: torch.Tensor, depth: int) -> torch.Tensor: ...
    def self_qkv(self, layer: int, x: torch.Tensor) -> tuple[torch.Tensor, ...]: ...
    def after_self(self, layer: int, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor: ...
    def cross_kv(self, layer: int, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]: ...
    def cross_q(self, layer: int, x: torch.Tensor) -> torch.Tensor: ...
    def after_cross(self, layer: int, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor: ...
    def finish(self, x: torch.Tensor) -> torch.Tensor: ...
    def self_bias(self, depth: int, depths_M: torch.Tensor) -> torch.Tensor | None:
        """What is added to self-attention's scores [A, M] of a query at `depth`; None for nothing."""
        ...


class BartLayers:
    """Post-norm, learned positions (with BART's offset of 2), biases everywhere."""

    def __init__(self, generator: Generator):
        decoder = generator.model.get_decoder()
        self.decoder, self.layers = decoder, decoder.layers
        self.n_layers, self.n_heads = len(decoder.layers), decoder.config.decoder_attention_heads
        self.scale = 1.0 / math.sqrt(decoder.config.d_model // self.n_heads)
        # One product for queries, keys and values: the rows are few, so the weights' way counts.
        attentions = [layer.self_attn for layer in decoder.layers]
        self.qkv = [
            (
                torch.cat([a.q_proj.weight, a.k_proj.weight, a.v_proj.weight]),
                torch.cat([a.q_proj.bias, a.k_proj.bias, a.v_proj.bias]),
            )
            for a in attentions
        ]

    def embed(self, tokens: torch.Tensor, depth: int) -> torch.Tensor:
        positions = self.decoder.embed_positions
        if depth + positions.offset >= len(positions.weight):
            raise ValueError(f"row of {depth + 1} tokens; the generator holds {len(positions.weight) - 2}")
        x = self.decoder.embed_tokens(tokens) + positions.weight[depth + positions.offset]
        return self.decoder.layernorm_embedding(x)

    def self_qkv(self, layer: int, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.linear(x, *self.qkv[layer]).chunk(3, dim=-1)

    def after_self(self, layer: int, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        part = self.layers[layer]
        return part.self_attn_layer_norm(x + part.self_attn.out_proj(attended))

    def cross_kv(self, layer: int, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        attention = self.layers[layer].encoder_attn
        return attention.k_proj(states), attention.v_proj(states)

    def cross_q(self, layer: int, x: torch.Tensor) -> torch.Tensor:
        return self.layers[layer].encoder_attn.q_proj(x)

    def after_cross(self, layer: int, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        part = self.layers[layer]
        x = part.encoder_attn_layer_norm(x + part.encoder_attn.out_proj(attended))
        return part.final_layer_norm(x + part.fc2(part.activation_fn(part.fc1(x))))

    def finish(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def self_bias(self, depth: int, depths_M: torch.Tensor) -> torch.Tensor | None:
        return None


class T5Layers:
    """Pre-norm without biases, unscaled scores, relative positions from the first layer's table."""

    scale = 1.0

    def __init__(self, generator: Generator):
        decoder = generator.model.get_decoder()
        self.decoder, self.blocks = decoder, [block.layer for block in decoder.block]
        self.n_layers, self.n_heads = len(self.blocks), decoder.config.num_heads
        attentions = [block[0].SelfAttention for block in self.blocks]
        self.qkv = [torch.cat([a.q.weight, a.k.weight, a.v.weight]) for a in attentions]

    def embed(self, tokens: torch.Tensor, depth: int) -> torch.Tensor:
        return self.decoder.embed_tokens(tokens)

    def self_qkv(self, layer: int, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.linear(self.blocks[layer][0].layer_norm(x), self.qkv[layer]).chunk(3, dim=-1)

    def after_self(self, layer: int, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        return x + self.blocks[layer][0].SelfAttention.o(attended)

    def cross_kv(self, layer: int, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        attention = self.blocks[layer][1].EncDecAttention
        return attention.k(states), attention.v(states)

    def cross_q(self, layer: int, x: torch.Tensor) -> torch.Tensor:
        part = self.blocks[layer][1]
        return part.EncDecAttention.q(part.layer_norm(x))

    def after_cross(self, layer: int, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        x = x + self.blocks[layer][1].EncDecAttention.o(attended)
        return self.blocks[layer][2](x)

    def finish(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder.final_layer_norm(x)

    def self_bias(self, depth: int, depths_M: torch.Tensor) -> torch.Tensor | None:
        attention = self.blocks[0][0].SelfAttention
        table_AP = attention.compute_bias(1, depth + 1, past_seen_tokens=depth)[0, :, 0]
        return table_AP[:, depths_M]


def decoder_layers(generator: Generator) -> DecoderLayers:
    return (BartLayers if generator.family == "bart" else T5Layers)(generator)
