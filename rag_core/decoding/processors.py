"""Changes to the next token's scores, with `transformers`' names, meanings and order.

Shapes: P problems, H hypotheses, t tokens so far (start included), V vocabulary.
"""

from __future__ import annotations

import torch

from rag_core.decoding.config import DecodingConfig


def process(scores_PHV: torch.Tensor, rows_PHt: torch.Tensor, config: DecodingConfig) -> torch.Tensor:
    """Next-token log-probabilities after the config's rules; may write −inf into the input."""
    length = rows_PHt.shape[2]
    if config.no_repeat_ngram_size and length >= config.no_repeat_ngram_size:
        scores_PHV = _ban_repeated_ngrams(scores_PHV, rows_PHt, config.no_repeat_ngram_size)
    if length < config.min_length:
        scores_PHV[:, :, config.eos_token_id] = -torch.inf
    if length == 1 and config.forced_bos_token_id is not None:
        scores_PHV = _only(scores_PHV, config.forced_bos_token_id)
    if length == config.max_length - 1 and config.forced_eos_token_id is not None:
        scores_PHV = _only(scores_PHV, config.forced_eos_token_id)
    return scores_PHV


def _only(scores_PHV: torch.Tensor, token: int) -> torch.Tensor:
    forced_PHV = torch.full_like(scores_PHV, -torch.inf)
    forced_PHV[:, :, token] = 0.0
    return forced_PHV


def _ban_repeated_ngrams(scores_PHV: torch.Tensor, rows_PHt: torch.Tensor, n: int) -> torch.Tensor:
    """−inf for every token that would complete an n-gram the row already has."""
    windows_PHWn = rows_PHt.unfold(2, n, 1)
    suffix_PHm = rows_PHt[:, :, rows_PHt.shape[2] - (n - 1) :]
    repeats_PHW = (windows_PHWn[..., :-1] == suffix_PHm[:, :, None, :]).all(dim=-1)
    banned_PHV = torch.zeros_like(scores_PHV, dtype=torch.int32)
    banned_PHV.scatter_add_(2, windows_PHWn[..., -1], repeats_PHW.int())
    return scores_PHV.masked_fill(banned_PHV > 0, -torch.inf)
