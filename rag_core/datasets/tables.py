"""Tables of cells between TABs, as programs write them: with csv's quotes, or with none.

A cell that csv's rules quoted as a whole loses its quotes, and may then hold line feeds; any other quotation
mark is text. Whether a record goes on over a line feed is decided by its TABs: they must make the record's
columns, neither more nor fewer, so that a quote nobody closed cannot swallow the records behind it.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Iterator

_LONGEST = 1000
"""Lines of one record at most."""

Line = tuple[int, str]


def tab_records(lines: Iterable[Line], columns: Collection[int]) -> Iterator[tuple[int, list[str]]]:
    """Records as (number of the first line, cells) from numbered lines without their ends; empty lines
    are none.

    `columns` are the numbers of cells a record may have. One of another number is given as it stands, for
    the caller to name.
    """
    waiting = list(lines)
    place = 0
    while place < len(waiting):
        number, line = waiting[place]
        if not line:
            place += 1
            continue
        cells, taken = _cells(line, columns), 1
        if _is_open(line, columns):
            taken, longer = _continued([text for _, text in waiting[place : place + _LONGEST]], columns)
            cells = longer or cells
        yield number, cells
        place += taken


def header_and_records(lines: Iterable[Line]) -> tuple[int, list[str], Iterator[tuple[int, list[str]]]]:
    """The first record of a table, and the others, of as many cells. StopIteration where all is empty."""
    rest = iter(lines)
    number, first = next((number, line) for number, line in rest if line)
    names = _cells(first, ())
    return number, names, tab_records(rest, (len(names),))


def _cells(line: str, columns: Collection[int]) -> list[str]:
    plain = line.split("\t")
    if '"' not in line:
        return plain
    quoted = _quoted(line)
    if quoted is not None and (len(quoted) in columns or not columns):
        return quoted
    return [(_quoted(cell) or [cell])[0] if _is_whole(cell) else cell for cell in plain]


def _quoted(text: str) -> list[str] | None:
    """The one record that csv's rules find; None where they find none, or several."""
    csv.field_size_limit(1 << 30)
    try:
        lines = [line + "\n" for line in text.split("\n")]
        records = list(csv.reader(lines, delimiter="\t", strict=True))
    except csv.Error:
        return None
    return records[0] if len(records) == 1 else None


def _is_whole(cell: str) -> bool:
    return len(cell) > 1 and cell[0] == cell[-1] == '"' and '"' not in cell[1:-1].replace('""', "")


def _is_open(line: str, columns: Collection[int]) -> bool:
    """Whether the line ends inside a quoted cell, and has no more TABs than a record."""
    last = line[line.rfind("\t") + 1 :]
    return last.startswith('"') and last.count('"') % 2 == 1 and line.count("\t") < max(columns)


def _continued(lines: list[str], columns: Collection[int]) -> tuple[int, list[str] | None]:
    """The record that begins in the first line and goes on: how many lines it takes, and its cells."""
    tabs = lines[0].count("\t")
    for end, line in enumerate(lines[1:], 2):
        tabs += line.count("\t")
        if tabs >= max(columns):
            break
        if '"' in line:
            cells = _quoted("\n".join(lines[:end]))
            if cells is not None:
                return (end, cells) if len(cells) in columns and tabs == len(cells) - 1 else (1, None)
    return 1, None
