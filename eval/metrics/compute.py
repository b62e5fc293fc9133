"""`compute`: a metric by name over predictions and references in memory; and the table of names."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from eval.metrics.base import Metric, Score, mean, shown
from eval.metrics.inputs import only_answer, paired, reference_texts, text
from rag_core.datasets.msmarco import NO_ANSWER

# name: (module, class, options). `{k}` in a name is a number.
METRICS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "exact_match": ("exact_match", "ExactMatch", {}),
    "f1": ("f1", "F1", {}),
    "regex_match": ("regex_match", "RegexMatch", {}),
    "regex_search": ("regex_match", "RegexSearch", {}),
    "bleu1": ("bleu", "Bleu", {"order": 1}),
    "bleu4": ("bleu", "Bleu", {"order": 4}),
    "rouge_l": ("rouge_l", "RougeL", {}),
    "rouge_l_kilt": ("rouge_l_kilt", "RougeLKilt", {}),
    "bleu1_msmarco": ("bleu1_msmarco", "Bleu1MsMarco", {}),
    "rouge_l_msmarco": ("rouge_l_msmarco", "RougeLMsMarco", {}),
    "msmarco_f1": ("msmarco_f1", "MsMarcoF1", {}),
    "q_bleu1": ("q_bleu1", "QBleu1", {"name": "q_bleu1", "weights": (0.41, 0.36, 0.2, 0.03), "delta": 0.66}),
    "q_bleu1_default": (
        "q_bleu1",
        "QBleu1",
        {"name": "q_bleu1_default", "weights": (0.6, 0.1, 0.2, 0.1), "delta": 0.7},
    ),
    "fever_accuracy": ("fever_accuracy", "FeverAccuracy", {}),
    "fever_accuracy_2way": ("fever_accuracy", "FeverAccuracy", {"name": "fever_accuracy_2way", "ways": 2}),
    "fever_score": ("fever_score", "FeverScore", {}),
    "fever_precision": ("fever_evidence", "FeverEvidence", {"part": "precision"}),
    "fever_recall": ("fever_evidence", "FeverEvidence", {"part": "recall"}),
    "fever_f1": ("fever_evidence", "FeverEvidence", {"part": "f1"}),
    "distinct_trigrams": ("distinct_trigrams", "DistinctNgrams", {}),
    "top_k_accuracy": ("top_k_accuracy", "TopKAccuracy", {}),
    "mrr": ("mrr", "Mrr", {}),
    "mrr_at_k": ("mrr", "Mrr", {}),
    "recall_at_k": ("recall_at_k", "AtK", {"part": "recall"}),
    "precision_at_k": ("recall_at_k", "AtK", {"part": "precision"}),
    "success_at_k": ("recall_at_k", "AtK", {"part": "success"}),
    "r_precision": ("r_precision", "RPrecision", {}),
    "kilt_em": ("kilt", "Kilt", {"part": "em"}),
    "kilt_f1": ("kilt", "Kilt", {"part": "f1"}),
    "kilt_accuracy": ("kilt", "Kilt", {"part": "accuracy"}),
    "kilt_rougel": ("kilt", "Kilt", {"part": "rougel"}),
    "kilt_downstream_em": ("kilt", "Kilt", {"part": "em", "combined": False}),
    "kilt_downstream_f1": ("kilt", "Kilt", {"part": "f1", "combined": False}),
    "kilt_downstream_accuracy": ("kilt", "Kilt", {"part": "accuracy", "combined": False}),
    "kilt_downstream_rougel": ("kilt", "Kilt", {"part": "rougel", "combined": False}),
    "mean_log_prob": ("mean_log_prob", "MeanLogProb", {}),
    "retrieval_mass": ("retrieval_mass", "RetrievalMass", {}),
}


def get_metric(name: str, /, **options: Any) -> Metric:
    """The metric of a name. `top_5_accuracy` is `top_k_accuracy` with k=5, and so for `recall_at_5`.

    Raises ValueError for a name that is none, or for options the metric does not have.
    """
    if not isinstance(name, str):
        raise ValueError(f"metric name {shown(name)}: expected text")
    family, k = name, re.search(r"(?<=_)\d+(?=_accuracy$|$)", name)
    if name not in METRICS and k:
        family = f"{name[: k.start()]}k{name[k.end() :]}"
        options = {"k": int(k.group()), **options}
    if family not in METRICS:
        raise ValueError(f"unknown metric {name!r}; metrics: {', '.join(METRICS)}")
    module, kind, fixed = METRICS[family]
    metric = getattr(importlib.import_module(f"eval.metrics.{module}"), kind)
    if family.endswith("_at_k") and family != "mrr_at_k" and "k" not in options:
        raise ValueError(f"{family} needs its k: write {family[:-1]}5, or k=5")
    try:
        return metric(**fixed, **options)
    except TypeError:
        raise ValueError(f"metric {name} does not take the options {options}") from None


def compute(name: str, predictions: Any, references: Any = None, **options: Any) -> Score:
    """Score predictions against references.

    `predictions` and `references` are sequences of equal length (lists, arrays, Series of one index), or
    mappings joined by id (integers and their texts are the same id). A reference is a text or a list of
    texts; for rankings, FEVER and KILT see the metric. A prediction that is None or NaN is missing: it
    counts, as wrong, and is reported in `n_missing`. Raises ValueError, naming the example, on whatever
    the metric does not take; on empty input, unequal lengths, unknown ids, and Series whose indexes differ.
    """
    metric = get_metric(name, **options)
    by_id = isinstance(predictions, Mapping)
    predictions, references = paired(metric, predictions, references)
    rows, n_missing = _statistics(metric, predictions, references)
    scored = [row for row in rows if row is not None]
    drops = getattr(metric, "unanswerable", "") == "drop" and "unanswerable" not in options
    if not scored and drops and not by_id and _plain(predictions):
        return compute(name, predictions, references, unanswerable="score", **options)
    per_example = [None if row is None else metric.example(row) for row in rows]
    value = mean(v for v in per_example if v is not None) if metric.is_mean else metric.total(scored)
    details = metric.details(scored)
    if metric.leaves_missing_out:
        details = {**details, "n_total": len(rows), "coverage": len(scored) / len(rows)}
    return Score(value, per_example, len(scored), n_missing, metric.signature, details)


def _statistics(
    metric: Metric, predictions: list, references: list
) -> tuple[list[tuple[int, ...] | None], int]:
    """Each example's integers, and how many had no prediction; ValueError names the example."""
    rows: list[tuple[int, ...] | None] = []
    n_missing = 0
    if _all_plain(metric, predictions, references):
        return list(map(metric.statistics, predictions, references)), 0
    for index, (prediction, reference) in enumerate(zip(predictions, references)):
        try:
            prediction = only_answer(metric, prediction)
            if metric.is_missing(prediction):
                row = metric.missing(reference_texts(metric, reference))
                n_missing += row is not None or metric.leaves_missing_out
            else:
                row = metric.statistics(text(metric, prediction), reference_texts(metric, reference))
        except ValueError as error:
            raise ValueError(f"{metric.name}, example {index}: {error}") from None
        except (TypeError, KeyError, AttributeError, IndexError) as error:
            what = f"prediction {shown(prediction)}, references {shown(reference)}"
            raise ValueError(
                f"{metric.name}, example {index}: {what}: not what this metric takes ({error!r})"
            ) from error
        rows.append(row)
    return rows, n_missing


def _all_plain(metric: Metric, predictions: list, references: list) -> bool:
    """Whether there is nothing to check: texts, each with a list of reference texts."""
    return (
        metric.takes == "answer"
        and set(map(type, predictions)) == {str}
        and set(map(type, references)) == {list}
        and all(references)
        and set(map(type, chain.from_iterable(references))) == {str}
    )


def _plain(predictions: Sequence[Any]) -> bool:
    """Texts by themselves, not the answers of an MS MARCO file: its rule for unanswerable questions, when
    it would leave nothing to score, is not meant for them."""
    return all(isinstance(p, str) and p != NO_ANSWER for p in predictions)
