"""Votes and Krippendorff's alpha the slow way: every pair of labels, counted one by one, in fractions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction


def nominal_alpha(units: Sequence[Sequence[object]]) -> Fraction | None:
    """1 − observed / expected disagreement; None where no two labels differ."""
    units = [unit for unit in units if len(unit) > 1]
    labels = [label for unit in units for label in unit]
    n = len(labels)
    observed = sum(
        Fraction(sum(x != y for x, y in itertools.permutations(unit, 2)), len(unit) - 1) for unit in units
    ) / Fraction(n)
    kinds = set(labels)
    different = sum(labels.count(x) * labels.count(y) for x in kinds for y in kinds if x != y)
    if not different:
        return None
    return 1 - observed / Fraction(different, n * (n - 1))


def majority_of(votes: Sequence[object]) -> object | None:
    """The label that more than half of the votes carry."""
    return next((v for v in votes if 2 * sum(w == v for w in votes) > len(votes)), None)
