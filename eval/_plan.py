"""Which metrics a run is scored with: by the task, the kinds of its answers, and what the run holds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from eval.metrics import get_metric
from eval.metrics.base import Metric

KS = (1, 5, 20, 100)

_BY_TASK = {
    "msmarco": ("bleu1_msmarco", "rouge_l_msmarco", "msmarco_f1", "bleu1", "rouge_l", "distinct_trigrams"),
    "jeopardy": ("bleu1", "q_bleu1", "rouge_l", "distinct_trigrams"),
    "fever3": ("fever_accuracy", "fever_score", "fever_precision", "fever_recall", "fever_f1"),
    "fever2": ("fever_accuracy", "fever_score", "fever_precision", "fever_recall", "fever_f1"),
    "kilt": ("exact_match", "f1", "kilt_em", "kilt_f1", "kilt_accuracy", "kilt_rougel"),
}
_BY_KIND = {
    "text": ("exact_match", "f1"),
    "regex": ("regex_match", "regex_search"),
    "label": ("fever_accuracy",),
}
KIND_OF = {"exact_match": "text", "f1": "text", "regex_match": "regex", "regex_search": "regex"}
"""Metrics that score only questions whose answers are of one kind."""


@dataclass(frozen=True)
class Holdings:
    """What a run and its test set hold, and so what can be measured."""

    task: str
    kinds: frozenset[str]
    predictions: bool = False
    log_prob: bool = False
    depth: int = 0
    """Passages of the longest ranking; 0 without rankings."""
    texts: bool = False
    gold_passages: bool = False
    gold_pages: bool = False
    log_partition: bool = False


@dataclass(frozen=True)
class Column:
    """A metric as one column: its name, and what it is fed with.

    `source`: prediction, answer_hits, passage_hits, page_hits, gold (ranking against gold), log_prob
    or mass.
    """

    name: str
    metric: Metric
    source: str


def plan_columns(holdings: Holdings, extra: Sequence[str] = ()) -> list[Column]:
    """The columns of a results table, in order; `extra` metrics are named by the user."""
    columns: list[Column] = []
    if holdings.predictions:
        names = _BY_TASK.get(holdings.task) or [
            name for kind in ("text", "regex", "label") if kind in holdings.kinds for name in _BY_KIND[kind]
        ]
        columns += [Column(name, get_metric(name), "prediction") for name in dict.fromkeys([*names, *extra])]
    if holdings.log_prob:
        columns.append(Column("mean_log_prob", get_metric("mean_log_prob"), "log_prob"))
    ks = [k for k in KS if k <= holdings.depth]
    hits = [
        ("accuracy", "answer_hits", holdings.texts and holdings.kinds <= {"text", "regex"}),
        ("gold_passage", "passage_hits", holdings.gold_passages),
        ("gold_page", "page_hits", holdings.gold_pages),
    ]
    for what, source, possible in hits:
        if possible:
            for k in ks:
                name = f"top_{k}_{what}"
                columns.append(Column(name, get_metric("top_k_accuracy", k=k, name=name), source))
    if ks and (holdings.gold_passages or holdings.gold_pages):
        for name in ("mrr", "r_precision", *(f"recall_at_{k}" for k in ks)):
            columns.append(Column(name, get_metric(name), "gold"))
    if holdings.log_partition:
        columns.append(Column("retrieval_mass", get_metric("retrieval_mass"), "mass"))
    return columns


def headline(columns: Collection[Column]) -> str | None:
    """The metric to name first."""
    return next((column.name for column in columns), None)
