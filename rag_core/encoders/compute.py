"""Cheaper arithmetic for encoding, bf16 and int8, and which one this machine is quickest in."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from rag_core.encoders.text_encoder import NonFiniteVectorError, TextEncoder, pool
from rag_core.errors import UsageError
from rag_core.int8 import check_supported, is_supported

# Less than this is not worth any digit of a vector; and vectors that differ more are another model's.
WORTHWHILE, CLOSE = 1.2, 0.995
_SAMPLE = 16


def fastest_compute(name: str, device: str | None = None) -> str:
    """ "fp32", "bf16" or "int8": what encodes passages fastest here, measured within seconds.

    Sixteen passages of a hundred words go through each arithmetic that the machine has instructions
    for; another than fp32 is chosen when it is at least 1.2 times as fast and every vector has a cosine
    of at least 0.995 to its fp32 vector.
    """
    from rag_core.encoders.load import load_encoder

    words = "the river in a town of north and old castle was built by king".split()
    texts = [" ".join(words[(row * 7 + i) % len(words)] for i in range(100)) for row in range(_SAMPLE)]
    best, best_rate, exact_ND = "fp32", 0.0, None
    for compute in ("fp32", "bf16", "int8"):
        if compute != "fp32" and not has_instructions(compute, device):
            continue
        try:
            encoder = load_encoder(name, compute, device=device)
            encoder.encode_passages(words[:2], texts[:2])
            seconds, vectors_ND = min((_timed(encoder, texts) for _ in range(2)), key=lambda timed: timed[0])
        except (UsageError, NonFiniteVectorError):
            if compute == "fp32":
                raise
            continue  # a model that has no such form, or whose numbers it does not hold
        exact_ND = vectors_ND if exact_ND is None else exact_ND
        lengths_N = np.linalg.norm(vectors_ND, axis=1) * np.linalg.norm(exact_ND, axis=1)
        cosines_N = (vectors_ND * exact_ND).sum(axis=1) / lengths_N
        worth = 1.0 if compute == "fp32" else WORTHWHILE if best == "fp32" else 1.0
        if 1 / seconds >= worth * best_rate and cosines_N.min() >= CLOSE:
            best, best_rate = compute, 1 / seconds
    return best


def _timed(encoder: TextEncoder, texts: list[str]) -> tuple[float, np.ndarray]:
    started = time.perf_counter()
    vectors_ND = encoder.encode_passages(["title"] * len(texts), texts)
    return time.perf_counter() - started, vectors_ND


def has_instructions(compute: str, device: str | None = None) -> bool:
    """Whether this machine multiplies bf16, or bytes, in hardware."""
    if device == "cuda" or (device is None and torch.cuda.is_available()):
        return compute == "bf16" and torch.cuda.is_bf16_supported()
    if compute == "int8":
        return is_supported(torch.device("cpu"))
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


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

    check_supported(encoder.device)
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
