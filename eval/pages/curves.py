"""Figures over a list of points: a line for each series with its interval, a table behind, as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eval.pages.figures import MISSING, figure, interval
from eval.pages.markup import Markup, element
from eval.pages.tables import table

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 12, 40
_MARKS = ("circle", "square", "triangle", "diamond", "cross")
_SIZE = 4.5


@dataclass(frozen=True)
class Point:
    """One value at one place of the axis; shares in [0, 1]."""

    at: str
    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    name: str
    points: tuple[Point, ...]


def curves(title: str, x_label: str, series: Sequence[Series], note: str = "") -> Markup:
    """The plot, its legend, and its table. Points stand at equal distances, whatever their numbers."""
    places = list(dict.fromkeys(p.at for s in series for p in s.points))
    legend = [
        element("li", element("svg", _mark(i, 8, 8), viewBox="0 0 16 16", class_=f"key s{i % 5}"), s.name)
        for i, s in enumerate(series)
    ]
    rows = [[s.name, *(_cell(s, place) for place in places)] for s in series]
    return element(
        "figure",
        element("figcaption", title),
        _plot(title, x_label, places, series),
        element("ul", legend, class_="legend"),
        element("p", note, class_="quiet") if note else None,
        table(f"{title}, in percent with 95% intervals", (x_label, *places), rows),
    )


def _cell(series: Series, place: str) -> object:
    point = next((p for p in series.points if p.at == place), None)
    if point is None or point.value is None:
        return MISSING
    return [figure(point.value, "share"), " ", element("small", interval(point.low, point.high, "share"))]


def _plot(title: str, x_label: str, places: Sequence[str], series: Sequence[Series]) -> Markup:
    known = [
        v
        for s in series
        for p in s.points
        if p.value is not None
        for v in (p.value, p.low, p.high)
        if v is not None
    ]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    room = (high - low) * 0.06 or 0.05
    low, high = max(0.0, low - room), min(1.0, high + room)

    def x(place: str) -> float:
        span = _WIDTH - _LEFT - _RIGHT - 40
        return _LEFT + 20 + span * places.index(place) / max(1, len(places) - 1)

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / ((high - low) or 1.0)

    ticks = [low + (high - low) * i / 4 for i in range(5)]
    grid = [
        [element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=f"{y(t):.1f}", y2=f"{y(t):.1f}", class_="grid"),
         element("text", figure(t, "share"), x=_LEFT - 6, y=f"{y(t) + 4:.1f}", class_="end")]
        for t in ticks
    ]  # fmt: skip
    names = [element("text", p, x=f"{x(p):.1f}", y=_HEIGHT - 20, class_="middle") for p in places]
    names.append(element("text", x_label, x=_WIDTH / 2, y=_HEIGHT - 4, class_="middle"))
    lines = [_line(i, s, x, y) for i, s in enumerate(series)]
    return element("svg", grid, names, lines, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=title)


def _line(number: int, series: Series, x, y) -> Markup:
    points = [p for p in series.points if p.value is not None]
    path = "M" + "L".join(f"{x(p.at):.1f} {y(p.value):.1f}" for p in points) if points else ""
    bars = [
        element("line", x1=f"{x(p.at):.1f}", x2=f"{x(p.at):.1f}", y1=f"{y(p.low):.1f}", y2=f"{y(p.high):.1f}",
                class_="bar")
        for p in points
        if p.low is not None and p.high is not None
    ]  # fmt: skip
    marks = [_mark(number, x(p.at), y(p.value), _said(series.name, p)) for p in points]
    return element("g", element("path", d=path, class_="way") if path else None, bars, marks,
                   class_=f"s{number % 5}")  # fmt: skip


def _said(name: str, p: Point) -> Markup:
    return element("title", f"{name}, {p.at}: {figure(p.value, 'share')} {interval(p.low, p.high, 'share')}")


def _mark(number: int, x: float, y: float, title: Markup | None = None) -> Markup:
    """Series differ by shape too, not by colour alone."""
    shape, r = _MARKS[number % len(_MARKS)], _SIZE
    if shape == "circle":
        return element("circle", title, cx=f"{x:.1f}", cy=f"{y:.1f}", r=r)
    paths = {
        "square": f"M{x - r:.1f} {y - r:.1f}h{2 * r}v{2 * r}h{-2 * r}Z",
        "triangle": f"M{x - r:.1f} {y + r:.1f}h{2 * r}L{x:.1f} {y - r:.1f}Z",
        "diamond": f"M{x - r:.1f} {y:.1f}L{x:.1f} {y - r:.1f}L{x + r:.1f} {y:.1f}L{x:.1f} {y + r:.1f}Z",
        "cross": f"M{x - r:.1f} {y - 1.5:.1f}h{2 * r}v3h{-2 * r}Z",
    }
    return element("path", title, d=paths[shape])
