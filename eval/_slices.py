"""Parts of a test set scored by themselves: by the question, by what was retrieved, by one's own column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from rag_core.datasets.custom import rows_of
from rag_core.datasets.records import read_source
from rag_core.errors import UsageError

_WORDS = {word: word for word in ("who", "what", "when", "where", "which", "why", "how")}
_WORDS |= {"whom": "who", "whose": "who"}
_WORD = re.compile(r"[a-z]+")
_RANKS = ((1, "1"), (5, "2-5"), (20, "6-20"), (100, "21-100"))


def question_word(question: str) -> str:
    """The first question word, anywhere in the question; "other" without one."""
    return next((_WORDS[w] for w in _WORD.findall(question.lower()) if w in _WORDS), "other")


def rank_slice(rank: int | None) -> str:
    """The group of ranks, as in `answer_rank=2-5`; "none" where no passage holds an answer."""
    if rank is None:
        return "none"
    return next((name for limit, name in _RANKS if rank <= limit), "over-100")


def slices_of(
    examples: Sequence[Any], own: dict[str, dict[str, str]], several_kinds: bool = False
) -> dict[str, np.ndarray]:
    """Slice name → which examples are in it. `all` is the whole set.

    `answer_in_passages` splits a score as the paper's 11.8% does: questions where some retrieved passage
    holds an answer, and where none does; it and `answer_rank` need rankings with texts or gold.
    """
    labels: list[list[str]] = []
    for example in examples:
        question = example.question
        names = ["all", f"question_word={question_word(question.question)}"]
        if several_kinds:
            names.append(f"answer_kind={question.answer_kind}")
        if example.ranked and (example.answer_hits, example.passage_hits, example.page_hits) != (None,) * 3:
            rank = example.answer_rank
            names.append(f"answer_in_passages={'no' if rank is None else 'yes'}")
            names.append(f"answer_rank={rank_slice(rank)}")
        for column, values in own.items():
            if question.question_id in values:
                names.append(f"{column}={values[question.question_id]}")
        labels.append(names)
    found = dict.fromkeys(name for names in labels for name in names)
    return {name: np.array([name in names for names in labels]) for name in found}


def read_own_columns(path: str, task: str, columns: Sequence[str]) -> dict[str, dict[str, str]]:
    """One's own columns of a `custom` file: column → question id → value as text."""
    if task != "custom":
        raise UsageError(f"--slice-by: only rows of --task custom may have further columns (task: {task})")
    out: dict[str, dict[str, str]] = {column: {} for column in columns}
    seen: set[str] = set()
    for line, row in rows_of(read_source(path, task)):
        seen.update(row)
        name = f"{task}-{line}" if row.get("question_id") is None else str(row["question_id"])
        for column in columns:
            if row.get(column) is not None:
                out[column][name] = str(row[column])
    unknown = [column for column in columns if column not in seen]
    if unknown:
        known = ", ".join(sorted(seen))
        raise UsageError(f"--slice-by {unknown[0]}: no such column in {path} (columns: {known})")
    return out
