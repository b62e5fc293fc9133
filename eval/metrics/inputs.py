"""What `compute` takes, read by one rule: examples in a sequence or by id, texts and reference texts.

Everything that is not such an input is a ValueError that shows it: a set has no order, a mapping beside a
sequence has ids that nothing answers to, two Series with different indexes were never aligned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from eval.metrics.base import Metric, listed, shown


def paired(metric: Metric, predictions: Any, references: Any) -> tuple[list, list]:
    """Predictions and references of the same examples, in one order. ValueError where they do not fit."""
    if isinstance(predictions, Mapping):
        if references is None and not metric.needs_references:
            return paired(metric, list(predictions.values()), None)
        if isinstance(references, Mapping):
            return _joined(metric, predictions, references)
    if isinstance(predictions, Mapping) or isinstance(references, Mapping):
        raise ValueError(f"{metric.name}: predictions and references are both mappings by id, or neither is")
    if _is_series(predictions) and _is_series(references) and not predictions.index.equals(references.index):
        raise ValueError(
            f"{metric.name}: predictions and references are Series with different indexes; "
            "give mappings to join them by id, or lists where their order is known to be the same"
        )
    predictions = _sequence(metric, "predictions", predictions)
    if references is None and not metric.needs_references:
        references = [None] * len(predictions)
    references = [] if references is None else _sequence(metric, "references", references)
    if len(predictions) != len(references):
        hint = ""
        if references and all(len(r) == len(predictions) for r in references if isinstance(r, list)):
            hint = "; references are given per example, not per reference stream: transpose them"
        raise ValueError(
            f"{metric.name}: {len(predictions)} predictions but {len(references)} references{hint}"
        )
    if not predictions and not metric.defined_over_nothing:
        raise ValueError(f"{metric.name}: no examples, the value is undefined")
    return predictions, references


def _is_series(value: Any) -> bool:
    return hasattr(value, "iloc") and getattr(value, "ndim", 0) == 1


def _sequence(metric: Metric, what: str, examples: Any) -> list:
    if isinstance(examples, str):
        raise ValueError(f"{metric.name}: {what}: expected a sequence of examples, found one text")
    if hasattr(examples, "to_pylist"):  # Arrow
        return examples.to_pylist()
    unfit = isinstance(examples, bytes | AbstractSet) or hasattr(examples, "columns")
    if unfit or not isinstance(examples, Iterable) or getattr(examples, "ndim", 1) == 0:
        kind = type(examples).__name__
        raise ValueError(f"{metric.name}: {what}: expected a sequence of examples, found a {kind}")
    return list(examples)


def _joined(metric: Metric, predictions: Mapping, references: Mapping) -> tuple[list, list]:
    by_id = {str(key): value for key, value in predictions.items()}
    gold = {str(key): value for key, value in references.items()}
    if len(by_id) != len(predictions) or len(gold) != len(references):
        raise ValueError(f"{metric.name}: an id is there twice, as an integer and as a text")
    unknown = [key for key in by_id if key not in gold]
    if unknown:
        raise ValueError(f"{metric.name}: prediction for unknown id {unknown[0]!r} ({len(unknown)} such)")
    if not gold:
        raise ValueError(f"{metric.name}: no examples, the value is undefined")
    return [by_id.get(key) for key in gold], list(gold.values())


def only_answer(metric: Metric, prediction: Any) -> Any:
    """The answer in a list of one, as MS MARCO's files hold it; None in an empty list: none was given."""
    if metric.takes != "answer" or isinstance(prediction, str):
        return prediction
    if getattr(prediction, "ndim", 0) == 1:  # an array, as pandas makes them of lists
        prediction = prediction.tolist()
    if isinstance(prediction, list | tuple) and len(prediction) <= 1:
        return prediction[0] if prediction else None
    return prediction


def text(metric: Metric, prediction: Any) -> Any:
    """The prediction of a metric of texts as one; of other metrics as it is."""
    if type(prediction) is str or metric.takes != "answer":
        return prediction
    if not isinstance(prediction, str):
        raise ValueError(f"prediction {shown(prediction)}: expected text, or None where there is none")
    return prediction


def reference_texts(metric: Metric, reference: Any) -> Any:
    """The references of one example, a text or several, as a list; of other metrics as they are."""
    if type(reference) is list and set(map(type, reference)) == {str}:
        return reference
    if metric.takes != "answer" or not metric.needs_references:
        return reference
    if isinstance(reference, str):
        return [reference]
    if isinstance(reference, AbstractSet):
        reference = sorted(reference, key=str)
    many: Sequence = () if reference is None else listed(reference, "references")
    references = [r for r in many if r is not None]
    if not references:
        raise ValueError("no reference answers")
    if not all(isinstance(r, str) for r in references):
        raise ValueError(f"references {shown(references)}: expected texts")
    return references
