"""The first pass over a block of vectors: which pairs can still be among the best k.

float32: any order of summation, fused or not, is off by at most γ_D·Σ|q_i p_i| ≤ γ_D·‖q‖‖p‖ with
γ_D = D·u/(1-D·u), u = 2^-24 (Higham, *Accuracy and Stability of Numerical Algorithms*, §3.1); float64
input rounded to float32 first adds 2u + u² to γ_D; each product that underflows adds 2^-126.
"""

from __future__ import annotations

import numpy as np
import torch

UNIT = 2.0**-24
TINY = 2.0**-126
TILE_QUERIES = 1024
TILE_ROWS = 1024


class Queries:
    """Queries [Q, D] with what the first pass needs of them."""

    def __init__(self, queries_QD: np.ndarray) -> None:
        self.original_QD = np.ascontiguousarray(queries_QD)
        self.norm_Q = np.sqrt(np.square(self.original_QD, dtype=np.float64).sum(axis=1))
        self.float32_QD = torch.from_numpy(np.ascontiguousarray(queries_QD, dtype=np.float32))

    def __len__(self) -> int:
        return len(self.original_QD)


def float32_margin(dim: int) -> float:
    """The factor of ‖q‖‖p‖ by which a float32 inner product of rounded inputs can be off."""
    # Slightly more than γ_D + 2u + u²; the last factor covers norms that are themselves rounded.
    return (dim + 4) * UNIT / (1 - (dim + 4) * UNIT) * (1 + 1e-6)
