"""Blinded sheets for pairwise human judgement, and the key that only the experimenter keeps.

Which text stands first alternates by a seeded hash: half of each sheet each way, and each pair in turn from
annotator to annotator. A sheet tells neither the systems, nor ids of questions, nor which pairs are gold.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval.pages.markup import cut, element, page, visible

CRITERIA = ("factuality", "specificity")
CHOICES = ("left", "right", "both_good", "both_poor")
MAX_CHARACTERS = 20_000
_ASKED = {
    "factuality": ("Factuality: which text is more factually true?", "is more factual"),
    "specificity": ("Specificity: which text is more specific?", "is more specific"),
}
_INSTRUCTIONS = (
    "Read what was asked and both texts. Which system wrote which is not shown, and changes each time. "
    "For each question choose one answer; you may look facts up. Choices are kept in this browser: you "
    "may close the page and go on later. At the end, export the file and send it back."
)


@dataclass(frozen=True)
class Pair:
    """Two texts for one question; `gold` names the right answers, by criterion, for quality control."""

    pair_id: str
    question: str
    a: str
    b: str
    gold: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Item:
    """One pair as one annotator sees it."""

    item_id: str
    pair: Pair
    left: str
    """Which of the pair's texts, "a" or "b", stands first."""

    @property
    def texts(self) -> tuple[str, str]:
        """The first text and the second."""
        return (self.pair.a, self.pair.b) if self.left == "a" else (self.pair.b, self.pair.a)


def sample(pairs: Sequence[Pair], n: int | None, seed: int) -> list[Pair]:
    """`n` pairs drawn by hash (all, if there are no more), the same for the same seed."""
    return sorted(pairs, key=lambda p: _digest(seed, "sample", p.pair_id))[:n]


def make_items(pairs: Sequence[Pair], sheet: int, seed: int) -> list[Item]:
    """The pairs in this sheet's own order, with its own sides.

    Ids start with a letter, so that no spreadsheet takes them for numbers.
    """
    by_side = sorted(pairs, key=lambda p: _digest(seed, "side", p.pair_id))
    left = {p.pair_id: "ab"[(i + sheet) % 2] for i, p in enumerate(by_side)}
    shown = sorted(pairs, key=lambda p: _digest(seed, f"order {sheet}", p.pair_id))
    return [Item("i" + _digest(seed, f"item {sheet}", p.pair_id)[:14], p, left[p.pair_id]) for p in shown]


def sheet_id(items: Sequence[Item]) -> str:
    """A name that stands for exactly these items."""
    return "s" + hashlib.blake2b("\n".join(i.item_id for i in items).encode(), digest_size=6).hexdigest()


def make_key(sheets: Sequence[Sequence[Item]], names: tuple[str, str]) -> dict[str, Any]:
    """Everything that undoes the blinding, as JSON."""
    items = {
        item.item_id: {
            "sheet": sheet_id(items),
            "pair": item.pair.pair_id,
            "left": item.left,
            "gold": {name: list(right) for name, right in item.pair.gold.items()},
        }
        for items in sheets
        for item in items
    }
    return {"version": 1, "names": {"a": names[0], "b": names[1]}, "criteria": list(CRITERIA), "items": items}


def html_sheet(items: Sequence[Item], annotator: str) -> str:
    """The sheet as one page that works offline, keeps its progress and exports JSON lines."""
    name = sheet_id(items)
    data = {
        "sheet": name,
        "annotator": annotator,
        "criteria": [_criterion(c) for c in CRITERIA],
        "items": [dict(zip(("id", "question", "left", "right"), (i.item_id, *_texts(i)))) for i in items],
    }
    button = lambda label, id_: element("button", label, type="button", id=id_)  # noqa: E731
    body = [
        element(
            "header",
            element("h1", "Pairwise judgement"),
            element("details", element("summary", "What to do"), element("p", _INSTRUCTIONS), open=True),
            element("progress", id="bar", value=0, aria_label="Pairs judged"),
            element("p", id="progress", role="status"),
            element("p", id="warning", class_="warning", role="alert"),
            element("noscript", element("p", "This page needs JavaScript; the CSV sheet does not.")),
        ),
        element(
            "main",
            element("h2", id="where", tabindex=-1),
            element("section", element("h3", "What was asked"), element("div", id="asked"), class_="asked"),
            element("div", id="pair", class_="pair"),
            element("div", id="choices", class_="choices"),
            element("p", element("label", "Comment (optional)", for_="comment")),
            element("textarea", id="comment", rows=2),
            element("div", button("Back", "back"), button("Next", "next"),
                    button("Next not judged", "open"), class_="row"),
        ),
        element(
            "footer",
            element("div", element("label", "Annotator", for_="annotator"),
                    element("input", id="annotator", autocomplete="off"),
                    button("Export judgements", "export"), class_="row"),
            element("p", id="said", role="status"),
        ),
    ]  # fmt: skip
    return page("Pairwise judgement", body, data, "human")


def _criterion(name: str) -> dict[str, Any]:
    asked, more = _ASKED[name]
    labels = (f"Text 1 {more}", f"Text 2 {more}", "Both are good", "Both are poor")
    return {
        "name": name,
        "label": asked,
        "options": [{"value": v, "label": label} for v, label in zip(CHOICES, labels)],
    }


def _texts(item: Item) -> list[str]:
    return [cut(text, MAX_CHARACTERS) for text in (item.pair.question, *item.texts)]


def csv_sheet(items: Sequence[Item], annotator: str) -> str:
    """The sheet as CSV; the annotator fills the last columns. No cell can start a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(
        ["sheet", "item", "annotator", "question", "text_1_left", "text_2_right", *CRITERIA, "comment"]
    )
    name = sheet_id(items)
    for item in items:
        writer.writerow([safe_cell(c) for c in (name, item.item_id, annotator, *_texts(item), "", "", "")])
    return out.getvalue()


def safe_cell(text: str) -> str:
    """The text as a spreadsheet shows it, never as a formula it runs: `'` goes before = + - @ and their kin.

    What follows spaces or line breaks counts too: programs trim before they look. Full-width forms are
    taken for the ASCII ones by some.
    """
    text = visible(text)
    return (
        f"'{text}" if text.lstrip()[:1] in tuple("=+-@＝＋－＠") or text[:1] in ("\t", "\r", "\n") else text
    )


def _digest(seed: int, purpose: str, name: str) -> str:
    return hashlib.blake2b(f"{seed}\0{purpose}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()
