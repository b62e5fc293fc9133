"""Contexts of uneven lengths as one matrix of real tokens, so that no product is spent on padding.

The tokens of the longest context stand first. Only attention needs padded squares; on a CPU it has
several, each of contexts of like length. Contexts are padded on the right.
Shapes: N contexts, S tokens of the longest, T real tokens in all, D width, A heads, E numbers of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch.nn import functional as F

# Tokens of padding in a square that cost less than another square would; in wide models none do, since
# padding needs a mask and attention without one is quicker.
SQUARE_PADDING, WIDE = 128, 512


class Packing:
    """Where each real token of a padded batch stands, as a row of the packed matrix."""

    def __init__(self, mask_NS: torch.Tensor, width: int = 0):
        N, S = mask_NS.shape
        device = mask_NS.device
        lengths_N = mask_NS.sum(dim=1)
        order_N = lengths_N.argsort(descending=True, stable=True)
        self.shape, self._width, self._lengths = (N, S), width, lengths_N[order_N]
        self.index_T = (order_N[:, None] * S + torch.arange(S, device=device))[
            torch.arange(S, device=device) < self._lengths[:, None]
        ]
        self.full = len(self.index_T) == N * S
        self.mask_N11S = None if self.full else mask_NS.bool()[:, None, None, :]

    @cached_property
    def _squares(self) -> list[_Square]:
        """Made for the first self-attention; a decoder, which reads the contexts, has none."""
        lengths, device = self._lengths.tolist(), self._lengths.device
        most = 0 if self._width >= WIDE else SQUARE_PADDING
        cuts = length_groups(lengths, most) if device.type == "cpu" else [(0, len(lengths))]
        return [_Square(lengths[begin:end], device) for begin, end in cuts]

    def pack(self, x_NSX: torch.Tensor) -> torch.Tensor:
        """[N, S, ...] to [T, ...]."""
        flat = x_NSX.flatten(0, 1)
        return flat if self.full else flat[self.index_T]

    def pad(self, x_TX: torch.Tensor) -> torch.Tensor:
        """[T, ...] to [N, S, ...], zero where there is no token."""
        return x_TX.unflatten(0, self.shape) if self.full else _place(x_TX, self.index_T, self.shape)

    def heads(self, x_TD: torch.Tensor, n_heads: int) -> torch.Tensor:
        """[T, A·E] to the padded [N, A, S, E]."""
        return split_heads(self.pad(x_TD), n_heads)

    def self_attention(
        self,
        qkv_TD: Sequence[torch.Tensor],
        n_heads: int,
        scale: float,
        dropout: float = 0.0,
        bias_1ASS: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Attention of every token over its own context [T, D]. `bias`: added to the scores, by place."""
        parts = zip(*(x_TD.split([square.tokens for square in self._squares]) for x_TD in qkv_TD))
        return torch.cat(
            [
                square.attention(part, n_heads, scale, dropout, bias_1ASS)
                for square, part in zip(self._squares, parts, strict=True)
            ]
        )


class _Square:
    """Contexts of like length, the longest first, with their tokens one behind the other."""

    def __init__(self, lengths: list[int], device: torch.device):
        self.tokens, self.shape = sum(lengths), (len(lengths), lengths[0])
        self.index_T = self.mask_N11S = None
        if self.tokens < len(lengths) * lengths[0]:
            real_NS = torch.arange(lengths[0], device=device) < torch.tensor(lengths, device=device)[:, None]
            self.index_T = real_NS.flatten().nonzero()[:, 0]
            self.mask_N11S = real_NS[:, None, None, :]

    def attention(
        self,
        qkv_TD: Sequence[torch.Tensor],
        n_heads: int,
        scale: float,
        dropout: float,
        bias_1ASS: torch.Tensor | None,
    ) -> torch.Tensor:
        q, k, v = (split_heads(self._pad(x_TD), n_heads) for x_TD in qkv_TD)
        mask, S = self.mask_N11S, self.shape[1]
        if bias_1ASS is not None:
            bias_1ASS = bias_1ASS[:, :, :S, :S]
            mask = bias_1ASS if mask is None else bias_1ASS.masked_fill(~mask, -torch.inf)
        flat = attend(q, k, v, mask, scale, dropout).flatten(0, 1)
        return flat if self.index_T is None else flat[self.index_T]

    def _pad(self, x_TD: torch.Tensor) -> torch.Tensor:
        if self.index_T is None:
            return x_TD.unflatten(0, self.shape)
        return _place(x_TD, self.index_T, self.shape)


def _place(x_TX: torch.Tensor, index_T: torch.Tensor, shape: tuple[int, int]) -> torch.Tensor:
    """Rows at their places of a zero [N, S, ...]."""
    zeros = x_TX.new_zeros((shape[0] * shape[1], *x_TX.shape[1:]))
    return zeros.index_copy(0, index_T, x_TX).unflatten(0, shape)


def length_groups(lengths: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Cut lengths, longest first, into groups of at most so much padding; [begin, end) of each."""
    groups, begin, padding = [], 0, 0
    for i, length in enumerate(lengths):
        padding += lengths[begin] - length
        if padding > most:
            groups.append((begin, i))
            begin, padding = i, 0
    return [*groups, (begin, len(lengths))]


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
