"""Cheaper arithmetic for decoding, never for training: bf16 throughout, or the encoder in int8."""

from __future__ import annotations

from typing import Any

import torch

from rag_core.errors import UsageError
from rag_core.int8 import Int8Linear, check_supported
from rag_core.models.generator import Generator

COMPUTES = ("fp32", "bf16", "int8")


def lower_precision(generator: Generator, compute: str) -> None:
    """Turn a loaded generator to `compute` in place.

    bf16: all weights; log-probabilities stay float32. It pays where the machine multiplies it in
    hardware. int8: the linear layers of the encoder, where most of decoding's time goes; the decoder
    stays in float32. Raises UsageError for another name, and where int8 cannot be had.
    """
    if compute not in COMPUTES:
        raise UsageError(f"compute {compute!r}; known are {', '.join(COMPUTES)}")
    if compute == "bf16":
        generator.model.to(torch.bfloat16)
    elif compute == "int8":
        check_supported(generator.device)
        encoder = generator.model.get_encoder()
        for layer in encoder.block if generator.family == "t5" else encoder.layers:
            (_t5_layer if generator.family == "t5" else _bart_layer)(layer)


def _bart_layer(layer: Any) -> None:
    part = layer.self_attn
    part.joined = Int8Linear(part.q_proj, part.k_proj, part.v_proj)
    part.out_proj = Int8Linear(part.out_proj)
    layer.fc1 = Int8Linear(layer.fc1)
    layer.fc2 = Int8Linear(layer.fc2, after_gelu=isinstance(layer.activation_fn, torch.nn.GELU))


def _t5_layer(block: Any) -> None:
    part, dense = block.layer[0].SelfAttention, block.layer[1].DenseReluDense
    part.joined = Int8Linear(part.q, part.k, part.v)
    part.o = Int8Linear(part.o)
    for name in ("wi", "wi_0", "wi_1", "wo"):
        if hasattr(dense, name):
            setattr(dense, name, Int8Linear(getattr(dense, name)))
