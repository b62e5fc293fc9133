"""Cheaper arithmetic for encoding: bf16 and int8. Training stays in fp32."""

from __future__ import annotations

import torch

from rag_core.encoders.text_encoder import TextEncoder


def lower_precision(encoder: TextEncoder, compute: str) -> None:
    """Turn a loaded encoder's module to `compute` in place; its fingerprint stays."""
    if compute == "bf16":
        encoder.module.to(torch.bfloat16)
    encoder.compute = compute
