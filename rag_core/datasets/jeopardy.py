"""`jeopardy`: Jeopardy question generation (Lewis et al. 2020, section 3.3): answer entity → clue.

Formats: J! Archive's JSON array or JSON lines (`question` is the clue, `answer` the entity; the dump
wraps clues in single quotes), as SearchQA's per-question files have them, and SearchQA's text lines
`snippets ||| clue ||| entity`. The *input* is the answer entity, the *reference* the clue.
"""

from __future__ import annotations

from typing import Any

from rag_core.datasets.records import Collector


def read(collector: Collector) -> None:
    source = collector.source
    head = source.data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"["):
        for number, row in enumerate(source.document(), 1):
            _add(collector, number, row)
    elif head.startswith(b"{"):
        rows = [(1, source.document())] if source.is_document() else source.json_lines()
        for line, row in rows:
            _add(collector, line, row)
    else:
        for line, text in source.lines():
            cells = [cell.strip() for cell in text.split("|||")]
            if len(cells) != 3:
                raise source.error(line, f"{len(cells)} columns; expected snippets ||| clue ||| entity")
            collector.add(line, None, cells[2], [_plain(cells[1])])


def _add(collector: Collector, line: int, row: Any) -> None:
    if not isinstance(row, dict) or "question" not in row or "answer" not in row:
        raise collector.source.error(line, f"expected question and answer, found {str(row)[:60]!r}")
    entity = row["answer"]
    if isinstance(entity, list | dict) or not isinstance(row["question"], str):
        raise collector.source.error(line, f"expected a clue and an entity, found {str(row)[:60]!r}")
    entity = entity if isinstance(entity, str) else "" if entity is None else str(entity)
    collector.add(line, row.get("id"), entity, [_plain(row["question"])])


def _plain(clue: str) -> str:
    clue = clue.strip()
    return clue[1:-1] if len(clue) > 1 and clue[0] == clue[-1] == "'" else clue
