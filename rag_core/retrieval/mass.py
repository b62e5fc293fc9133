"""What the top-K truncation throws away, and how wrong it can make p(y|x).

With log Z, the logsumexp of the logits over the whole corpus, the K passages kept hold the share
m = Σ_{z in K} exp(s_z) / Z of the prior. A model that renormalises over them computes
p_K(y|x) = Σ_{z in K} p(z|x)/m · p(y|x,z), so the untruncated model has, for RAG-Sequence,

    p(y|x) = m · p_K(y|x) + (1 - m) · r,   r in [0, 1] the mean of p(y|x,z) over what is missing,

and p lies in [m·p_K, m·p_K + 1 - m]; |p - p_K| is at most (1 - m)·max(p_K, 1 - p_K) ≤ 1 - m. For
RAG-Token the same holds token by token, and the bounds of the tokens multiply.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def captured_mass(doc_scores: Sequence[float], log_partition: float) -> np.ndarray:
    """The share of the prior [K] that the first 1, 2, … K passages hold.

    doc_scores: logits, best first; log_partition: logsumexp of all logits of the corpus. The shares
    never decrease; rounding of the partition can take the last ones above 1, where they are cut.
    """
    logits_K = np.asarray(doc_scores, dtype=np.float64)
    if np.isnan(logits_K).any() or np.isnan(log_partition):
        raise ValueError("doc_scores or log_partition is NaN")
    return np.minimum(np.cumsum(np.exp(logits_K - log_partition)), 1.0)


def sequence_bounds(probability: float, mass: float) -> tuple[float, float]:
    """Least and largest p(y|x) of the untruncated RAG-Sequence, given p_K(y|x) and the mass m."""
    return token_bounds([probability], mass)


def token_bounds(token_probabilities: Sequence[float], mass: float) -> tuple[float, float]:
    """Least and largest p(y|x) of the untruncated RAG-Token, given p'_K of each token and the mass m."""
    values_T = np.asarray(token_probabilities, dtype=np.float64)
    if not 0 <= mass <= 1 or not ((values_T >= 0) & (values_T <= 1)).all():
        raise ValueError(f"mass {mass} and probabilities must lie in [0, 1]")
    return float(np.prod(mass * values_T)), float(np.prod(mass * values_T + (1 - mass)))
