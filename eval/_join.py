"""Questions joined with a run's predictions and passages, by id, and what the join found.

Positions never join. A question without a prediction is missing; a prediction without a question is
unknown, one whose id is blank is no question's; two predictions that differ for one question contradict
each other, and the question counts as failed, whichever of them came first.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import regex

from rag_core.errors import DataError
from rag_core.schemas import Question


@dataclass
class Joined:
    """Row numbers of a table by question id, and counts: ok, missing, failed, no_passages, unknown, …"""

    table: pa.Table
    rows: dict[str, int]
    contradicted: frozenset[str] = frozenset()
    counts: Counter[str] = field(default_factory=Counter)
    unknown_ids: tuple[str, ...] = ()

    def take(self, ids: Sequence[str], columns: Sequence[str]) -> dict[str, list[Any]]:
        """Columns for the questions in the order asked; None where there is no row."""
        indices = pa.array([self.rows.get(i) for i in ids], pa.int64())
        return {name: self.table[name].take(indices).to_pylist() for name in columns}

    def status(self, question_id: str, status: str | None, prediction: str | None) -> str:
        """ok, failed, no_passages or missing: what a question's row of predictions is."""
        if status is None:
            return "missing"
        if question_id in self.contradicted or (status == "ok" and prediction is None):
            return "failed"
        return status


def question_key(text: str) -> str:
    """The letters and digits of a question, without case: how predictions without ids are joined.

    Composed first (NFC), so that é is one letter however it is written; the marks that Indic, Arabic and
    other scripts write their vowels with belong to their letter.
    """
    if text.isascii():
        return "".join(filter(str.isalnum, text)).lower()
    return "".join(_LETTER.findall(unicodedata.normalize("NFC", text).casefold()))


_LETTER = regex.compile(r"[\p{L}\p{N}]\p{M}*")


def join_by_id(source: str, table: pa.Table, questions: Sequence[Question], same: Sequence[str]) -> Joined:
    """Join a table with a `question_id` column; `same` are the columns in which doubles must agree."""
    ids = table["question_id"].to_pylist()
    if any(i is None for i in ids):
        if not all(i is None for i in ids):
            raise DataError(f"{source}: some records have an id and some have none")
        table, ids = _named_by_question(table, questions)
    known = {q.question_id for q in questions}
    rows: dict[str, int] = {}
    contradicted: set[str] = set()
    counts: Counter[str] = Counter()
    unknown: set[str] = set()
    for row, name in enumerate(ids):
        if not name.strip():
            counts["without_id"] += 1
        elif name not in known:
            counts["unknown"] += 1
            unknown.add(name)
        elif name not in rows:
            rows[name] = row
        else:
            counts["duplicate"] += 1
            if any(table[c][row].as_py() != table[c][rows[name]].as_py() for c in same):
                contradicted.add(name)
    counts["contradicted"] = len(contradicted)
    counts["missing"] = len(known) - len(rows)
    joined = Joined(table, rows, frozenset(contradicted), counts, tuple(sorted(unknown)[:20]))
    if "status" in table.column_names:
        found = joined.take(list(rows), ("status", "prediction"))
        counts.update(map(joined.status, rows, found["status"], found["prediction"]))
    return joined


def _named_by_question(table: pa.Table, questions: Sequence[Question]) -> tuple[pa.Table, list[str]]:
    """Give rows without ids the ids of their questions: by the very words, else by letters and digits.

    A row in a question's very words is for that question. A row in other words (case, spaces, marks) is for
    the questions with the same letters and digits that no row repeats to the letter, or for all of them
    when each has one: then it is a duplicate, and is seen as such. Words that several questions share are
    for each of them.
    """
    by_text: dict[str, list[str]] = {}
    by_key: dict[str, list[str]] = {}
    for question in questions:
        by_text.setdefault(question.question, []).append(question.question_id)
        by_key.setdefault(question_key(question.question), []).append(question.question_id)
    by_key.pop("", None)  # without letters and digits there is nothing to go by
    texts = table["question"].to_pylist()
    taken = {name for text in texts for name in by_text.get(text, ())}
    ids: list[str] = []
    rows: list[int] = []
    for row, text in enumerate(texts):
        names = by_text.get(text)
        if names is None:
            alike = by_key.get(question_key(text), [])
            names = [name for name in alike if name not in taken] or alike or [text]
        ids += names
        rows += [row] * len(names)
    return table.take(pa.array(rows, pa.int64())), ids
