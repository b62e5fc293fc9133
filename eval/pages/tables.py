"""The verdict and the tables of the report as markup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from eval.pages.figures import MISSING, figure, interval
from eval.pages.markup import Markup, cut, element
from eval.pages.views import Run, View, runs_by_task

_OWN_SLICES = ("answer_in_passages=", "answer_rank=")
_SIGNS = {
    "pass": ("good", "✓ Pass"),
    "first": ("good", "✓ First run: nothing to compare with yet"),
    "regression": ("bad", "✗ Regression"),
    "failed": ("bad", "✗ A stage could not run"),
    "not_comparable": ("warn", "! Not comparable"),
}


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Any]], **attributes: Any) -> Markup:
    """A table in a frame that scrolls by itself; the first cell of each row names it."""
    body = [
        element("tr", element("th", row[0], scope="row"), [element("td", cell) for cell in row[1:]])
        for row in rows
    ]
    inner = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", [element("th", name, scope="col") for name in head])),
        element("tbody", body),
        **attributes,
    )
    return element("div", inner, class_="scroll", role="region", aria_label=caption, tabindex=0)


def verdict_section(verdict: Mapping[str, Any]) -> Markup:
    """What was decided and why, then every comparison, those that decide first."""
    word = str(verdict.get("verdict", "unknown"))
    kind, sign = _SIGNS.get(word, ("warn", f"! {word}"))
    facts = [element("p", sign, class_=f"verdict {kind}")]
    when = [str(verdict[k]) for k in ("night", "time") if verdict.get(k)]
    facts += [element("p", "Night " + ", ".join(when), class_="quiet")] if when else []
    facts += _list("Why", verdict.get("failures"), "bad") + _list("Remarks", verdict.get("remarks"), "warn")
    chains = [_chain_row(c) for c in verdict.get("chains", ())]
    if chains:
        facts.append(table("Checkpoints", ("Checkpoint", "Verdict", "Compared with", "Reasons"), chains))
    comparisons = sorted(verdict.get("comparisons", ()), key=lambda c: not c.get("primary"))
    if comparisons:
        facts.append(_comparisons(comparisons))
    return section("verdict", "Verdict", facts)


def _list(title: str, lines: Any, kind: str) -> list[Markup]:
    if not lines:
        return []
    items = [element("li", cut(str(line), 2000)) for line in lines]
    return [element("h3", title), element("ul", items, class_=kind)]


def _chain_row(chain: Mapping[str, Any]) -> list[str]:
    name = f"{chain.get('task')}/{chain.get('checkpoint')}"
    word = str(chain.get("verdict", "")).replace("_", " ")
    return [name, word, chain.get("baseline") or MISSING, "; ".join(map(str, chain.get("reasons") or ()))]


def _comparisons(comparisons: Sequence[Mapping[str, Any]]) -> Markup:
    head = (
        "Metric",
        "Baseline",
        "Candidate",
        "Difference",
        "95% interval",
        "p",
        "Wins",
        "Losses",
        "n",
        "Test",
    )
    rows = []
    for c in comparisons:
        metric = str(c.get("metric"))
        whole = [c.get("checkpoint"), c.get("task"), metric]
        name = " · ".join(str(part) for part in whole if part)
        name += "" if c.get("slice", "all") == "all" else f" [{c['slice']}]"
        p = c.get("p") if c.get("p_holm") is None else c["p_holm"]
        figures = [figure(c.get(k), metric) for k in ("baseline", "candidate")]
        rows.append(
            [
                element("strong", f"{name} (decides)") if c.get("primary") else name,
                *figures,
                figure(c.get("difference"), metric, "+"),
                interval(c.get("ci_low"), c.get("ci_high"), metric, "+") or MISSING,
                MISSING if p is None else f"{p:.3g}",
                *(c.get(k, MISSING) for k in ("wins", "losses", "n", "test")),
            ]
        )
    return table("Comparisons, in percent points; p of what decides is Holm's", head, rows)


def changes_section(views: Sequence[View]) -> Markup:
    """How many examples changed, view by view."""
    rows = []
    for view in views:
        difference, changed = view.changes()
        counts = [MISSING] * 3
        if view.baseline is not None:
            counts = [f"{n:,}" for n in ((difference < 0).sum(), (difference > 0).sum(), changed.sum())]
        no_answer = int((view.candidate.results.rows.status != "ok").sum())
        n = len(view.candidate.results.rows)
        rows.append([view.name, view.primary or MISSING, *counts, f"{no_answer:,}", f"{n:,}"])
    head = ("Runs", "By", "Lost", "Won", "Changed answers", "Without an answer", "Questions")
    notes = [element("p", view.note, class_="warn") for view in views if view.note]
    return section("changes", "What changed", [*notes, table("Examples that changed", head, rows)])


def metrics_section(views: Sequence[View]) -> Markup:
    """Every metric over whole test sets, a table for each task."""
    parts = []
    for task, runs in runs_by_task(views).items():
        names = list(dict.fromkeys(m for run in runs for m in run.results.signatures))
        rows = []
        for metric in names:
            cells = [_cell(run, metric) for run in runs]
            rows.append([element("span", metric, title=_signature(runs, metric)), *cells])
        head = ("Metric", *(run.label for run in runs))
        parts.append(table(f"{task}: all metrics, in percent with 95% intervals", head, rows))
    note = "A missing or failed prediction counts as wrong; how many there are stands below a value."
    return section("metrics", "All metrics", [element("p", note, class_="quiet"), *parts])


def _signature(runs: Sequence[Run], metric: str) -> str:
    return next(run.results.signatures[metric] for run in runs if metric in run.results.signatures)


def summary_row(run: Run, metric: str, slice_: str = "all") -> Mapping[str, Any] | None:
    s = run.results.summary
    found = s[(s.metric == metric) & (s.slice == slice_) & (s.scope == "all")]
    return None if found.empty else found.iloc[0].to_dict()


def _cell(run: Run, metric: str) -> Any:
    row = summary_row(run, metric)
    if row is None:
        return MISSING
    between = interval(row["ci_low"], row["ci_high"], metric)
    missing = [element("br"), element("small", f"{row['n_missing']:,} missing of {row['n']:,}")]
    return [
        figure(row["value"], metric),
        [" ", element("small", between)] if between else None,
        missing if row["n_missing"] else None,
    ]


def slices_section(views: Sequence[View]) -> Markup | None:
    """The first metrics on every slice: baseline, candidate, difference."""
    parts = []
    for view in views:
        summary = view.candidate.results.summary
        names = [s for s in pd.unique(summary.slice) if s != "all"]
        metrics = [m for m in dict.fromkeys([view.primary, *view.metrics()]) if m][:2]
        rows = [row for name in names if (row := _slice_row(view, name, metrics)) is not None]
        if rows:
            columns = [c for m in metrics for c in _slice_columns(view, m)]
            parts.append(table(f"{view.name}, in percent", ("Slice", "n", *columns), rows))
    if not parts:
        return None
    note = "By what was retrieved, each run has its own questions: two numbers in column n, no difference."
    paired = any(view.baseline is not None for view in views)
    return section("slices", "Slices", [*([element("p", note, class_="quiet")] if paired else []), *parts])


def _slice_columns(view: View, metric: str) -> list[str]:
    if view.baseline is None:
        return [metric]
    return [f"{metric}, {run.label}" for run in view.runs] + ["difference"]


def _slice_row(view: View, name: str, metrics: Sequence[str]) -> list[Any] | None:
    """Slices by what was retrieved hold other questions in each run: they have no difference."""
    cells: list[Any] = []
    sizes = []
    for metric in metrics:
        found = [summary_row(run, metric, name) for run in view.runs]
        values = [np.nan if row is None or row["value"] is None else row["value"] for row in found]
        sizes.append([0 if row is None else int(row["n"]) for row in found])
        cells += [figure(v, metric) for v in values]
        if view.baseline is not None:
            own = name.startswith(_OWN_SLICES)
            cells.append(MISSING if own else _difference(values[1] - values[0], metric))
    largest = [max(n) for n in zip(*sizes)]
    if not any(largest):
        return None
    same = len(set(largest)) == 1
    return [cut(name, 200), f"{largest[0]:,}" if same else ", ".join(f"{n:,}" for n in largest), *cells]


def _difference(value: float, metric: str) -> Any:
    text = figure(value, metric, "+")
    if text == MISSING or float(text) == 0:
        return text
    return element("span", text, class_="good" if value > 0 else "bad")


def section(name: str, title: str, parts: Sequence[Markup]) -> Markup:
    return element("section", element("h2", title, id=f"{name}-title"), list(parts), id=name,
                   aria_labelledby=f"{name}-title")  # fmt: skip
