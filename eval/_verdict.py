"""A comparison's verdict as text, Markdown and Parquet."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rag_core import files

_NUMBER = pa.float64()
COMPARISONS = pa.schema(
    [
        *((name, pa.string()) for name in ("task", "slice", "metric")),
        *((name, _NUMBER) for name in ("baseline", "candidate", "difference", "ci_low", "ci_high", "p")),
        ("test", pa.string()),
        *((name, pa.int64()) for name in ("n", "n_changed", "wins", "losses")),
        ("smallest_drop", _NUMBER),
        ("primary", pa.bool_()),
        ("p_holm", _NUMBER),
    ]
)
_HEAD = ("task", "metric", "baseline", "candidate", "difference", "95% interval", "p", "wins", "losses", "of")


def finite(value: Any) -> Any:
    """The value for JSON, which has no infinite numbers: null in their place."""
    if isinstance(value, dict):
        return {key: finite(v) for key, v in value.items()}
    if isinstance(value, list):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_text(verdict: dict[str, Any]) -> str:
    rows = [_HEAD, *(_row(c) for c in verdict["comparisons"])]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, *_remarks(verdict), f"verdict: {verdict['verdict']}"])


def as_markdown(verdict: dict[str, Any]) -> str:
    """A table for a pull request; what the names hold cannot break it."""
    sign = "❌" if verdict["failures"] else "✅"
    head = [
        f"### {sign} {verdict['verdict'].replace('_', ' ')}",
        "",
        *(f"- {_cell(line)}" for line in _remarks(verdict)),
        "",
    ]
    table = ["| " + " | ".join(_HEAD) + " |", "|" + "---|" * len(_HEAD)]
    table += ["| " + " | ".join(map(_cell, _row(c))) + " |" for c in verdict["comparisons"]]
    return "\n".join([*head, *table]) + "\n"


def write_parquet(url: str, verdict: dict[str, Any]) -> None:
    with files.put(url) as stream:
        pq.write_table(pa.Table.from_pylist(verdict["comparisons"], COMPARISONS), stream)


def _remarks(verdict: dict[str, Any]) -> list[str]:
    return [*(f"FAIL {line}" for line in verdict["failures"]), *verdict["remarks"]]


def _row(c: dict[str, Any]) -> tuple[str, ...]:
    metric = c["metric"] + (" *" if c["primary"] else "")
    metric += "" if c["slice"] == "all" else f" [{c['slice']}]"
    interval = "–" if c["ci_low"] is None else f"[{c['ci_low']:+.4f}, {c['ci_high']:+.4f}]"
    p = c["p"] if c["p_holm"] is None else c["p_holm"]
    numbers = [_figure(c["baseline"]), _figure(c["candidate"]), _figure(c["difference"], "+")]
    counts = [str(c[name]) for name in ("wins", "losses", "n")]
    return (c["task"], metric, *numbers, interval, f"{p:.4g}", *counts)


def _figure(value: float | None, sign: str = "") -> str:
    return "–" if value is None else f"{value:{sign}.4f}"


def _cell(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("\n", " ")
