"""The paper's Table 4 from judgements: majority votes, agreement, intervals, and what gold questions show.

Shapes: U pairs, C options, R replicates.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eval._human_judgements import OPTIONS, Judgement, Judgements
from eval._intervals import id_hashes, percentile_interval, poisson_weights, wilson
from eval._significance import mcnemar_exact

SEED = 0
NO_MAJORITY = "no_majority"


@dataclass(frozen=True)
class Share:
    """A count out of n, with Wilson's 95% interval; no share of nothing."""

    count: int
    n: int
    share: float | None
    ci_low: float | None
    ci_high: float | None

    @classmethod
    def of(cls, count: int, n: int) -> Share:
        low, high = wilson(count, n) if n else (None, None)
        return cls(count, n, count / n if n else None, low, high)


def majority(votes: Iterable[str]) -> str | None:
    """The option with more than half of the votes; None when there is none."""
    counts = Counter(votes)
    if not counts:
        return None
    option, most = counts.most_common(1)[0]
    return option if 2 * most > counts.total() else None


def krippendorff_alpha(units: Sequence[Sequence[str]]) -> tuple[float | None, tuple[float, float] | None]:
    """Krippendorff's alpha for nominal data, with a 95% bootstrap interval over units.

    `units`: the labels each unit was given; any number of annotators, missing ones left out. A unit with one
    label pairs with nothing and takes no part. alpha = 1 − (N − 1)·Σ_u Σ_{c≠k} n_uc n_uk / (m_u − 1) /
    Σ_{c≠k} n_c n_k (Krippendorff, Content Analysis, 2004, ch. 11). None where all labels are equal.
    """
    options = sorted({label for unit in units for label in unit})
    counts_UC = np.array([[list(u).count(o) for o in options] for u in units if len(u) > 1], np.float64)
    if not len(counts_UC):
        return None, None
    m_U = counts_UC.sum(axis=1)
    disagree_U = (m_U**2 - (counts_UC**2).sum(axis=1)) / (m_U - 1)
    ones = np.ones((len(m_U), 1))
    value = float(_alpha(ones, counts_UC, disagree_U)[0])
    if math.isnan(value):
        return None, None
    weights_UR = poisson_weights(id_hashes([str(u) for u in range(len(m_U))], SEED)).astype(np.float64)
    return value, percentile_interval(_alpha(weights_UR, counts_UC, disagree_U))


def _alpha(weights_UR: np.ndarray, counts_UC: np.ndarray, disagree_U: np.ndarray) -> np.ndarray:
    """alpha [R] of units counted so many times; NaN where it is undefined."""
    totals_RC = weights_UR.T @ counts_UC
    n_R = totals_RC.sum(axis=1)
    expected_R = n_R**2 - (totals_RC**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return 1 - (n_R - 1) * (weights_UR.T @ disagree_U) / expected_R


def aggregate(judgements: Judgements, min_gold: float = 0.0) -> dict[str, Any]:
    """Table 4 as JSON: options by criterion, agreement, annotators, counts, and the votes of each pair.

    Annotators whose share of right answers on gold questions is below `min_gold` are left out, and named.
    Gold questions themselves never enter the table.
    """
    by_annotator: dict[str, list[Judgement]] = defaultdict(list)
    for row in judgements.rows:
        by_annotator[row.annotator].append(row)
    people = [_annotator(name, rows, min_gold) for name, rows in sorted(by_annotator.items())]
    removed = {p["annotator"] for p in people if p["removed"]}
    kept = [row for row in judgements.rows if row.annotator not in removed and not row.gold]
    pairs: dict[str, list[Judgement]] = defaultdict(list)
    for row in sorted(kept, key=lambda r: (r.pair, r.annotator)):
        pairs[row.pair].append(row)
    votes = {
        criterion: {
            pair: [label for row in rows if (label := row.choices.get(criterion)) is not None]
            for pair, rows in pairs.items()
        }
        for criterion in judgements.criteria
    }
    voted = [(c, pair, given) for c, of_pair in votes.items() for pair, given in of_pair.items() if given]
    return {
        "names": {"a": judgements.names[0], "b": judgements.names[1]},
        "criteria": {name: _criterion(of_pair) for name, of_pair in votes.items()},
        "annotators": people,
        "counts": {**judgements.counts, "gold": sum(bool(r.gold) for r in judgements.rows),
                   "removed": sum(r.annotator in removed and not r.gold for r in judgements.rows)},
        "pairs": [_votes_row(*row) for row in voted],
    }  # fmt: skip


def _criterion(votes: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    units = [given for given in votes.values() if given]
    used = {label for unit in units for label in unit}
    scale = ("a", "b", "tie") if "tie" in used else OPTIONS[:4]
    scale += tuple(sorted(used - set(scale)))
    winners = Counter(majority(unit) or NO_MAJORITY for unit in units)
    value, interval = krippendorff_alpha(units)
    low, high = interval or (None, None)
    return {
        "rows": {o: asdict(Share.of(winners[o], len(units))) for o in (*scale, NO_MAJORITY)},
        "n": len(units),
        "judgements": sum(map(len, units)),
        "pairs_by_votes": {str(k): n for k, n in sorted(Counter(map(len, units)).items())},
        "alpha": value,
        "alpha_ci_low": low,
        "alpha_ci_high": high,
        "p_a_against_b": mcnemar_exact(winners["a"], winners["b"]),
    }


def _annotator(name: str, rows: Sequence[Judgement], min_gold: float) -> dict[str, Any]:
    """One annotator: gold questions right, and how often the text that stood first was preferred."""
    gold = [row.choices.get(c) in right for row in rows for c, right in row.gold.items() if right]
    sides = [row.choices[c] == row.left for row in rows for c in row.choices
             if row.left and row.choices[c] in ("a", "b")]  # fmt: skip
    share = Share.of(sum(gold), len(gold))
    return {
        "annotator": name,
        "judged": len(rows),
        "gold": asdict(share),
        "first_preferred": asdict(Share.of(sum(sides), len(sides))),
        "removed": share.share is not None and share.share < min_gold,
    }


def _votes_row(criterion: str, pair: str, given: Sequence[str]) -> dict[str, Any]:
    counts = {option: given.count(option) for option in OPTIONS}
    return {"criterion": criterion, "pair": pair, **counts, "majority": majority(given)}


def as_lines(table: Mapping[str, Any], markdown: bool = False) -> list[str]:
    """Table 4 as text, in percent, or as Markdown."""
    criteria = table["criteria"]
    options = list(dict.fromkeys(o for c in criteria.values() for o in c["rows"] if o != NO_MAJORITY))
    rows = [["", *(f"{name.capitalize()} ({c['n']} pairs)" for name, c in criteria.items())]]
    for option in (*options, NO_MAJORITY):
        cells = [_percent(c["rows"][option]) if option in c["rows"] else "–" for c in criteria.values()]
        rows.append([_label(option, table["names"]), *cells])
    rows.append(["Krippendorff's alpha", *(_alpha_text(c) for c in criteria.values())])
    rows.append([f"p, {_label('a', table['names'])} or {_label('b', table['names'])}",
                 *(f"{c['p_a_against_b']:.3g}" for c in criteria.values())])  # fmt: skip
    if markdown:
        lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
        return [lines[0], "|---|" + "---:|" * len(criteria), *lines[1:]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows]


def _cell(text: str) -> str:
    """Text that cannot break a Markdown table."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("\n", " ")


def _label(option: str, names: Mapping[str, str]) -> str:
    return f"{names[option]} better" if option in names else option.replace("_", " ").capitalize()


def _percent(share: Mapping[str, Any]) -> str:
    if share["share"] is None:
        return "–"
    low, high = 100 * share["ci_low"], 100 * share["ci_high"]
    return f"{100 * share['share']:.1f} [{low:.1f}, {high:.1f}] ({share['count']})"


def _alpha_text(c: Mapping[str, Any]) -> str:
    if c["alpha"] is None:
        return "undefined"
    return f"{c['alpha']:.3f} [{c['alpha_ci_low']:.3f}, {c['alpha_ci_high']:.3f}]"
