"""Watches for retrieval collapse (Lewis et al. 2020, appendix H).

Collapsed retrieval returns the same passages whatever the question; the generator learns to ignore
them, the marginal's gradient into the question encoder fades, and nothing in the loss tells.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import torch


class CollapseMonitor:
    """Over a window of steps: the share of distinct passages, the entropy of p(z|x), the gradient norm."""

    def __init__(self, window: int = 50, least_distinct: float = 0.1):
        self.window, self.least_distinct = window, least_distinct
        self._steps: deque[tuple[list[list[str]], float, float]] = deque(maxlen=window)
        self.warned = False

    def add(
        self, passage_ids: Sequence[Sequence[str]], doc_scores_BK: torch.Tensor, grad_norm: float
    ) -> None:
        """One step's retrieved ids, logits, and the gradient norm into the question encoder."""
        scores_BK = doc_scores_BK.detach().float()
        scores_BK = scores_BK[~torch.isneginf(scores_BK).all(dim=1)]  # nothing found: no distribution
        if not len(scores_BK):
            return
        log_p = torch.log_softmax(scores_BK, dim=1)
        entropy = -(log_p.exp() * log_p.masked_fill(torch.isneginf(log_p), 0.0)).sum(dim=1).mean()
        self._steps.append(([list(ids) for ids in passage_ids if ids], float(entropy), grad_norm))

    def figures(self) -> dict[str, float]:
        """Of the window: distinct passages / retrieved, and how much of what distinct questions could get."""
        lists = [ids for step, _, _ in self._steps for ids in step]
        total = sum(map(len, lists))
        if not total:
            return {}
        return {
            "distinct_passages": len({i for ids in lists for i in ids}) / total,
            "distinct_lists": len({tuple(ids) for ids in lists}) / len(lists),
            "prior_entropy": math.fsum(e for _, e, _ in self._steps) / len(self._steps),
            "question_encoder_grad_norm": math.fsum(g for _, _, g in self._steps) / len(self._steps),
        }

    def warning(self, n_questions: int) -> str | None:
        """A line to print, once, when nearly all questions of a full window get the same passages."""
        if self.warned or len(self._steps) < self.window:
            return None
        lists = [tuple(sorted(ids)) for step, _, _ in self._steps for ids in step]
        distinct = len(set(lists)) / min(len(lists), max(n_questions, 1))
        if distinct >= self.least_distinct:
            return None
        self.warned = True
        return (
            f"warning: retrieval has collapsed: {len(set(lists))} distinct sets of passages for the last "
            f"{len(lists)} questions (RAG paper, appendix H); lower the question encoder's learning rate, "
            "warm up longer, or freeze it at first"
        )

    def state(self) -> dict[str, Any]:
        return {"steps": [list(s) for s in self._steps], "warned": self.warned}

    def restore(self, state: dict[str, Any]) -> None:
        self._steps = deque([tuple(s) for s in state["steps"]], maxlen=self.window)
        self.warned = state["warned"]
