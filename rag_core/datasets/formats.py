"""What a test-set file looks like, by the structure of its first record.

The loaders read what they know and would take some files of other tasks for their own: SQuAD's lines hold a
question and answers, as NQ's do. Scored under the wrong task they give wrong numbers with no complaint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rag_core.datasets.records import Source
from rag_core.errors import DataError

_OPEN = frozenset(("nq", "triviaqa", "webquestions", "curatedtrec", "efficientqa"))


class Format(NamedTuple):
    """A format by name, and the tasks whose files have it; none when it is no test set."""

    name: str
    tasks: frozenset[str]


def check_format(source: Source) -> None:
    """DataError when the file is in the format of other tasks; quiet where it cannot be told."""
    found = looks_like(source)
    if found is not None and source.task not in found.tasks:
        tasks = ", ".join(sorted(found.tasks))
        hint = f"give --task {tasks}" if len(found.tasks) == 1 else f"a file of {tasks or 'no task'}"
        raise DataError(f"{source.path}: looks like {found.name} ({hint}), not like a file of {source.task}")


def looks_like(source: Source) -> Format | None:
    """The format of the file's first record; None where it fits none, or cannot be read."""
    if source.data.startswith(b"PAR1"):
        return Format("a Parquet table", frozenset(("custom",)))
    head = source.data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    try:
        if not head.startswith((b"{", b"[")):
            return _of_line(next(source.lines(), (0, ""))[1])
        whole = source.is_document()
        record = source.document() if whole else source.parse(*next(source.lines()))
    except DataError:
        return None  # its own loader says what is wrong, and where
    if isinstance(record, list):
        record = record[0] if record else None
    return _of_record(record) if isinstance(record, Mapping) else None


def _of_record(row: Mapping[str, Any]) -> Format | None:
    """By the keys that only one format has; then question and answers, which several share."""
    own = frozenset(("custom",)) if "question" in row else frozenset()
    if isinstance(row.get("data"), list) and "question" not in row:
        return Format("SQuAD's own file", frozenset(("squad",)))
    if isinstance(row.get("Data"), list):
        return Format("TriviaQA's own file", frozenset(("triviaqa",)))
    if {"prediction", "predicted_label"} & row.keys():
        return None if {"answers", "label"} & row.keys() else Format("predictions", own)
    if {"passage_ids", "doc_scores"} <= row.keys():
        return Format("a retrieved run", frozenset())
    if "context_id" in row:
        return Format("SQuAD in lines, with context_id", frozenset(("squad",)) | own)
    if "claim" in row:
        return Format("FEVER", frozenset(("fever2", "fever3")))
    if "input" in row and "question" not in row:
        return Format("KILT", frozenset(("kilt",)))
    if "query_id" in row:
        return Format("MS MARCO", frozenset(("msmarco",)) | own)
    if "utterance" in row:
        return Format("WebQuestions' own file", frozenset(("webquestions",)))
    if {"show_number", "air_date"} & row.keys():
        return Format("J! Archive's clues", frozenset(("jeopardy",)) | own)
    if "question_id" in row and "answer_kind" in row:
        return Format("questions in the columns of this suite", own)
    if "question" in row and ("answer" in row or "answers" in row):
        tasks = _OPEN | own
        if isinstance(row.get("answer"), str | int):
            tasks |= {"jeopardy"}
        if "id" in row and "answers" in row:
            tasks |= {"squad"}
        return Format("questions with answers in lines", tasks)
    return None


def _of_line(line: str) -> Format | None:
    cells = line.split("\t")
    if line.count("|||") == 2:
        return Format("SearchQA's lines", frozenset(("jeopardy",)))
    if len(cells) > 1 and "question" in cells:
        return Format("a table with a header", frozenset(("custom",)))
    if len(cells) == 4 and cells[0].strip().isdigit():
        return Format("TREC's four columns", frozenset(("curatedtrec",)))
    if len(cells) == 2 and cells[1].lstrip('" ').startswith(("[", "(")):
        return Format("DPR's two columns", _OPEN)
    return None
