"""What the page shows and `figures.parquet` holds: cells of tables, points of lines, answers of heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from eval.miniature._claims import at_point
from eval.miniature._figures import Figure, Reader
from eval.miniature._recipes import Experiment, Heat
from rag_core import files
from rag_core.stages import iter_batches, read_table

FIGURES = pa.schema(
    [
        *((name, pa.string()) for name in ("experiment", "title", "row", "column", "metric", "slice")),
        *((name, pa.float64()) for name in ("value", "ci_low", "ci_high")),
        ("n", pa.int64()),
        ("paper", pa.string()),
    ]
)
_TOKENS = 30


def figure_rows(
    experiments: Sequence[Experiment], reader: Reader, sizes: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """A row for each cell of each table, and for each point of each line (`column` is the point).

    Rows of the paper alone have no value of ours; a cell without a run has none either.
    """
    rows: list[dict[str, Any]] = []
    for experiment in experiments:
        for table in experiment.table:
            for line in table.row:
                for i, column in enumerate(table.column):
                    found = Figure(None)
                    if line.run is not None:
                        found = reader.value(f"{column.set}_{line.run}", column.metric, column.slice)
                    paper = line.paper[i] if line.paper else ""
                    names = (
                        experiment.name,
                        table.title,
                        line.name,
                        column.head,
                        column.metric,
                        column.slice,
                    )
                    rows.append(_row(names, found, paper))
        for curve in experiment.curve:
            for line in curve.line:
                for k in sizes[curve.at]:
                    metric = at_point(line.metric, k)
                    found = reader.value(at_point(line.result, k), metric, line.slice)
                    names = (experiment.name, curve.title, line.name, str(k))
                    rows.append(_row((*names, metric, line.slice), found, ""))
    return rows


def _row(names: Sequence[str], found: Figure, paper: str) -> dict[str, Any]:
    values = (*names, found.value, found.low, found.high, found.n, paper)
    return dict(zip(FIGURES.names, values))


@dataclass(frozen=True)
class Answer:
    """One answer with the posterior over its passages for every token [T, K]."""

    question: str
    prediction: str
    tokens: list[str]
    posterior_TK: list[list[float]]
    titles: list[str]


def heat_answer(heat: Heat, reader: Reader) -> Answer | None:
    """The answer of a slice in which most passes from one passage to another; None where none was decoded.

    Of every answer the second largest of the passages' highest shares: near 1 where two passages take turns.
    """
    rows = reader.results(0, heat.result).rows.loc[reader.inside(0, heat.result, heat.slice)]
    predictions = reader.option(0, heat.result, "--predictions")
    columns = ["question_id", "prediction", "tokens", "token_posterior", "passage_ids"]
    table = read_table(predictions, columns).to_pandas().set_index("question_id")
    table = table.loc[table.index.isin(rows.index)]
    scores = table.apply(_turns, axis=1, result_type="reduce") if len(table) else pd.Series(dtype=float)
    if not len(scores) or not scores.max() > 0:
        return None
    name = sorted(scores.index[scores == scores.max()])[0]
    row = table.loc[name]
    titles = _titles(reader.maker_option(0, predictions, "--passages"), list(row.passage_ids))
    posterior = [[float(p) for p in token] for token in row.token_posterior]
    return Answer(rows.question[name], row.prediction, list(row.tokens), posterior, titles)


def _turns(row: pd.Series) -> float:
    posterior = row.token_posterior
    if not isinstance(posterior, np.ndarray) or not 0 < len(posterior) <= _TOKENS:
        return 0.0
    highest = np.sort(np.stack(list(posterior)).max(axis=0))
    return float(highest[-2]) if len(highest) > 1 else 0.0


def _titles(passages: str, ids: Sequence[str]) -> list[str]:
    found = {}
    for batch in iter_batches(passages, ["passage_id", "title"]):
        found.update((r["passage_id"], r["title"]) for r in batch.to_pylist() if r["passage_id"] in set(ids))
    return [found.get(i, i) for i in ids]


def write_rows(url: str, rows: Sequence[dict[str, Any]], schema: pa.Schema) -> None:
    """A table put when complete."""
    with files.put(url) as stream:
        pq.write_table(pa.Table.from_pylist(list(rows), schema), stream)
