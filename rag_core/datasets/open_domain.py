"""Open-domain question answering: `nq`, `efficientqa`, `triviaqa`, `webquestions`, `curatedtrec`.

The published files come in these formats, told apart by content:

- JSON lines with `question` and `answer` or `answers` (NQ-open, EfficientQA, DPR, DrQA);
- DPR's two columns, TAB between them: the question and a Python list of answers, read as a literal
  and never evaluated;
- TREC's four columns: id, type, question, pattern (CuratedTREC);
- a JSON array of `qId`, `qText`, `answers`, or of WebQuestions' own `utterance`, `targetValue`;
- TriviaQA's own object, `Data[].{QuestionId, Question, Answer}`, with every alias an answer.

The answers of `curatedtrec` are regular expressions (`answer_kind` regex).
"""

from __future__ import annotations

import ast
import re
from typing import Any

from rag_core.datasets.records import Collector, Source
from rag_core.datasets.tables import tab_records
from rag_core.errors import DataError

_TARGET = re.compile(r'\(description (?:"((?:[^"\\]|\\.)*)"|([^()]*))\)')


def read(collector: Collector) -> None:
    source = collector.source
    kind = "regex" if source.task == "curatedtrec" else "text"
    head = source.data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"[") or (head.startswith(b"{") and source.is_document()):
        for number, row in enumerate(_items(source), 1):
            _add(collector, number, row, kind)
    elif head.startswith(b"{"):
        for line, row in source.json_lines():
            if "Data" in row:  # TriviaQA's object on one line
                for number, item in enumerate(row["Data"], 1):
                    _add(collector, number, item, kind)
            else:
                _add(collector, line, row, kind)
    else:
        for line, cells in tab_records(source.all_lines(), (2,)):
            question_id, question, answers = _columns(source, line, cells)
            collector.add(line, question_id, question, answers, answer_kind=kind)


def _items(source: Source) -> list[Any]:
    document = source.document()
    items = document.get("Data") if isinstance(document, dict) else document
    if not isinstance(items, list):
        raise DataError(f"{source.path}: expected a JSON array of questions or an object with 'Data'")
    return items


def _add(collector: Collector, line: int, row: Any, kind: str) -> None:
    if not isinstance(row, dict):
        raise collector.source.error(line, f"expected a JSON object, found {str(row)[:60]!r}")
    question = _first(row, "question", "qText", "utterance", "Question")
    answers = _first(row, "answers", "answer")
    if answers is None and "targetValue" in row:
        answers = _target_values(row["targetValue"])
    if answers is None and isinstance(row.get("Answer"), dict):
        answers = [row["Answer"]["Value"], *row["Answer"].get("Aliases", [])]
    if question is None or answers is None:
        found = ", ".join(row)
        raise collector.source.error(line, f"expected question and answer, found {found or 'nothing'}")
    if isinstance(answers, str):
        answers = [answers]
    question_id = _first(row, "question_id", "id", "qId", "QuestionId")
    collector.add(line, question_id, question, answers, answer_kind=kind)


def _first(row: dict[str, Any], *keys: str) -> Any:
    return next((row[key] for key in keys if row.get(key) is not None), None)


def _target_values(target: str) -> list[str]:
    """WebQuestions' `(list (description "A B") (description C))`."""
    return [re.sub(r"\\(.)", r"\1", m[1] or "") or (m[2] or "") for m in _TARGET.finditer(target)]


def _columns(source: Source, line: int, cells: list[str]) -> tuple[str | None, str, list[str]]:
    if len(cells) == 4 and source.task == "curatedtrec":
        return cells[0], cells[2], [cells[3]]
    if len(cells) != 2:
        raise source.error(line, f"{len(cells)} columns; expected question TAB ['answer', …]")
    return None, cells[0], _literal(source, line, cells[1])


def _literal(source: Source, line: int, cell: str) -> list[str]:
    """A Python list of strings, as a literal."""
    try:
        value = ast.literal_eval(cell.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        value = None
    if not isinstance(value, list | tuple):
        raise source.error(line, f"answers {cell[:60]!r}: expected a Python list such as ['a', 'b']")
    return [str(item) if isinstance(item, int | float) else item for item in value]
