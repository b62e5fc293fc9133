"""Predictions and retrieved passages, ours or made elsewhere, as one table joined by id.

Formats, told apart by content: a run directory (by its manifest); Parquet; an object `{id: answer}`
(SQuAD); JSON lines or an array with an id and `prediction` or `answer` (also MS MARCO's `answers`), KILT's
`output`, or FEVER's `predicted_label` and `predicted_evidence`; CSV or TSV with a header. A file without
ids is joined by the letters and digits of `question` (or `claim`, `input`, `query`).
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eval.metrics.base import is_missing, real_number, shown
from rag_core import files
from rag_core.datasets.fever import page_line
from rag_core.datasets.records import well_formed
from rag_core.errors import DataError
from rag_core.schemas import PREDICTIONS, RETRIEVED
from rag_core.stages import read_table, stage_manifest

COLUMNS = (
    "question_id", "status", "prediction", "log_prob", "passage_ids", "doc_prior", "doc_posterior",
    "predicted_evidence", "error",
)  # fmt: skip
SCHEMA = pa.schema([pa.field(n, PREDICTIONS.field(n).type) for n in COLUMNS] + [("question", pa.string())])

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
    stage_manifest(path, "generate")
    table = read_table(path, COLUMNS)
    return table.append_column("question", pa.nulls(len(table), pa.string())).cast(SCHEMA)


def read_retrieved(path: str) -> pa.Table:
    """A retrieved run: a run directory, or one Parquet file of the same columns."""
    if not files.exists(path):
        stage_manifest(path, "retrieve")
        return read_table(path)
    table = _parquet(path, files.read_bytes(path))
    required = ("question_id", "passage_ids", "doc_scores")
    if missing := [name for name in required if name not in table.column_names]:
        raise DataError(f"{path}: no column {missing[0]!r}; a retrieved run has {', '.join(RETRIEVED.names)}")
    columns = {name: table[name] for name in RETRIEVED.names if name in table.column_names}
    columns.setdefault("log_partition", pa.nulls(len(table), pa.float32()))
    return pa.table(columns).cast(RETRIEVED)


def _from_file(path: str) -> pa.Table:
    data = files.read_bytes(path)
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
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
        yield from _csv_rows(path, text)
        return
    value = _whole_json(text)
    if isinstance(value, list):
        yield from enumerate(value, 1)
    elif value is not None and not any(key in value for key in (*_ANSWER, "output")):
        for number, (key, answer) in enumerate(value.pairs, 1):
            yield number, {"id": key, "prediction": answer}
    elif value is not None:
        yield 1, value
    else:
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    yield number, json.loads(line)
                except ValueError as error:
                    raise DataError(f"{path}, line {number}: not valid JSON: {error}") from None


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
    except ValueError:
        return None


def _is_quoted(text: str, options: dict[str, Any]) -> bool:
    """Whether a table's quotes are csv's: each one closed."""
    try:
        return all(True for _ in csv.reader(io.StringIO(text, newline=""), **options))
    except csv.Error:
        return False


def _csv_rows(path: str, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """CSV or TSV by its header; a cell that is empty is an empty answer, "NA" and "None" are texts.

    A quote that is never closed would swallow every row behind it: an error in CSV, while in TSV, which
    many write without quoting, every quote of the file is then a character like any other.
    """
    csv.field_size_limit(1 << 30)
    tabs = "\t" in text.split("\n", 1)[0]
    options: dict[str, Any] = {"delimiter": "\t" if tabs else ",", "strict": True}
    if tabs and not _is_quoted(text, options):
        options["quoting"] = csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text, newline=""), **options)
    names = next(reader)
    while True:
        first = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{path}, line {first}: {error} (a quote that is never closed?)") from None
        if not cells:
            continue
        if len(cells) != len(names):
            raise DataError(
                f"{path}, line {reader.line_num}: {len(cells)} columns, the header has {len(names)}"
            )
        yield reader.line_num, dict(zip(names, cells))


def _normal(path: str, line: int, row: Any) -> dict[str, Any]:
    """One source row in the columns of `SCHEMA`."""
    where = f"{path}, record {line}"
    if not isinstance(row, dict):
        raise DataError(f"{where}: expected an object, found {str(row)[:60]!r}")
    question_id = next((row[key] for key in _ID if row.get(key) is not None), None)
    question = next((row[key] for key in _QUESTION if isinstance(row.get(key), str)), None)
    if question_id is None and question is None:
        raise DataError(f"{where}: neither an id nor a question (found {', '.join(row) or 'nothing'})")
    if isinstance(question_id, float) and question_id.is_integer():
        question_id = int(question_id)  # pandas made a float of an integer column
    answer, pages = _answer(where, row)
    status = row.get("status") or ("ok" if answer is not None else "failed")
    evidence = row.get("predicted_evidence")
    return {
        "question_id": None if question_id is None else well_formed(str(question_id)),
        "question": question and well_formed(question),
        "status": status,
        "prediction": answer,
        "log_prob": _log_prob(where, row.get("log_prob")),
        "passage_ids": list(row["passage_ids"]) if row.get("passage_ids") is not None else pages,
        "doc_prior": list(row.get("doc_prior") or ()),
        "doc_posterior": list(row.get("doc_posterior") or ()),
        "predicted_evidence": None if evidence is None else [_page_line(where, item) for item in evidence],
        "error": row.get("error"),
    }


def _answer(where: str, row: dict[str, Any]) -> tuple[str | None, list[str]]:
    pages: list[str] = []
    if isinstance(row.get("output"), list):  # KILT
        output = row["output"][0] if row["output"] else {}
        value = output.get("answer")
        pages = [str(item["wikipedia_id"]).strip() for item in output.get("provenance") or ()]
    else:
        known = [key for key in _ANSWER if key in row]
        if not known:
            found = ", ".join(row)
            raise DataError(f"{where}: no answer (expected one of {', '.join(_ANSWER)}; found {found})")
        value = row[known[0]]
    if isinstance(value, list) and len(value) <= 1:
        value = value[0] if value else None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None, pages
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DataError(f"{where}: answer {str(value)[:60]!r}: expected text")
    return well_formed(str(value)), pages


def _log_prob(where: str, value: Any) -> float | None:
    if is_missing(value):
        return None
    try:
        return real_number(value)
    except ValueError as error:
        raise DataError(f"{where}: log_prob {error}") from None


def _page_line(where: str, item: Any) -> dict[str, Any]:
    """One predicted sentence; a line that is not an integer (the text "3", 3.5) is no line."""
    try:
        page, line = page_line(item)
    except (TypeError, ValueError):
        page, line = None, None
    if page is None or line is None or abs(line) >= 1 << 31:
        raise DataError(f"{where}: evidence {shown(item)}: expected [page, line], a text and an integer")
    return {"page": well_formed(page), "line": line}
