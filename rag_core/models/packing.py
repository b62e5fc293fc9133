"""Contexts of uneven lengths as one matrix of real tokens, so that no product is spent on padding.

Only attention, a fifteenth of an encoder's arithmetic at 160 tokens, needs the padded square.
Shapes: N contexts, S tokens of the longest, T real tokens in all, D width, A heads, E numbers of a head.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F


class Packing:
    """Where each real token of a padded batch stands, as a row of the packed matrix."""

    def __init__(self, mask_NS: torch.Tensor):
        self.shape = tuple(mask_NS.shape)
        real_NS = mask_NS.bool()
        self.index_T = real_NS.flatten().nonzero()[:, 0]
        self.full = len(self.index_T) == mask_NS.numel()
        self.mask_N11S = None if self.full else real_NS[:, None, None, :]

    def pack(self, x_NSX: torch.Tensor) -> torch.Tensor:
        """[N, S, ...] to [T, ...]."""
        flat = x_NSX.flatten(0, 1)
        return flat if self.full else flat[self.index_T]

    def pad(self, x_TX: torch.Tensor) -> torch.Tensor:
        """[T, ...] to [N, S, ...], zero where there is no token."""
        if not self.full:
            rows = self.shape[0] * self.shape[1]
            x_TX = x_TX.new_zeros((rows, *x_TX.shape[1:])).index_copy(0, self.index_T, x_TX)
        return x_TX.unflatten(0, self.shape)

    def heads(self, x_TD: torch.Tensor, n_heads: int) -> torch.Tensor:
        """[T, A·E] to the padded [N, A, S, E]."""
        return split_heads(self.pad(x_TD), n_heads)


def split_heads(x_NSD: torch.Tensor, n_heads: int) -> torch.Tensor:
    """[N, S, A·E] to [N, A, S, E]."""
    return x_NSD.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def attend(
    q_NAHE: torch.Tensor,
    k_NASE: torch.Tensor,
    v_NASE: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
    dropout: float = 0.0,
) -> torch.Tensor:
    """Attention of H queries over S keys, heads joined again: [N, H, A·E]. `mask`: bool, or added scores."""
    out_NAHE = F.scaled_dot_product_attention(
        q_NAHE, k_NASE, v_NASE, attn_mask=mask, dropout_p=dropout, scale=scale
    )
    return out_NAHE.transpose(1, 2).flatten(2)
