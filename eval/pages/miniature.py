"""The paper in miniature as one page: its tables and figures beside ours, and what holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval.pages.curves import Point, Series, curves
from eval.pages.figures import MISSING, figure, interval
from eval.pages.markup import Markup, element, page
from eval.pages.tables import section, table

_ABOUT = (
    "Retrieval-augmented generation (Lewis et al. 2020, arXiv 2005.11401): every table and figure again, on "
    "a generated world and with small models. In percent with 95% intervals. The paper's own figures, in "
    "italics, are of other data and far larger models: what can be compared is which row is ahead, not the "
    "numbers."
)


@dataclass(frozen=True)
class Heatmap:
    """An answer with the posterior over its passages for each token [T, K]; without tokens there is none."""

    title: str
    paper: str
    question: str = ""
    prediction: str = ""
    tokens: tuple[str, ...] = ()
    posterior_TK: tuple[tuple[float, ...], ...] = ()
    titles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chart:
    title: str
    x: str
    paper: str


@dataclass(frozen=True)
class Part:
    """An experiment: rows of `figures.parquet` and `claims.parquet`, and what they are called."""

    name: str
    title: str
    about: str
    figures: Sequence[Mapping[str, Any]] = ()
    claims: Sequence[Mapping[str, Any]] = ()
    charts: Sequence[Chart] = ()
    heatmaps: Sequence[Heatmap] = ()


@dataclass(frozen=True)
class Made:
    """How the page came about."""

    command: str
    facts: Sequence[tuple[str, str]]
    sizes: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[tuple[str, float, str]] = ()
    """Name, seconds, command."""


def miniature_page(parts: Sequence[Part], made: Made) -> str:
    """The whole page, self-contained, without any script."""
    claims = [claim for part in parts for claim in part.claims]
    links = [
        ("claims", "What holds"),
        *((part.name, part.title) for part in parts),
        ("made", "How it was made"),
    ]
    nav = [element("li", element("a", title, href=f"#{name}")) for name, title in links]
    body = [
        element("a", "Skip to the figures", href="#claims", class_="skip"),
        element(
            "header",
            element("h1", "The paper in miniature"),
            element("p", _ABOUT, class_="quiet"),
            element("nav", element("ul", nav), aria_label="Sections"),
        ),
        element("main", _claims_section(claims), [_part_section(p) for p in parts], _made_section(made)),
    ]  # fmt: skip
    return page("The paper in miniature", body, None, "miniature")


def _claims_section(claims: Sequence[Mapping[str, Any]]) -> Markup:
    holding = sum(bool(c["holds"]) for c in claims)
    kind = "good" if holding == len(claims) else "warn"
    verdict = element("p", f"{holding} of {len(claims)} claims hold", class_=f"verdict {kind}")
    return section("claims", "What holds", [verdict, *_claims_table(claims, "All claims")])


def _claims_table(claims: Sequence[Mapping[str, Any]], caption: str) -> list[Markup]:
    if not claims:
        return []
    rows = []
    for c in claims:
        holds = (
            element("span", "✓ holds", class_="good")
            if c["holds"]
            else element("span", "✗ does not hold", class_="bad")
        )
        rows.append([c["claim"], c["expected"], holds, c["why"], f"{c['n']:,}", element("i", c["paper"])])
    head = ("Claim", "Expected", "", "Found", "n", "In the paper")
    return [table(caption, head, rows, class_="claims")]


def _part_section(part: Part) -> Markup:
    inner: list[Markup] = [element("p", part.about)]
    charts = {chart.title: chart for chart in part.charts}
    for title in dict.fromkeys(row["title"] for row in part.figures):
        rows = [row for row in part.figures if row["title"] == title]
        inner.append(_chart(charts[title], rows) if title in charts else _table(title, rows))
    inner += [_heatmap(h) for h in part.heatmaps]
    inner += _claims_table(part.claims, "Claims")
    return section(part.name, part.title, inner)


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> Markup:
    """The paper's layout; the paper's figures stand in a row in italics below ours."""
    columns = list(dict.fromkeys(row["column"] for row in rows))
    body: list[list[Any]] = []
    for name in dict.fromkeys(row["row"] for row in rows):
        cells = {row["column"]: row for row in rows if row["row"] == name}
        if any(cell["value"] is not None or cell["n"] for cell in cells.values()):
            body.append([name, *(_cell(cells[c]) for c in columns)])
        if any(cell["paper"] for cell in cells.values()):
            body.append(
                [
                    element("i", f"{name} (paper)"),
                    *(element("i", cells[c]["paper"] or MISSING) for c in columns),
                ]
            )
    return table(title, ("", *columns), body)


def _cell(row: Mapping[str, Any]) -> Any:
    if row["value"] is None:
        return MISSING
    metric = row["metric"]
    return [
        figure(row["value"], metric),
        " ",
        element("small", interval(row["ci_low"], row["ci_high"], metric)),
    ]


def _chart(chart: Chart, rows: Sequence[Mapping[str, Any]]) -> Markup:
    series = [
        Series(
            name,
            tuple(
                Point(r["column"], r["value"], r["ci_low"], r["ci_high"]) for r in rows if r["row"] == name
            ),
        )
        for name in dict.fromkeys(row["row"] for row in rows)
    ]
    return curves(chart.title, chart.x, series, f"In the paper: {chart.paper}" if chart.paper else "")


def _heatmap(heat: Heatmap) -> Markup:
    if not heat.tokens:
        return element("p", f"{heat.title}: no answer with a posterior by token.")
    head = ["Passage", *(token.replace("Ġ", " ") for token in heat.tokens)]
    rows = [
        [title, *(_share(token[k]) for token in heat.posterior_TK)] for k, title in enumerate(heat.titles)
    ]
    shown = [
        element("p", "Question: ", element("b", heat.question, class_="text")),
        element("p", "Answer: ", element("b", heat.prediction, class_="text")),
        table(f"{heat.title}: p(z|x,y_i,y_<i) in percent", head, rows, class_="heat"),
    ]
    if heat.paper:
        shown.append(element("p", f"In the paper: {heat.paper}", class_="quiet"))
    return element("div", shown)


def _share(p: float) -> Markup:
    level = min(10, max(0, round(10 * p)))
    return element("span", figure(p, "share"), class_=f"h{level}")


def _made_section(made: Made) -> Markup:
    facts = [[name, value] for name, value in made.facts]
    sizes = [
        [name, ", ".join(map(str, v)) if isinstance(v, list) else str(v)] for name, v in made.sizes.items()
    ]
    total = sum(seconds for _, seconds, _ in made.steps)
    steps = [[name, f"{seconds:.1f}", element("code", command)] for name, seconds, command in made.steps]
    parts = [
        element("p", element("code", made.command)),
        table("Machine and versions", ("", ""), facts),
        table("Sizes", ("", ""), sizes),
    ]
    if steps:
        said = element("summary", f"{len(steps)} commands, {total:.0f} s together, one after the other")
        parts.append(element("details", said, table("Commands", ("Step", "Seconds", "Command"), steps)))
    return section("made", "How it was made", parts)
