"""Plots of what every night found: one line a metric, with its interval, as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from eval.pages.figures import figure, interval
from eval.pages.markup import Markup, element
from eval.pages.tables import section, table

NIGHTS = 90
_SHOWN_AT_ONCE = 2
_WIDTH, _HEIGHT = 640, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 12, 26


def history_section(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """The history's rows (oldest first), a block for each checkpoint on each task."""
    series: dict[tuple[str, str], dict[str, list[Mapping[str, Any]]]] = {}
    for row in rows:
        if row["metric"] is not None:
            by_metric = series.setdefault((row["task"], row["checkpoint"]), {})
            by_metric.setdefault(row["metric"], []).append(row)
    parts: list[Markup] = []
    for (task, checkpoint), by_metric in series.items():
        plots = [_figure(f"{task}/{checkpoint}: {m}", m, found[-NIGHTS:]) for m, found in by_metric.items()]
        parts.append(element("h3", f"{task}/{checkpoint}"))
        parts.append(element("div", plots[:_SHOWN_AT_ONCE], class_="plots"))
        if plots[_SHOWN_AT_ONCE:]:
            more = element("summary", f"{len(plots) - _SHOWN_AT_ONCE} more metrics")
            parts.append(element("details", more, element("div", plots[_SHOWN_AT_ONCE:], class_="plots")))
    if not parts:
        parts = [element("p", "The history holds no figures yet.")]
    note = f"At most the last {NIGHTS} nights. ● passed, ▲ regression, ◆ other; the band is the 95% interval."
    return section("history", "History", [element("p", note, class_="quiet"), *parts])


def _figure(title: str, metric: str, rows: Sequence[Mapping[str, Any]]) -> Markup:
    known = [r for r in rows if r["value"] is not None and math.isfinite(r["value"])]
    if not known:
        return element("figure", element("figcaption", f"{title}: no values"))
    last, first = known[-1], known[0]
    said = (
        f"{title}, {len(known)} nights: {figure(first['value'], metric)} on {first['night']}, "
        f"{figure(last['value'], metric)} on {last['night']}, "
        f"{sum(r['verdict'] == 'regression' for r in known)} regressions"
    )
    body = [
        [r["night"], figure(r["value"], metric), interval(r["ci_low"], r["ci_high"], metric), r["verdict"]]
        for r in known
    ]
    return element(
        "figure",
        element("figcaption", f"{metric}: {figure(last['value'], metric)}"),
        _plot(said, metric, known),
        element("details", element("summary", "As a table"),
                table(title, ("Night", "Value", "95% interval", "Verdict"), body)),
    )  # fmt: skip


def _plot(said: str, metric: str, rows: Sequence[Mapping[str, Any]]) -> Markup:
    bounds = [(_or(r["ci_low"], r["value"]), _or(r["ci_high"], r["value"])) for r in rows]
    low, high = min(b[0] for b in bounds), max(b[1] for b in bounds)
    room = (high - low) * 0.08 or abs(high) * 0.05 or 0.01
    low, high = low - room, high + room

    def x(i: int) -> float:
        span = _WIDTH - _LEFT - _RIGHT
        return _LEFT + (span * i / (len(rows) - 1) if len(rows) > 1 else span / 2)

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low)

    def path(points: Sequence[tuple[float, float]]) -> str:
        return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)

    upper = [(x(i), y(b[1])) for i, b in enumerate(bounds)]
    lower = [(x(i), y(b[0])) for i, b in enumerate(bounds)]
    ticks = [low + room, (low + high) / 2, high - room] if high - low > 2 * room else [(low + high) / 2]
    axis = [
        [element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=f"{y(t):.1f}", y2=f"{y(t):.1f}", class_="grid"),
         element("text", figure(t, metric), x=_LEFT - 6, y=f"{y(t) + 4:.1f}", class_="end")]
        for t in ticks
    ]  # fmt: skip
    marks = [_mark(x(i), y(r["value"]), r, metric) for i, r in enumerate(rows)]
    ends = [element("text", str(rows[0]["night"])[:10], x=_LEFT, y=_HEIGHT - 8)]
    if len(rows) > 1:
        ends.append(
            element("text", str(rows[-1]["night"])[:10], x=_WIDTH - _RIGHT, y=_HEIGHT - 8, class_="end")
        )
    return element(
        "svg",
        axis,
        element("path", d=path([*upper, *lower[::-1]]) + "Z", class_="band"),
        element("path", d=path([(x(i), y(r["value"])) for i, r in enumerate(rows)]), class_="line"),
        marks,
        ends,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=said,
    )


def _mark(x: float, y: float, row: Mapping[str, Any], metric: str) -> Markup:
    title = element("title", f"{row['night']}: {figure(row['value'], metric)}, {row['verdict']}")
    if row["verdict"] in ("pass", "first"):
        return element("circle", title, cx=f"{x:.1f}", cy=f"{y:.1f}", r=3.5, class_="mark")
    size = 6
    if row["verdict"] == "regression":
        shape = f"M{x - size:.1f} {y + size:.1f}L{x + size:.1f} {y + size:.1f}L{x:.1f} {y - size:.1f}Z"
        return element("path", title, d=shape, class_="mark worse")
    shape = f"M{x - size:.1f} {y:.1f}L{x:.1f} {y - size:.1f}L{x + size:.1f} {y:.1f}L{x:.1f} {y + size:.1f}Z"
    return element("path", title, d=shape, class_="mark other")


def _or(value: float | None, other: float) -> float:
    return other if value is None or not math.isfinite(value) else value
