"""`squad`: SQuAD's own file (v1.1 or v2.0), or JSON lines with `context_id`.

Own file: one JSON object, `data[].paragraphs[].qas[]` with `id`, `question` and `answers[].text`.
JSON lines: `id`, `question`, `answers` and, when the passage is known, `context_id`, which becomes
`gold_passages`. A question that SQuAD 2.0 calls impossible has no answer to match: it is rejected.
"""

from __future__ import annotations

from typing import Any

from rag_core.datasets.records import Collector
from rag_core.errors import DataError


def read(collector: Collector) -> None:
    source = collector.source
    if source.is_document():
        _read_document(collector, source.document())
        return
    for line, row in source.json_lines():
        if "question" not in row or "answers" not in row:
            raise source.error(line, f"expected id, question and answers, found {', '.join(row)}")
        context = row.get("context_id")
        collector.add(
            line,
            row.get("id"),
            row["question"],
            row["answers"],
            gold_passages=None if context is None else (str(context),),
        )


def _read_document(collector: Collector, document: Any) -> None:
    """Questions are numbered as they stand in the file, in place of lines."""
    number = 0
    try:
        for article in document["data"]:
            for paragraph in article["paragraphs"]:
                for qa in paragraph["qas"]:
                    number += 1
                    if qa.get("is_impossible"):
                        collector.reject(number, "unanswerable (SQuAD 2.0)")
                        continue
                    texts = [answer["text"] for answer in qa["answers"]]
                    collector.add(number, qa["id"], qa["question"], texts)
    except (KeyError, TypeError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{collector.source.path}: not in SQuAD's format at question {number + 1}: {error!r}"
        ) from None
