"""Tables in the paper's shape (Lewis et al. 2020, arXiv 2005.11401), its own figures beside the runs'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eval.pages.figures import MISSING, figure, interval
from eval.pages.markup import Markup, element
from eval.pages.tables import section, summary_row, table
from eval.pages.views import View, runs_by_task


@dataclass(frozen=True)
class Column:
    """A column of the paper: its head, and the task and metric that fill it."""

    head: str
    task: str
    metric: str


@dataclass(frozen=True)
class PaperTable:
    """`published`: rows of the paper, in percent; None where it gives no figure."""

    title: str
    columns: tuple[Column, ...]
    published: tuple[tuple[str, tuple[float | None, ...]], ...]


TABLES = (
    PaperTable(
        "Table 1: open-domain question answering, test",
        (
            Column("NQ, EM", "nq", "exact_match"),
            Column("TQA, EM", "triviaqa", "exact_match"),
            Column("WQ, EM", "webquestions", "exact_match"),
            Column("CT, EM", "curatedtrec", "regex_match"),
        ),
        (
            ("REALM", (40.4, None, 40.7, 46.8)),
            ("DPR", (41.5, 57.9, 41.1, 50.6)),
            ("RAG-Token", (44.1, 55.2, 45.5, 50.0)),
            ("RAG-Sequence", (44.5, 56.8, 45.2, 52.2)),
        ),
    ),
    PaperTable(
        "Table 2: generation and classification, test",
        (
            Column("Jeopardy, BLEU-1", "jeopardy", "bleu1"),
            Column("Jeopardy, Q-BLEU-1", "jeopardy", "q_bleu1"),
            Column("MS MARCO, ROUGE-L", "msmarco", "rouge_l_msmarco"),
            Column("MS MARCO, BLEU-1", "msmarco", "bleu1_msmarco"),
            Column("FEVER-3, accuracy", "fever3", "fever_accuracy"),
            Column("FEVER-2, accuracy", "fever2", "fever_accuracy"),
        ),
        (
            ("BART", (15.1, 19.7, 38.2, 41.6, 64.0, 81.1)),
            ("RAG-Token", (17.3, 22.2, 40.1, 41.5, 72.5, 89.5)),
            ("RAG-Sequence", (14.7, 21.4, 40.8, 44.2, 72.5, 89.5)),
        ),
    ),
    PaperTable(
        "Table 5: distinct trigrams of all",
        (
            Column("MS MARCO", "msmarco", "distinct_trigrams"),
            Column("Jeopardy", "jeopardy", "distinct_trigrams"),
        ),
        (
            ("BART", (70.7, 32.4)),
            ("RAG-Token", (77.8, 46.8)),
            ("RAG-Sequence", (83.5, 53.8)),
        ),
    ),
)
_OTHER_QA = ("squad", "efficientqa", "kilt", "custom")


def paper_section(views: Sequence[View]) -> Markup | None:
    """Every table of the paper that some run can fill; None when there is none."""
    by_task = runs_by_task(views)
    parts = [made for shape in TABLES if (made := _filled(shape, by_task)) is not None]
    others = tuple(
        Column(f"{t}, {m}", t, m) for t in _OTHER_QA for m in ("exact_match", "f1") if t in by_task
    )
    if others and (made := _filled(PaperTable("Other test sets", others, ()), by_task)) is not None:
        parts.append(made)
    if not parts:
        return None
    note = (
        "In percent, with 95% intervals. Rows in italics are the paper's own figures, on the whole test sets."
    )
    return section("tables", "Tables of the paper", [element("p", note, class_="quiet"), *parts])


def _filled(shape: PaperTable, by_task: dict) -> Markup | None:
    columns = [c for c in shape.columns if c.task in by_task]
    kept = [i for i, c in enumerate(shape.columns) if c in columns]
    rows = {}
    for column in columns:
        for run in by_task[column.task]:
            row = summary_row(run, column.metric)
            if row is not None:
                text = [figure(row["value"], column.metric), " "]
                text.append(element("small", interval(row["ci_low"], row["ci_high"], column.metric)))
                # Runs of several tasks that carry one name are one system.
                rows.setdefault(run.label, {})[column] = text
    if not rows:
        return None
    body = [[name, *(cells.get(c, MISSING) for c in columns)] for name, cells in rows.items()]
    for name, values in shape.published:
        own = [MISSING if values[i] is None else f"{values[i]:.1f}" for i in kept]
        body.append([element("i", f"{name} (paper)"), *(element("i", v) for v in own)])
    return table(shape.title, ("Model", *(c.head for c in columns)), body)
