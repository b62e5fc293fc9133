"""Exact match (SQuAD v1.1, DPR, KILT): the normalised prediction equals a normalised reference.

    EM = 1/N · Σ max over references of [norm(prediction) = norm(reference)]

`norm` is `rag_core.answers.normalize_answer`. Lewis et al. 2020, Table 1, report it for open-domain
question answering. Sources: `evaluate-v1.1.py` (`metric_max_over_ground_truths`), KILT
`kilt/eval_downstream.py`. KILT's driver gives an empty prediction 0 whatever the reference; that is
`kilt_em`, this is the plain rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval.metrics.base import BinaryMetric, Statistics
from rag_core.answers import normalize_answer


class ExactMatch(BinaryMetric):
    name = "exact_match"
    options = "norm:squad|refs:max"

    def statistics(self, prediction: str, references: Sequence[str]) -> Statistics:
        wanted = normalize_answer(prediction)
        for reference in references:
            if normalize_answer(reference) == wanted:
                return (1,)
        return (0,)
