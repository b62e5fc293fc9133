"""Passages that come with the questions: the `ctxs` of DPR's and FiD's retrieval files."""

from __future__ import annotations

import json
from typing import Any

from rag_core import files
from rag_core.datasets import load_questions
from rag_core.errors import DataError
from rag_core.schemas import Passage


def given_contexts(url: str, task: str) -> dict[str, tuple[list[Passage], list[float]]]:
    """Question id → its passages and their logits, best first, from the rows' `ctxs`.

    A row is a question of `task` with `ctxs`: a list of {id, title, text, score}; a missing score is 0
    (a flat prior), a missing id is `{question_id}#{rank}`. The file is JSON lines or one JSON list.
    Raises DataError naming file, row and field.
    """
    questions = load_questions(url, task, require_answers=False).questions
    rows = _rows(url)
    if len(rows) != len(questions):
        raise DataError(f"{url}: {len(rows)} rows but {len(questions)} questions; contexts need one of each")
    return {
        q.question_id: _contexts(url, n, q.question_id, row)
        for n, (q, row) in enumerate(zip(questions, rows), 1)
    }


def _rows(url: str) -> list[Any]:
    data = files.read_bytes(url).decode("utf-8")
    try:
        if data.lstrip().startswith("["):
            return json.loads(data)
        return [json.loads(line) for line in data.split("\n") if line.strip()]
    except (ValueError, RecursionError) as error:
        raise DataError(f"{url}: not JSON: {error}") from error


def _contexts(url: str, number: int, question_id: str, row: Any) -> tuple[list[Passage], list[float]]:
    found = row.get("ctxs") if isinstance(row, dict) else None
    if not isinstance(found, list):
        raise DataError(f"{url}: row {number}: no list `ctxs`")
    passages, scores = [], []
    for rank, context in enumerate(found):
        if not isinstance(context, dict) or not isinstance(context.get("text"), str):
            raise DataError(f"{url}: row {number}: context {rank} has no text")
        try:
            scores.append(float(context.get("score") or 0.0))
        except (TypeError, ValueError) as error:
            raise DataError(f"{url}: row {number}: context {rank}: score {context['score']!r}") from error
        passage_id = str(context.get("id") or f"{question_id}#{rank}")
        passages.append(Passage(passage_id, str(context.get("title") or ""), context["text"]))
    order = sorted(range(len(passages)), key=lambda i: (-scores[i], i))
    return [passages[i] for i in order], [scores[i] for i in order]
