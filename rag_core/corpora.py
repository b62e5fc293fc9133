"""Corpora that are not Wikipedia dumps: rows that are passages already, and folders of text.

* `tsv`: DPR's layout, `id, text, title`, with or without its header (which may give another order).
* `jsonl`: objects with `id` or `passage_id` (or `_id`), `title`, `text` (or `contents`).
* `parquet`: columns `passage_id` or `id`, `title`, `text`.
* `text`: `.txt` and `.md` files; one article each, its title the file's name; cut like Wikipedia.

Rows keep their ids and are never cut. Lines end at `\\n` and nowhere else.
"""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from rag_core import files
from rag_core.errors import DataError
from rag_core.parts import PartLog
from rag_core.schemas import Passage

ID_NAMES = ("passage_id", "id", "_id")
TEXT_NAMES = ("text", "contents")
MAX_LINE_BYTES = 1 << 26
"""A longer line is no passage; a kilobyte of bzip2 can hold gigabytes without a line's end."""


def read_tsv(url: str, log: PartLog) -> Iterator[Passage]:
    """Passages of a TSV in DPR's layout.

    A field is unquoted only when it is quoted as the csv dialect quotes: a quote at both ends and
    every quote between them doubled. Any other quote is a character of the text, so that one
    unbalanced quote never swallows the rows behind it. Rejects, with line number: another number of
    columns, an empty id, an id seen twice in the file, bytes that are not UTF-8.
    """
    seen: set[str] = set()
    order = [0, 1, 2]
    for number, line in _lines(url, log):
        fields = _tsv_fields(line)
        if number == 1 and sorted(f.strip().lower() for f in fields) == ["id", "text", "title"]:
            order = [[f.strip().lower() for f in fields].index(name) for name in ("id", "text", "title")]
            continue
        log.read += 1
        if len(fields) != 3:
            log.reject(f"{url}:{number}", "columns", f"{len(fields)} columns, expected id, text, title")
            continue
        passage_id, text, title = (fields[i] for i in order)
        if passage := _checked(url, number, passage_id, title, text, seen, log):
            yield passage


def read_jsonl(url: str, log: PartLog) -> Iterator[Passage]:
    """Passages of a JSON-lines file. Rejects, with line number: no JSON object, a missing or repeated id."""
    seen: set[str] = set()
    for number, line in _lines(url, log):
        if not line.strip():
            continue
        log.read += 1
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            log.reject(f"{url}:{number}", "json", str(error))
            continue
        if not isinstance(row, dict):
            log.reject(f"{url}:{number}", "json", f"a {type(row).__name__}, expected an object")
            continue
        passage_id, text = _first(row, ID_NAMES), _first(row, TEXT_NAMES)
        if passage := _checked(url, number, passage_id, row.get("title"), text, seen, log):
            yield passage


def read_parquet(url: str, log: PartLog) -> Iterator[Passage]:
    """Passages of a Parquet file. Raises DataError when a column is missing or the file is unreadable."""
    seen: set[str] = set()
    number = 0
    with files.open_input(url) as stream:
        try:
            parquet = pq.ParquetFile(stream)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise DataError(f"{url}: not readable as Parquet: {error}") from error
        names = parquet.schema_arrow.names
        id_name = next((n for n in ID_NAMES if n in names), None)
        text_name = next((n for n in TEXT_NAMES if n in names), None)
        if id_name is None or text_name is None:
            raise DataError(f"{url}: columns {names}; expected passage_id, title, text")
        wanted = [id_name, text_name] + (["title"] if "title" in names else [])
        batches = parquet.iter_batches(2048, columns=wanted)
        while True:
            try:
                batch = next(batches, None)
            except (OSError, pa.ArrowException) as error:
                raise DataError(f"{url}: damaged behind row {number}: {error}") from error
            if batch is None:
                return
            for row in batch.to_pylist():
                number += 1
                log.read += 1
                title = row.get("title")
                if passage := _checked(url, number, row[id_name], title, row[text_name], seen, log):
                    yield passage


OPENERS: dict[str, Callable[[BinaryIO], Any]] = {".gz": gzip.open, ".bz2": bz2.open}
READERS = {"tsv": read_tsv, "jsonl": read_jsonl, "parquet": read_parquet}


def read_text_file(url: str) -> tuple[str, str]:
    """Title (the file's name without its ending) and text of a `.txt` or `.md` file.

    Raises DataError when either is not UTF-8.
    """
    if url != _valid(url):
        raise DataError(f"{url}: a name that is not UTF-8")
    try:
        text = files.read_bytes(url).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{url}: not UTF-8 at byte {error.start}") from error
    return files.base_name(url).rsplit(".", 1)[0].replace("_", " "), text


def _first(row: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[n] for n in names if row.get(n) is not None), None)


def _checked(
    url: str, number: int, passage_id: Any, title: Any, text: Any, seen: set[str], log: PartLog
) -> Passage | None:
    """The passage, or None after sending it to the dead letters (or counting it as skipped)."""
    record = f"{url}:{number}"
    if isinstance(passage_id, int) and not isinstance(passage_id, bool):
        passage_id = str(passage_id)
    title = "" if title is None else title
    if not isinstance(passage_id, str) or not passage_id or passage_id != _valid(passage_id):
        log.reject(record, "no_id", f"id {passage_id!r}")
    elif not isinstance(text, str) or not isinstance(title, str):
        log.reject(
            record, "no_text", f"id {passage_id}: text {type(text).__name__}, title {type(title).__name__}"
        )
    elif passage_id in seen:
        log.reject(record, "repeated_id", f"id {passage_id}")
    elif not text.strip():
        log.skipped["empty"] += 1
    else:
        seen.add(passage_id)
        passage = Passage(passage_id, _valid(title), _valid(text))
        log.stats["repaired"] += (passage.title, passage.text) != (title, text)
        return passage
    return None


def _valid(text: str) -> str:
    """Text that UTF-8 can hold: a lone surrogate (JSON can spell one) becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _lines(url: str, log: PartLog) -> Iterator[tuple[int, str]]:
    with _open(url) as stream:
        number = 0
        try:
            for number, data in enumerate(iter(lambda: stream.readline(MAX_LINE_BYTES), b""), 1):
                if len(data) == MAX_LINE_BYTES:
                    raise DataError(f"{url}:{number}: a line of more than {MAX_LINE_BYTES:,} bytes")
                try:
                    line = data.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    log.read += 1
                    log.reject(f"{url}:{number}", "not_utf8", str(error))
                    continue
                yield number, line.rstrip("\n").removesuffix("\r")
        except (EOFError, OSError) as error:
            raise DataError(f"{url}: broken after line {number}: {error}") from error


@contextlib.contextmanager
def _open(url: str) -> Iterator[BinaryIO]:
    with files.open_input(url) as stream:
        opener = next((o for end, o in OPENERS.items() if url.lower().endswith(end)), None)
        if opener:
            with opener(stream) as unpacked:
                yield io.BufferedReader(unpacked)
        else:
            yield stream


def _tsv_fields(line: str) -> list[str]:
    """The fields of a line; a tab inside a field that is quoted as csv quotes does not separate."""
    fields = line.split("\t")
    if len(fields) > 3 and '"' in line:
        with contextlib.suppress(csv.Error):
            quoted = next(csv.reader([line], delimiter="\t", strict=True))
            if len(quoted) == 3:
                return quoted
    return [_unquote(field) for field in fields]


def _unquote(field: str) -> str:
    if len(field) < 2 or field[0] != '"' or field[-1] != '"':
        return field
    inner = field[1:-1]
    return field if '"' in inner.replace('""', "") else inner.replace('""', '"')
