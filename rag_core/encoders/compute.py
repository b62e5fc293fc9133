"""Cheaper arithmetic for encoding: bf16 and int8. Training stays in fp32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rag_core.encoders.text_encoder import TextEncoder, pool
from rag_core.errors import UsageError


def lower_precision(encoder: TextEncoder, compute: str) -> None:
    """Turn a loaded encoder to `compute` in place; its fingerprint stays.

    bf16 pays where the machine multiplies it in hardware (AMX, AVX512-BF16, GPUs); int8 needs a CPU
    with 8-bit dot products (VNNI). Raises UsageError where int8 cannot be had.
    """
    encoder.keep_identity()
    if compute == "bf16":
        encoder.module.to(torch.bfloat16)
    else:
        encoder._forward = _int8_forward(encoder)
    encoder.compute = compute


def _int8_forward(encoder: TextEncoder) -> Callable[..., torch.Tensor]:
    from transformers import BertModel

    from rag_core.encoders.int8_bert import Int8Bert
    from rag_core.int8 import is_supported

    if not is_supported(encoder.device):
        raise UsageError(
            f"compute int8: needs a CPU with VNNI, this is {encoder.device.type}; use bf16 or fp32"
        )
    bert = next(m for m in encoder.module.modules() if isinstance(m, BertModel))
    project = next((m for n, m in encoder.module.named_modules() if n.endswith("encode_proj")), None)
    fast = Int8Bert(bert)

    def forward(input_ids_BS: Any, mask_BS: Any, types_BS: Any = None) -> torch.Tensor:
        if torch.is_grad_enabled() and encoder.module.training:
            raise ValueError(f"{encoder.name}: loaded with compute='int8', which cannot be trained")
        hidden_BSD = fast(input_ids_BS, mask_BS, types_BS)
        pooled_BD = pool(hidden_BSD, mask_BS, encoder.spec.pooling)
        return pooled_BD if project is None else project(pooled_BD)

    return forward
