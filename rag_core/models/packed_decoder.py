"""The generator's decoder over whole targets (teacher forcing), its cross-attention fed by packed contexts.

Shapes: N contexts, S tokens of the longest, P real ones in all, T decoder tokens, D width, A heads.
"""

from __future__ import annotations

from typing import Any

import torch

from rag_core.models.decoder_layers import DecoderLayers, decoder_layers
from rag_core.models.packed_encoder import dropped, run_layer
from rag_core.models.packing import Packing, attend, split_heads


def decode_packed(
    stack: Any, states_NSD: torch.Tensor, mask_NS: torch.Tensor, input_ids_NT: torch.Tensor
) -> torch.Tensor:
    """Decoder states [N, T, D] after each position of the decoder's input."""
    layers, packing = decoder_layers(stack), Packing(mask_NS)
    states_PD = packing.pack(states_NSD)
    T = input_ids_NT.shape[1]
    depths_T = torch.arange(T, device=mask_NS.device)
    causal_1ATT = _causal(layers, depths_T, states_NSD.dtype)
    x_NTD = layers.embed(input_ids_NT, depths_T)
    for i, layer in enumerate(layers.layers):
        if not dropped(stack):
            x_NTD = run_layer(layer, _layer, layers, i, x_NTD, states_PD, packing, causal_1ATT)
    return layers.finish(x_NTD)


def _layer(
    layers: DecoderLayers,
    i: int,
    x_NTD: torch.Tensor,
    states_PD: torch.Tensor,
    packing: Packing,
    causal_1ATT: torch.Tensor,
) -> torch.Tensor:
    heads, scale, dropout = layers.n_heads, layers.scale, layers.attention_dropout
    q, k, v = (split_heads(x, heads) for x in layers.self_qkv(i, x_NTD))
    x_NTD = layers.after_self(i, x_NTD, attend(q, k, v, causal_1ATT, scale, dropout))
    k, v = (packing.heads(x, heads) for x in layers.cross_kv(i, states_PD))
    q = split_heads(layers.cross_q(i, x_NTD), heads)
    return layers.after_cross(i, x_NTD, attend(q, k, v, packing.mask_N11S, scale, dropout))


def _causal(layers: DecoderLayers, depths_T: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Added to self-attention's scores [1, A or 1, T, T]: relative positions, −inf for what comes later."""
    T = len(depths_T)
    later_TT = depths_T[None] > depths_T[:, None]
    bias_ATT = layers.self_bias(0, T)
    if bias_ATT is None:
        bias_ATT = torch.zeros((1, T, T), dtype=dtype, device=depths_T.device)
    return bias_ATT.masked_fill(later_TT, -torch.inf)[None]
