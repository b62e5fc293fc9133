"""Metrics by name, each with the official scorer's value and a signature that says how it came about.

    from eval.metrics import compute

    score = compute("exact_match", ["the Beatles"], [["Beatles", "The Fab Four"]])
    score.value, score.per_example, score.n, score.n_missing, score.signature

One file per metric. Every metric goes the same way: integer statistics per example, added up, one value.
"""

from eval.metrics.base import Score
from eval.metrics.compute import METRICS, compute, get_metric

__all__ = ["METRICS", "Score", "compute", "get_metric"]
