"""BERT's forward pass with its linear layers in 8-bit integers (`rag_core.int8`); the rest in float32.

Shapes: B texts · S tokens · T = B·S · H hidden size · I inner size · A heads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from rag_core.errors import UsageError
from rag_core.int8 import Int8Linear


class Int8Bert:
    """`last_hidden_state` [B, S, H] of a `transformers.BertModel`, its linear layers in integers."""

    def __init__(self, bert: Any) -> None:
        if bert.config.hidden_act != "gelu":
            raise UsageError(f"compute int8: knows no {bert.config.hidden_act!r} layers; use bf16 or fp32")
        self._embeddings = bert.embeddings
        self._heads = bert.config.num_attention_heads
        self._layers = [_Layer(layer) for layer in bert.encoder.layer]

    def __call__(
        self, input_ids_BS: torch.Tensor, mask_BS: torch.Tensor, types_BS: torch.Tensor | None
    ) -> torch.Tensor:
        hidden_BSH = self._embeddings(input_ids=input_ids_BS, token_type_ids=types_BS)
        shape = hidden_BSH.shape
        mask_B11S = mask_BS.bool()[:, None, None, :]
        hidden_TH = hidden_BSH.reshape(-1, shape[-1])
        for layer in self._layers:
            hidden_TH = layer(hidden_TH, mask_B11S, shape, self._heads)
        return hidden_TH.view(shape)


class _Layer:
    def __init__(self, layer: Any) -> None:
        attention = layer.attention.self
        self._query_key_value = Int8Linear(attention.query, attention.key, attention.value)
        self._attended = Int8Linear(layer.attention.output.dense)
        self._attention_norm = layer.attention.output.LayerNorm
        self._inner = Int8Linear(layer.intermediate.dense)
        self._outer = Int8Linear(layer.output.dense, after_gelu=True)
        self._output_norm = layer.output.LayerNorm

    def __call__(
        self, hidden_TH: torch.Tensor, mask_B11S: torch.Tensor, shape: torch.Size, heads: int
    ) -> torch.Tensor:
        batch, length, size = shape
        joined_T3H = self._query_key_value(hidden_TH)
        joined = joined_T3H.view(batch, length, 3, heads, size // heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*joined.unbind(0), attn_mask=mask_B11S)
        mixed_TH = mixed.transpose(1, 2).reshape(-1, size)
        hidden_TH = self._attention_norm(self._attended(mixed_TH).add_(hidden_TH))
        inner_TI = functional.gelu(self._inner(hidden_TH))
        return self._output_norm(self._outer(inner_TI).add_(hidden_TH))
