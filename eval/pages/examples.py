"""The data of the example browser: columns of JSON, texts cut, probabilities in thousandths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from eval.pages.markup import cut
from eval.pages.views import Run, View
from rag_core import stages


@dataclass(frozen=True)
class Limits:
    """What enters the page; the rest is counted, and stays in the Parquet files."""

    examples: int = 20_000
    passages: int = 10
    tokens: int = 48
    answers: int = 12
    characters: int = 2_000
    passage_characters: int = 700
    passage_bytes: int = 24_000_000


@dataclass
class PassageTable:
    """Passages named by number; each stands in the page once, in the order in which examples need them."""

    numbers: dict[str, int] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def number(self, passage_id: str) -> int:
        return self.numbers.setdefault(passage_id, len(self.numbers))

    def fill(self, directory: str, limits: Limits) -> None:
        """Read titles of all and texts of the first, as far as the page's share for them goes."""
        wanted = pa.array(self.numbers, pa.string())
        found: dict[str, str] = {}
        for batch in stages.iter_batches(directory, ["passage_id", "title", "text"]):
            for row in batch.filter(pc.is_in(batch["passage_id"], wanted)).to_pylist():
                self.titles[row["passage_id"]] = cut(row["title"], 200)
                found[row["passage_id"]] = cut(row["text"], limits.passage_characters)
        room = limits.passage_bytes
        for name in self.numbers:
            if name in found:
                room -= len(found[name].encode("utf-8", "surrogatepass"))
                if room < 0:
                    break
                self.texts[name] = found[name]

    def to_json(self) -> dict[str, Any]:
        return {
            "ids": [cut(name, 200) for name in self.numbers],
            "titles": [self.titles.get(name) for name in self.numbers],
            "texts": [self.texts.get(name) for name in self.numbers],
            "without_text": len(self.numbers) - len(self.texts) if self.titles else 0,
        }


def flips_first(view: View) -> np.ndarray:
    """Row numbers: losses by size, then wins, then other changed predictions, then the rest; each by id."""
    difference, changed = view.changes()
    known = np.nan_to_num(difference)
    group = np.select([known < 0, known > 0, changed], [0, 1, 2], 3)
    return np.lexsort((np.arange(len(known)), -np.abs(known), group))


def view_data(view: View, passages: PassageTable, limits: Limits) -> dict[str, Any]:
    """One view as columns, flips first."""
    order = flips_first(view)[: limits.examples]
    rows = view.candidate.results.rows.iloc[order]
    metrics = view.metrics()
    return {
        "name": view.name,
        "labels": [run.label for run in view.runs],
        "metrics": metrics,
        "primary": view.primary,
        "total": len(view.candidate.results.rows),
        "ids": [cut(name, 300) for name in rows.index],
        "questions": [cut(text, limits.characters) for text in rows.question],
        "answers": [_answers(list(answers), limits) for answers in rows.answers],
        "sides": [_side(run, rows.index, metrics, passages, limits) for run in view.runs],
    }


def _answers(answers: Sequence[str], limits: Limits) -> list[str]:
    shown = [cut(text, limits.characters) for text in answers[: limits.answers]]
    more = len(answers) - len(shown)
    return [*shown, f"… [{more:,} more references]"] if more else shown


def _side(
    run: Run, ids: pd.Index, metrics: Sequence[str], passages: PassageTable, limits: Limits
) -> dict[str, Any]:
    rows = run.results.rows.loc[ids]
    documents = _documents(run, rows)
    return {
        "status": list(rows.status),
        "predictions": [None if pd.isna(p) else cut(p, limits.characters) for p in rows.prediction],
        "ranks": [None if pd.isna(rank) else int(rank) for rank in rows.answer_rank],
        "metrics": [[_number(v) for v in rows[m]] for m in metrics],
        "passages": [_passages(row, passages, limits) for row in documents],
        "tokens": [_tokens(row, limits) for row in documents],
    }


def _documents(run: Run, rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Passages, priors and posteriors: of the predictions themselves where they are known.

    Results name the retrieved passages in their order; the first of them are those that were read.
    """
    columns = ["passage_ids", "doc_prior", "doc_posterior"]
    if run.predictions is None:
        return rows[columns].to_dict("records")
    known = run.predictions.reindex(rows.index)
    return [
        own if isinstance(own["passage_ids"], np.ndarray) else given
        for own, given in zip(known.to_dict("records"), rows[columns].to_dict("records"))
    ]


def _passages(row: dict[str, Any], passages: PassageTable, limits: Limits) -> list[Any]:
    """[numbers, priors, posteriors, how many more, their posterior]; thousandths."""
    ids = list(row["passage_ids"])
    shown = ids[: limits.passages]
    prior, posterior = ([float(p) for p in row[name]] for name in ("doc_prior", "doc_posterior"))
    rest = sum(p for p in posterior[len(shown) :] if math.isfinite(p))
    return [
        [passages.number(name) for name in shown],
        [_thousandth(p) for p in prior[: len(shown)]],
        [_thousandth(p) for p in posterior[: len(shown)]],
        len(ids) - len(shown),
        _thousandth(rest),
    ]


def _tokens(row: dict[str, Any], limits: Limits) -> list[Any] | None:
    """[tokens, posteriors by token and passage in thousandths, tokens left out]; None without them."""
    posterior = row.get("token_posterior")
    if not isinstance(posterior, np.ndarray) or not len(posterior):
        return None
    tokens = [cut(token, 40) for token in row["tokens"][: limits.tokens]]
    cells = [[_thousandth(p) for p in token[: limits.passages]] for token in posterior[: limits.tokens]]
    return [tokens, cells, len(posterior) - len(cells)]


def _thousandth(p: float) -> int | None:
    return round(1000 * float(p)) if math.isfinite(p) else None


def _number(value: Any) -> float | int | None:
    if value is None or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else round(float(value), 4)
