"""What the loaders share: reading a file whole, its lines, and the checks that every question passes."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rag_core import files
from rag_core.errors import DataError
from rag_core.schemas import Question

_SURROGATE = re.compile("[\ud800-\udfff]")


class Rejected(NamedTuple):
    """A row of the source that is no question: its line (from 1) and a short reason."""

    line: int
    reason: str


@dataclass(frozen=True)
class LoadedQuestions:
    """A test set: its questions in the source's order, and the rows that were left out.

    `empty_answers` counts empty strings dropped from the answers of questions that stay.
    """

    questions: list[Question]
    rejected: list[Rejected]
    empty_answers: int = 0

    @property
    def reasons(self) -> dict[str, int]:
        """How many rows were rejected, by reason."""
        return dict(Counter(row.reason for row in self.rejected))


@dataclass
class Source:
    """A test-set file: its bytes (decompressed), and the errors that name it."""

    path: str
    task: str
    data: bytes = field(repr=False)

    def error(self, line: int, reason: str) -> DataError:
        return DataError(f"{self.path}, line {line}: {reason}")

    def lines(self) -> Iterator[tuple[int, str]]:
        """Numbered lines (from 1) that are not blank; only a line feed ends a line."""
        return ((number, line) for number, line in self.all_lines() if line)

    def all_lines(self) -> Iterator[tuple[int, str]]:
        """Numbered lines, blank ones as empty texts."""
        data = self.data.removeprefix(b"\xef\xbb\xbf")
        for number, raw in enumerate(io.BytesIO(data), 1):
            try:
                yield number, raw.decode("utf-8").rstrip("\r\n") if raw.strip() else ""
            except UnicodeDecodeError as error:
                raise self.error(number, f"not UTF-8 ({error.reason})") from None

    def json_lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in self.lines():
            value = self.parse(number, line)
            if not isinstance(value, dict):
                raise self.error(number, f"expected a JSON object, found {line[:60]!r}")
            yield number, value

    def parse(self, line: int, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.error(line, f"not valid JSON: {error}") from None

    def document(self) -> Any:
        """The whole file as one JSON value."""
        try:
            return json.loads(self.data.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.path}: not valid JSON: {error}") from None

    def is_document(self) -> bool:
        """Whether the file is one JSON value over several lines, or an array, and not JSON lines."""
        head = self.data[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
        if head.startswith(b"["):
            return True
        if not head.startswith(b"{"):
            return False
        _, first = next(self.lines())
        try:
            return not isinstance(json.loads(first), dict) or "data" in json.loads(first)
        except (ValueError, RecursionError):
            return True


def read_source(path: str, task: str) -> Source:
    """Read a file, gunzipped when its first bytes say so. Raises FileNotFoundError, DataError."""
    data = files.read_bytes(path)
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path}: damaged gzip file: {error}") from None
    return Source(path, task, data)


def well_formed(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates, which no file can hold, as U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass
class Collector:
    """Gathers questions: names them, drops empty answers, rejects rows that cannot be scored."""

    source: Source
    require_answers: bool = True
    questions: list[Question] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    empty_answers: int = 0
    _first_line: dict[str, int] = field(default_factory=dict)

    def reject(self, line: int, reason: str) -> None:
        self.rejected.append(Rejected(line, reason))

    def add(self, line: int, question_id: Any, question: Any, answers: Any, **fields: Any) -> None:
        """Add one row, or reject it; DataError where a field has another type than the format's.

        `question_id` None means `{task}-{line}`; answers that are empty or white space are dropped,
        equal ones are kept once per spelling, in order.
        """
        name = self._name(line, question_id)
        if not name.strip():
            self.reject(line, "empty question id")
            return
        if not isinstance(question, str):
            raise self.source.error(line, f"question {question!r}: expected text")
        if not isinstance(answers, list | tuple) or not all(isinstance(a, str) for a in answers):
            raise self.source.error(line, f"answers {answers!r}: expected a list of texts")
        if name in self._first_line:
            raise self.source.error(line, f"question_id {name!r} was seen in line {self._first_line[name]}")
        self._first_line[name] = line
        question = well_formed(question)
        kept = tuple(dict.fromkeys(well_formed(answer) for answer in answers if answer.strip()))
        if not question.strip():
            self.reject(line, "empty question")
        elif not kept and self.require_answers:
            self.reject(line, "only empty answers" if answers else "no answers")
        else:
            self.empty_answers += sum(not answer.strip() for answer in answers)
            self.questions.append(Question(name, question, kept, **fields))

    def _name(self, line: int, question_id: Any) -> str:
        if question_id is None:
            return f"{self.source.task}-{line}"
        if isinstance(question_id, bool) or not isinstance(question_id, str | int):
            raise self.source.error(line, f"question id {question_id!r}: expected text or an integer")
        return well_formed(str(question_id))

    def loaded(self) -> LoadedQuestions:
        return LoadedQuestions(self.questions, self.rejected, self.empty_answers)
