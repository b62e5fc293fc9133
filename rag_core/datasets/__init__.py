"""Test sets: one loader per format, all giving the questions schema.

loaded = load_questions("nq_open.dev.jsonl", "nq")
loaded.questions[0].answers, loaded.reasons
"""

from __future__ import annotations

import importlib

from rag_core.datasets.formats import check_format
from rag_core.datasets.records import Collector, LoadedQuestions, Rejected, read_source
from rag_core.errors import UsageError

__all__ = ["TASKS", "LoadedQuestions", "Rejected", "load_questions"]

_MODULES = {
    "nq": "open_domain",
    "triviaqa": "open_domain",
    "webquestions": "open_domain",
    "curatedtrec": "open_domain",
    "squad": "squad",
    "efficientqa": "open_domain",
    "fever3": "fever",
    "fever2": "fever",
    "msmarco": "msmarco",
    "jeopardy": "jeopardy",
    "kilt": "kilt",
    "custom": "custom",
}
TASKS = tuple(_MODULES)


def load_questions(path: str, task: str, *, require_answers: bool = True) -> LoadedQuestions:
    """Load a test set (a path or URL, gzip or plain) in one of the formats of its task.

    A row without a usable question or answer is listed in `.rejected` with its line and reason, and
    so is what the task leaves out by definition (unverifiable claims of `fever2`). With
    `require_answers=False` questions without answers stay, for retrieval and generation.

    Raises UsageError for an unknown task, FileNotFoundError, and DataError, naming file and line,
    for a file that is not in the format (one that looks like another task's is named as such), or has
    two rows of one id.
    """
    if task not in _MODULES:
        raise UsageError(f"unknown task {task!r}; tasks: {', '.join(TASKS)}")
    collector = Collector(read_source(str(path), task), require_answers)
    check_format(collector.source)
    importlib.import_module(f"rag_core.datasets.{_MODULES[task]}").read(collector)
    return collector.loaded()
