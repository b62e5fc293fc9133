"""What a metric is: integer statistics per example → one value over a set.

    MeanMetric     the mean of a value per example (exact match, F1, ROUGE-L)
    PooledMetric   a function of the statistics' sums (BLEU, FEVER F1)

Statistics are tuples of integers, so that sums over any partition, in any order, are the same; a mean
of fractions is an exact sum rounded once (`math.fsum`). A number that is no fraction of small integers is
kept as its own 64 bits.
"""

from __future__ import annotations

import math
import numbers
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

Statistics = tuple[int, ...]


@dataclass(frozen=True)
class Score:
    """A metric's value over a set.

    `value` lies in [0, 1] (log-probabilities apart) and is None where it is undefined (0/0).
    `per_example` has one number per example, None where the metric leaves the example out. `n` examples
    were scored; `n_missing` had no prediction, which counts as wrong. `details` are further numbers
    of the same count (distinct and total n-grams, the accuracies at each k, …).
    """

    value: float | None
    per_example: list[float | None]
    n: int
    n_missing: int
    signature: str
    details: dict[str, Any] = field(default_factory=dict)


class Metric:
    """Base of all metrics; see `MeanMetric` and `PooledMetric`.

    `takes` says what an example is: "answer" (a text and reference texts), "ranking" (ids or hits, best
    first), "fever" and "kilt" (rows of those tasks' files), "number" (a value of the run itself).
    """

    name: str
    takes: ClassVar[str] = "answer"
    needs_references: ClassVar[bool] = True
    needs_evidence: ClassVar[bool] = False
    """Scores predicted evidence against gold evidence (FEVER)."""
    binary: ClassVar[bool] = False
    """Each example is 0 or 1: intervals by Wilson."""
    width: ClassVar[int] = 1
    """Integers per example."""
    options: ClassVar[str] = ""
    """How the value comes about, `key:value` joined by `|`: the signature's middle."""
    version: ClassVar[int] = 1
    """Raised when the metric's values change."""
    defined_over_nothing: ClassVar[bool] = False
    """Whether an empty set has a value, or a documented lack of one, and is not an error."""
    is_mean: ClassVar[bool] = False
    """The value is the mean of the examples' own."""
    leaves_missing_out: ClassVar[bool] = False
    """No number stands in for a missing one: such examples count in `n_missing`, but not in `n`."""

    unbounded: ClassVar[bool] = False
    """Values lie outside [0, 1] too, down to −inf."""

    def is_missing(self, prediction: Any) -> bool:
        """Whether there is no prediction: None, NaN, pandas' NA. An empty text is a prediction."""
        return is_missing(prediction)

    def statistics(self, prediction: Any, references: Any) -> Statistics | None:
        """The integers of one example; None when the metric leaves it out by definition."""
        raise NotImplementedError

    def missing(self, references: Any) -> Statistics | None:
        """The integers of an example without a prediction: counted, and wrong."""
        return (0,) * self.width

    def example(self, statistics: Statistics) -> float:
        """The value of one example by itself."""
        raise NotImplementedError

    def total(self, rows: Sequence[Statistics]) -> float | None:
        """The value over the examples that are scored."""
        raise NotImplementedError

    def details(self, rows: Sequence[Statistics]) -> dict[str, Any]:
        """Further numbers of the same count, for `Score.details`."""
        return {}

    @property
    def signature(self) -> str:
        return "|".join(part for part in (self.name, self.options, f"v:{self.version}") if part)


class MeanMetric(Metric):
    """The mean of `example` over the examples; undefined (None) over none."""

    is_mean = True

    def total(self, rows: Sequence[Statistics]) -> float | None:
        return mean(self.example(row) for row in rows)


class BinaryMetric(MeanMetric):
    """A mean of zeros and ones: one integer per example."""

    binary = True

    def example(self, statistics: Statistics) -> float:
        return float(statistics[0])


class PooledMetric(Metric):
    """A function of the sums of the statistics."""

    def example(self, statistics: Statistics) -> float:
        """A corpus of one."""
        return self.score(statistics) or 0.0

    def total(self, rows: Sequence[Statistics]) -> float | None:
        return self.score([sum(column) for column in zip(*rows)] if rows else [0] * self.width)

    def score(self, sums: Sequence[int]) -> float | None:
        raise NotImplementedError


def mean(values: Iterable[float]) -> float | None:
    """Exact sum, rounded once, over the count; None over nothing."""
    values = list(values)
    return math.fsum(values) / len(values) if values else None


_NOTHING = ("NAType", "NaTType", "MaskedConstant")  # pandas' and NumPy's words for a value that is not there


def is_missing(prediction: Any) -> bool:
    """None, NaN of any number type (NumPy's too), and the missing values of pandas and masked arrays."""
    if type(prediction) is str:
        return False
    if prediction is None or type(prediction).__name__ in _NOTHING:
        return True
    return isinstance(prediction, numbers.Number) and bool(prediction != prediction)


def listed(value: Any, what: str) -> list[Any]:
    """A list, a tuple or an array as a list; ValueError where it is none of these."""
    if isinstance(value, list | tuple):
        return list(value)
    if hasattr(value, "tolist") and getattr(value, "ndim", 1):  # NumPy, pandas
        return list(value.tolist())
    if hasattr(value, "to_pylist"):  # Arrow
        return list(value.to_pylist())
    raise ValueError(f"{what} {shown(value)}: expected a list")


def shown(value: Any) -> str:
    """A value for an error message, cut to a line."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def real_number(value: Any) -> float:
    """The value as a float. ValueError where it is not a number (a truth value, a text, an array)."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{shown(value)}: expected a number, or None where there is none")
    return float(value)


def bits_of(value: float) -> int:
    """The 64 bits of a float as an integer: nothing is lost; `float_of` is the inverse."""
    return struct.unpack("<q", struct.pack("<d", value))[0]


def float_of(bits: int) -> float:
    return struct.unpack("<d", struct.pack("<q", bits))[0]
