"""Predictions and retrieved passages, ours or made elsewhere, as one table joined by id.

Formats, told apart by content: a run directory (by its manifest); Parquet; an object `{id: answer}`
(SQuAD); JSON lines or an array with an id and `prediction` or `answer` (also MS MARCO's `answers`), KILT's
`output`, or FEVER's `predicted_label` and `predicted_evidence`; CSV or TSV with a header. A file without
ids is joined by the letters and digits of `question` (or `claim`, `input`, `query`).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eval.metrics.base import is_missing, real_number, shown
from rag_core import files
from rag_core.datasets.fever import page_line
from rag_core.datasets.records import read_source, well_formed
from rag_core.datasets.tables import header_and_records
from rag_core.errors import DataError
from rag_core.schemas import PREDICTIONS, RETRIEVED
from rag_core.stages import read_table, stage_manifest

COLUMNS = (
    "question_id", "status", "prediction", "log_prob", "passage_ids", "doc_prior", "doc_posterior",
    "predicted_evidence", "error",
)  # fmt: skip
STATUSES = ("ok", "failed", "no_passages")
SCHEMA = pa.schema([pa.field(n, PREDICTIONS.field(n).type) for n in COLUMNS] + [("question", pa.string())])

NO_ID = ""
"""The id of a row that is blank where its id should be: no question's, so it joins nothing and is counted."""

_ID = ("question_id", "id", "qid", "query_id", "qId")
_QUESTION = ("question", "claim", "input", "query")
_ANSWER = ("prediction", "answer", "predicted_label", "answers", "text")


def read_predictions(path: str) -> pa.Table:
    """All predictions of a run directory or a file, in the columns of `SCHEMA`; ids are texts.

    `question_id` is null where the file has none. Raises FileNotFoundError, NoManifestError, and
    DataError naming file and record.
    """
    if files.exists(path):
        return _from_file(path)
    _run_directory(path, "generate")
    table = read_table(path, COLUMNS)
    return table.append_column("question", pa.nulls(len(table), pa.string())).cast(SCHEMA)


def _run_directory(path: str, job: str) -> None:
    try:
        stage_manifest(path, job)
    except FileNotFoundError:
        raise FileNotFoundError(2, "No such file or directory", path) from None


def read_retrieved(path: str) -> pa.Table:
    """A retrieved run: a run directory, or one Parquet file of the same columns."""
    if not files.exists(path):
        _run_directory(path, "retrieve")
        return read_table(path)
    table = _parquet(path, files.read_bytes(path))
    required = ("question_id", "passage_ids", "doc_scores")
    if missing := [name for name in required if name not in table.column_names]:
        raise DataError(f"{path}: no column {missing[0]!r}; a retrieved run has {', '.join(RETRIEVED.names)}")
    columns = {name: table[name] for name in RETRIEVED.names if name in table.column_names}
    columns.setdefault("log_partition", pa.nulls(len(table), pa.float32()))
    try:
        if pa.types.is_floating(columns["question_id"].type):  # pandas made floats of an integer column
            columns["question_id"] = columns["question_id"].cast(pa.int64())
        retrieved = pa.table(columns).cast(RETRIEVED)
    except (pa.ArrowException, ValueError) as error:
        raise DataError(f"{path}: not the columns of a retrieved run: {error}") from None
    ids, scores = (pc.list_value_length(retrieved[name]) for name in ("passage_ids", "doc_scores"))
    unlike = pc.indices_nonzero(pc.not_equal(ids, scores)).to_pylist()
    if unlike:
        raise DataError(
            f"{path}, row {unlike[0] + 1}: passage_ids and doc_scores are not lists of one length"
        )
    return retrieved


def _from_file(path: str) -> pa.Table:
    data = read_source(path, "").data
    if not data.strip():
        raise DataError(f"{path}: the file is empty")
    if data.startswith(b"PAR1"):
        rows: Iterable[tuple[int, dict[str, Any]]] = enumerate(_parquet(path, data).to_pylist(), 1)
    else:
        rows = _text_rows(path, data)
    batches, batch = [], []
    for line, row in rows:
        batch.append(_normal(path, line, row))
        if len(batch) == 8192:
            batches.append(pa.RecordBatch.from_pylist(batch, SCHEMA))
            batch = []
    batches.append(pa.RecordBatch.from_pylist(batch, SCHEMA))
    return pa.Table.from_batches(batches)


def _parquet(path: str, data: bytes) -> pa.Table:
    try:
        return pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: not readable as Parquet: {error}") from error


def _text_rows(path: str, data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 at byte {error.start}") from None
    head = text.lstrip()[:1]
    if head not in ("{", "["):
        yield from _table_rows(path, text)
        return
    value = _whole_json(text)
    if isinstance(value, list):
        yield from enumerate(value, 1)
    elif isinstance(value, _Object) and not _is_record(value):
        for number, (key, answer) in enumerate(value.pairs, 1):
            yield number, {"id": key, "prediction": answer}
    elif value is not None:
        yield 1, value
    else:
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    yield number, json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise DataError(f"{path}, line {number}: not valid JSON: {error}") from None


def _is_record(value: dict[str, Any]) -> bool:
    """Whether an object is one prediction, and not predictions by id."""
    return any(key in value for key in (*_ID, *_QUESTION)) and any(
        key in value for key in (*_ANSWER, "output")
    )


class _Object(dict):
    """A JSON object that remembers its pairs, so that an id given twice is seen."""

    pairs: Sequence[tuple[str, Any]] = ()


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    value = _Object(pairs)
    value.pairs = pairs
    return value


def _whole_json(text: str) -> Any:
    """The file as one JSON value, or None when it is JSON lines."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return None


def _table_rows(path: str, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """CSV or TSV by its header; a cell that is empty is an empty answer, "NA" and "None" are texts."""
    if "\n" not in text:
        text = text.replace("\r", "\n")
    tabs = "\t" in text.split("\n", 1)[0]
    _, names, records = _tsv(text) if tabs else _csv(path, text)
    if not {*_ID, *_QUESTION} & set(names) or len(set(names)) != len(names):
        expected = "expected a header with an id or a question, each name once"
        raise DataError(f"{path}: {', '.join(names)[:80]!r}: {expected}")
    for line, cells in records:
        if len(cells) != len(names):
            raise DataError(f"{path}, line {line}: {len(cells)} columns, the header has {len(names)}")
        yield line, dict(zip(names, cells))


def _tsv(text: str) -> tuple[int, list[str], Iterator[tuple[int, list[str]]]]:
    lines = ((number, line.removesuffix("\r")) for number, line in enumerate(text.split("\n"), 1))
    return header_and_records(lines)


def _csv(path: str, text: str) -> tuple[int, list[str], Iterator[tuple[int, list[str]]]]:
    """A quote that is never closed would swallow every row behind it: an error."""
    csv.field_size_limit(1 << 30)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)

    def records() -> Iterator[tuple[int, list[str]]]:
        while True:
            first = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise DataError(f"{path}, line {first}: {error} (a quote that is never closed?)") from None
            if cells:
                yield first, cells

    rest = records()
    return (*next(rest), rest)


def _normal(path: str, line: int, row: Any) -> dict[str, Any]:
    """One source row in the columns of `SCHEMA`. DataError, by record, on what is of another type."""
    where = f"{path}, record {line}"
    if not isinstance(row, dict):
        raise DataError(f"{where}: expected an object, found {str(row)[:60]!r}")
    question = next((row[key] for key in _QUESTION if isinstance(row.get(key), str)), None)
    question_id = _id_of(where, row)
    if question_id is None and question is None and not any(key in row for key in _ID):
        raise DataError(f"{where}: neither an id nor a question (found {', '.join(row) or 'nothing'})")
    if question_id is None and question is None:
        question_id = NO_ID
    answer, pages = _answer(where, row)
    status = row.get("status") or ("ok" if answer is not None else "failed")
    if status not in STATUSES:
        raise DataError(f"{where}: status {shown(status)}: expected one of {', '.join(STATUSES)}")
    ids = row.get("passage_ids")
    evidence = row.get("predicted_evidence")
    error = row.get("error")
    return {
        "question_id": question_id,
        "question": question and well_formed(question),
        "status": status,
        "prediction": answer,
        "log_prob": _log_prob(where, row.get("log_prob")),
        "passage_ids": pages
        if ids is None
        else [_text_of(where, "passage id", i) for i in _list(where, ids)],
        "doc_prior": [_number(where, value) for value in _list(where, row.get("doc_prior"))],
        "doc_posterior": [_number(where, value) for value in _list(where, row.get("doc_posterior"))],
        "predicted_evidence": None
        if evidence is None
        else [_page_line(where, item) for item in _list(where, evidence)],
        "error": None if error is None else well_formed(str(error)),
    }


def _id_of(where: str, row: dict[str, Any]) -> str | None:
    """The row's id as a text; `NO_ID` where it is blank, None where there is none."""
    value = next((row[key] for key in _ID if not is_missing(row.get(key))), None)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # pandas made a float of an integer column
    if value is None:
        return None
    return _text_of(where, "id", value) if str(value).strip() else NO_ID


def _answer(where: str, row: dict[str, Any]) -> tuple[str | None, list[str]]:
    """The answer (None: null, or an empty list) and, of a KILT row, its pages."""
    pages: list[str] = []
    known = [key for key in _ANSWER if key in row]
    if "output" in row and (isinstance(row["output"], list) or (row["output"] is None and not known)):  # KILT
        outputs = row["output"] or [None]
        if len(outputs) > 1:
            raise DataError(f"{where}: {len(outputs)} outputs: a KILT prediction has exactly one")
        output = outputs[0] or {}
        if not isinstance(output, dict):
            raise DataError(f"{where}: output {shown(output)}: expected an object with 'answer'")
        value = output.get("answer")
        pages = [_wikipedia_id(where, item) for item in _list(where, output.get("provenance"))]
    elif known:
        value = row[known[0]]
    else:
        found = ", ".join(row)
        raise DataError(f"{where}: no answer (expected one of {', '.join(_ANSWER)}; found {found})")
    if isinstance(value, list) and len(value) <= 1:
        value = value[0] if value else None
    if is_missing(value):
        return None, pages
    return _text_of(where, "answer", value), pages


def _text_of(where: str, what: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DataError(f"{where}: {what} {str(value)[:60]!r}: expected text")
    return well_formed(str(value))


def _list(where: str, value: Any) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise DataError(f"{where}: {shown(value)}: expected a list")
    return value or []


def _number(where: str, value: Any) -> float:
    try:
        return real_number(value)
    except ValueError as error:
        raise DataError(f"{where}: {error}") from None


def _log_prob(where: str, value: Any) -> float | None:
    return None if is_missing(value) else _number(f"{where}: log_prob", value)


def _wikipedia_id(where: str, item: Any) -> str:
    if not isinstance(item, dict) or "wikipedia_id" not in item:
        raise DataError(f"{where}: provenance {shown(item)}: expected an object with 'wikipedia_id'")
    return _text_of(where, "wikipedia_id", item["wikipedia_id"]).strip()


def _page_line(where: str, item: Any) -> dict[str, Any]:
    """One predicted sentence; a line that is not an integer (the text "3", 3.5) is no line."""
    try:
        page, line = page_line(item)
    except (TypeError, ValueError):
        page, line = None, None
    if page is None or line is None or abs(line) >= 1 << 31:
        raise DataError(f"{where}: evidence {shown(item)}: expected [page, line], a text and an integer")
    return {"page": well_formed(page), "line": line}
