"""The two marginals over passages (Lewis et al. 2020, section 2.1), in float32 log space.

Shapes: B questions, K passages, T scored positions of the target (position i predicts labels[i + 1]).
A passage that was not found has doc_scores −inf; it takes part in nothing, and whatever stands in its
place in the other tensors, NaN included, is never read.
"""

from __future__ import annotations

import torch


def doc_log_prior(doc_scores_BK: torch.Tensor) -> torch.Tensor:
    """log p(z|x): the log-softmax over the passages of each question, −inf where none was found.

    Raises ValueError for NaN or +inf, and for a question without any passage.
    """
    scores_BK = doc_scores_BK.float()
    bad = torch.isnan(scores_BK) | (scores_BK == torch.inf)
    if bad.any():
        row = int(bad.any(dim=1).nonzero()[0])
        values = scores_BK[row].tolist()
        raise ValueError(f"doc_scores of question {row} are {values}; scores are finite, or -inf for absent")
    empty = torch.isneginf(scores_BK).all(dim=1)
    if empty.any():
        row = int(empty.nonzero()[0])
        raise ValueError(f"question {row} has no passage: all of its doc_scores are -inf")
    return torch.log_softmax(scores_BK, dim=1)


def _joint(log_probs_BKT: torch.Tensor, prior_BK: torch.Tensor, scored_BT: torch.Tensor) -> torch.Tensor:
    """Token log-probs with unscored positions 0 and absent passages 0 (their prior is −inf)."""
    keep_BKT = scored_BT[:, None, :] & ~torch.isneginf(prior_BK)[:, :, None]
    return torch.where(keep_BKT, log_probs_BKT.float(), 0.0)


def sequence_log_likelihood(
    log_probs_BKT: torch.Tensor, prior_BK: torch.Tensor, scored_BT: torch.Tensor
) -> torch.Tensor:
    """RAG-Sequence: log Σ_z p(z|x) Π_i p(y_i | x, z, y_<i), one value per question [B].

    `log_probs_BKT`: log p(y_i | x, z, y_<i); `prior_BK`: log p(z|x); `scored_BT`: bool. A target
    without scored positions has log-likelihood 0.
    """
    joint_BK = prior_BK + _joint(log_probs_BKT, prior_BK, scored_BT).sum(dim=2)
    return torch.where(scored_BT.any(dim=1), torch.logsumexp(joint_BK, dim=1), 0.0)


def token_log_likelihood(
    log_probs_BKT: torch.Tensor, prior_BK: torch.Tensor, scored_BT: torch.Tensor
) -> torch.Tensor:
    """RAG-Token: Σ_i log Σ_z p(z|x) p(y_i | x, z, y_<i), one value per question [B]."""
    joint_BKT = prior_BK[:, :, None] + _joint(log_probs_BKT, prior_BK, scored_BT)
    return torch.where(scored_BT, torch.logsumexp(joint_BKT, dim=1), 0.0).sum(dim=1)


def sequence_posterior(
    log_probs_BKT: torch.Tensor, prior_BK: torch.Tensor, scored_BT: torch.Tensor
) -> torch.Tensor:
    """p(z | x, y) of RAG-Sequence [B, K]: each row sums to 1, absent passages have 0."""
    return torch.softmax(prior_BK + _joint(log_probs_BKT, prior_BK, scored_BT).sum(dim=2), dim=1)


def token_posterior(
    log_probs_BKT: torch.Tensor, prior_BK: torch.Tensor, scored_BT: torch.Tensor
) -> torch.Tensor:
    """p(z | x, y_i, y_<i) for every position [B, T, K] (the paper's Figure 2); the prior where unscored."""
    joint_BKT = prior_BK[:, :, None] + _joint(log_probs_BKT, prior_BK, scored_BT)
    return torch.softmax(joint_BKT, dim=1).transpose(1, 2)
