"""One offline HTML page of results: the verdict, the tables, the history, and every example.

    python -m eval.report results/last results/now --verdict verdict.json --output report.html

Several runs of the same questions: the first is what the others are held against, unless --baseline gives
one for each, or the verdict (of eval.compare --json, or of eval.nightly) names them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from beam_jobs.options import HelpFormatter, Parser, register_file_systems
from eval._history import read_history
from eval.pages.examples import Limits, PassageTable, view_data
from eval.pages.history import history_section
from eval.pages.markup import Markup, element, page
from eval.pages.paper import paper_section
from eval.pages.tables import changes_section, metrics_section, section, slices_section, verdict_section
from eval.pages.views import View, make_views
from rag_core import files
from rag_core.errors import DataError, UsageError, run_command

_SHOW = (
    ("all", "all"),
    ("flips", "lost or won"),
    ("lost", "lost"),
    ("won", "won"),
    ("changed", "changed answers"),
    ("same", "the same answer"),
    ("unanswered", "without an answer"),
)


def report(
    views: Sequence[View],
    verdict: Mapping[str, Any] | None = None,
    history: Sequence[Mapping[str, Any]] | None = None,
    passages: str | None = None,
    limits: Limits | None = None,
    title: str = "Evaluation report",
) -> str:
    """The whole page. `passages` is a run of beam_jobs.split; without it passages are known by id alone."""
    limits = limits or Limits()
    store = PassageTable()
    data = [view_data(view, store, limits) for view in views]
    if passages:
        store.fill(passages, limits)
    sections = [
        verdict_section(verdict) if verdict else None,
        changes_section(views),
        paper_section(views),
        history_section(history) if history is not None else None,
        examples_section(data),
        slices_section(views),
        metrics_section(views),
    ]
    shown = [s for s in sections if s is not None]
    body = [
        element("a", "Skip to the examples", href="#examples", class_="skip"),
        element("header", element("h1", title), _contents(sections)),
        element("main", shown),
    ]
    return page(title, body, {"views": data, "passages": store.to_json()}, "report")


def _contents(sections: Sequence[Markup | None]) -> Markup:
    names = ("Verdict", "What changed", "Tables of the paper", "History", "Examples", "Slices", "All metrics")
    ids = ("verdict", "changes", "tables", "history", "examples", "slices", "metrics")
    links = [
        element("li", element("a", name, href=f"#{id_}"))
        for name, id_, made in zip(names, ids, sections)
        if made is not None
    ]
    return element("nav", element("ul", links), aria_label="Sections")


def examples_section(data: Sequence[Mapping[str, Any]]) -> Markup:
    """The frame of the example browser; the page's script fills it."""
    notes = [
        f"{view['name']}: {len(view['ids']):,} of {view['total']:,} examples are in this page; all are in "
        "per_example.parquet."
        for view in data
        if len(view["ids"]) < view["total"]
    ]
    several = len(data) > 1
    options = [element("option", view["name"], value=i) for i, view in enumerate(data)]
    show = [element("option", label, value=value) for value, label in _SHOW]
    controls = [
        _field("view", "Runs", element("select", options, id="view"), hidden=not several, kind="field wide"),
        _field("search", "Search", element("input", id="search", type="search", autocomplete="off",
                                           placeholder="question, answer, id")),
        _field("show", "Show", element("select", show, id="show")),
        _field("metric", "By metric", element("select", id="metric")),
        _field("sort", "Sort by", element("select", id="sort")),
        element("label", element("input", type="checkbox", id="reverse"), " reverse", class_="check"),
    ]  # fmt: skip
    rows = element("div", id="rows", role="presentation")
    listed = element("div", rows, id="list", role="listbox", tabindex=0,
                     aria_label="Examples; arrow keys choose one, Enter goes to it")  # fmt: skip
    return section(
        "examples",
        "Examples",
        [
            *(element("p", note, class_="quiet") for note in notes),
            element("noscript", element("p", "Browsing examples needs JavaScript; the tables do not.")),
            element("div", controls, class_="controls", role="search"),
            element("p", id="count", role="status"),
            element("div", listed, element("article", id="detail", tabindex=-1), class_="browser"),
        ],
    )


def _field(name: str, label: str, control: Markup, hidden: bool = False, kind: str = "field") -> Markup:
    return element("div", element("label", label, for_=name), control, class_=kind, hidden=hidden)


def parser() -> Parser:
    p = Parser(
        prog="python -m eval.report", description=__doc__, formatter_class=HelpFormatter, allow_abbrev=False
    )
    p.add_argument("results", nargs="+", metavar="DIR[:RUN]", help="results of eval.run")
    p.add_argument("--output", required=True, metavar="FILE", help="the page to write")
    p.add_argument(
        "--baseline", nargs="+", default=[], metavar="DIR[:RUN]", help="one for each run, in order"
    )
    p.add_argument("--verdict", metavar="FILE", help="JSON of eval.compare or eval.nightly")
    p.add_argument("--history", metavar="FILE", help="history.parquet of eval.nightly")
    p.add_argument("--predictions", nargs="+", default=[], metavar="DIR",
                   help="runs of beam_jobs.generate, in any order: posteriors by token")  # fmt: skip
    p.add_argument("--passages", metavar="DIR", help="run of beam_jobs.split: titles and texts")
    p.add_argument(
        "--max-examples", type=int, default=Limits.examples, metavar="N", help="for each pair of runs"
    )
    p.add_argument("--title", default="Evaluation report")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    args: argparse.Namespace = parser().parse_args(argv)
    register_file_systems()
    if args.max_examples < 1:
        raise UsageError(f"--max-examples {args.max_examples}: must be at least 1")
    verdict = files.read_json(args.verdict) if args.verdict else None
    if verdict is not None and not (isinstance(verdict, dict) and "verdict" in verdict):
        raise DataError(f"{args.verdict}: not a verdict of eval.compare or eval.nightly")
    if args.history and not files.exists(args.history):
        raise FileNotFoundError(2, "No such file", args.history)
    history = read_history(args.history) if args.history else None
    views = make_views(args.results, args.baseline, verdict, args.predictions)
    limits = Limits(examples=args.max_examples)
    text = report(views, verdict, history, args.passages, limits, args.title)
    files.write_bytes(args.output, text.encode())
    examples = sum(len(view.candidate.results.rows) for view in views)
    print(f"{args.output}  {len(text) / 1e6:.1f} MB, {examples:,} examples; next: open it in a browser")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
