"""`kilt`: KILT's JSON lines (`id`, `input`, `output[].{answer, provenance[].wikipedia_id}`).

Every distinct answer is a reference. `gold_pages` are the pages of all provenances; `evidence` keeps
them apart as KILT's evidence sets, one per output, with no line, for R-precision and recall.
"""

from __future__ import annotations

from typing import Any

from rag_core.datasets.records import Collector


def read(collector: Collector) -> None:
    source = collector.source
    for line, row in source.json_lines():
        if "input" not in row or not isinstance(row.get("output", []), list):
            raise source.error(line, f"expected id, input and output, found {', '.join(row)}")
        outputs = [o for o in row.get("output", []) if isinstance(o, dict)]
        answers = [o["answer"].strip() for o in outputs if isinstance(o.get("answer"), str)]
        try:
            sets = evidence_sets(outputs)
        except (TypeError, KeyError):
            raise source.error(line, "provenance: expected a list of objects with wikipedia_id") from None
        collector.add(
            line,
            row.get("id"),
            row["input"],
            answers,
            gold_pages=tuple(dict.fromkeys(page for pages in sets for page in pages)),
            evidence=tuple(tuple((page, None) for page in pages) for pages in sets),
        )


def evidence_sets(outputs: list[dict[str, Any]]) -> list[list[str]]:
    """The distinct pages of each output that has a provenance, in order."""
    return [
        list(dict.fromkeys(str(item["wikipedia_id"]).strip() for item in output["provenance"]))
        for output in outputs
        if output.get("provenance") is not None
    ]
