"""Questions as the input of a job: cut into parts, loaded once per process."""

from __future__ import annotations

from typing import Any

from beam_jobs.handlers import once_per_process
from rag_core.datasets import LoadedQuestions, load_questions
from rag_core.digest import digest_of
from rag_core.errors import DataError
from rag_core.parts import Part, PartLog
from rag_core.schemas import Question


@once_per_process
def shared_questions(url: str, task: str) -> LoadedQuestions:
    """The test set, loaded once per process; questions without answers stay (they can be answered)."""
    loaded = load_questions(url, task, require_answers=False)
    if not loaded.questions:
        raise DataError(f"{url}: no questions")
    return loaded


def question_parts(url: str, task: str, per_part: int) -> list[Part]:
    """Parts of `per_part` questions, in the file's order; `source` holds the bounds, not the questions."""
    n = len(shared_questions(url, task).questions)
    return [
        Part(i, {"start": start, "stop": min(start + per_part, n)})
        for i, start in enumerate(range(0, n, per_part))
    ]


def questions_of(url: str, task: str, source: dict[str, Any]) -> list[Question]:
    return shared_questions(url, task).questions[source["start"] : source["stop"]]


def questions_input(url: str, task: str) -> dict[str, Any]:
    """How a question file enters a fingerprint: by what is asked, not by how the file is written."""
    asked = [[q.question_id, q.question] for q in shared_questions(url, task).questions]
    return {"task": task, "questions": len(asked), "digest": digest_of(asked)}


def log_rejected(url: str, task: str, source: dict[str, Any], log: PartLog) -> None:
    """Count the file's rows that are no questions, as dead letters of its first part."""
    if source["start"] == 0:
        for line, reason in shared_questions(url, task).rejected:
            log.read += 1
            log.reject(f"line {line}", reason)
