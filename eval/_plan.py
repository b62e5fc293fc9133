"""Which metrics a run is scored with: by the task, the kinds of its answers, and what the run holds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from eval.metrics import get_metric
from eval.metrics.base import Metric
from rag_core.errors import UsageError

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
    predicted_evidence: bool = False
    gold_evidence: bool = False
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


def why_not(metric: Metric, holdings: Holdings) -> str | None:
    """Why a metric of the predictions cannot be measured here; None when it can."""
    kinds = ", ".join(sorted(holdings.kinds))
    kind = KIND_OF.get(metric.name, "label" if metric.takes == "fever" else None)
    if not holdings.predictions:
        return "it scores predictions, and there are none (--predictions)"
    if metric.takes == "ranking":
        return "it scores rankings against gold, and is measured by itself where both are known"
    if metric.name == "mean_log_prob" and not holdings.log_prob:
        return "the predictions hold no log_prob"
    if metric.name == "retrieval_mass" and not holdings.log_partition:
        return "no log_partition is known (--retrieved, of an exact search)"
    if kind is not None and kind not in holdings.kinds:
        return f"it scores answers of kind {kind}; those of task {holdings.task} here are of kind {kinds}"
    if metric.takes == "kilt" and not holdings.gold_pages:
        return f"it needs KILT's gold pages, and the questions of task {holdings.task} here hold none"
    if metric.needs_evidence and not holdings.gold_evidence:
        return "the questions hold no evidence"
    if metric.needs_evidence and not holdings.predicted_evidence:
        return "the predictions hold no predicted_evidence"
    return None


def plan_columns(holdings: Holdings, extra: Sequence[str] = ()) -> tuple[list[Column], dict[str, str]]:
    """The columns of a results table, in order, and why the task's other metrics are not among them.

    `extra` metrics are named by the user: UsageError where one of them cannot be measured.
    """
    columns: list[Column] = []
    not_computed: dict[str, str] = {}
    names = _BY_TASK.get(holdings.task) or [
        name for kind in ("text", "regex", "label") if kind in holdings.kinds for name in _BY_KIND[kind]
    ]
    for name in dict.fromkeys([*names, *extra]) if holdings.predictions or extra else ():
        metric = get_metric(name)
        reason = why_not(metric, holdings)
        if reason is not None and name in extra:
            raise UsageError(f"--metrics {name}: {reason}")
        if reason is not None:
            not_computed[name] = reason
        elif metric.takes != "number":
            columns.append(Column(name, metric, "prediction"))
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
    return columns, not_computed


def headline(columns: Collection[Column]) -> str | None:
    """The metric to name first."""
    return next((column.name for column in columns), None)
