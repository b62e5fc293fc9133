"""Judgements as they come back, with the blinding undone.

Three shapes are read, gzip or not, as JSON lines, a JSON array or CSV (comma, semicolon or tab):

    {"sheet": …, "item": …, "annotator": …, "factuality": "left", …}     from a sheet; needs its key
    {"pair": …, "annotator": …, "factuality": "a", …}                    not blinded
    {"idx": …, "annotator1": 1, "annotator2": 2, "annotator3": 0, …}     a row a pair; 1, 2, 0 = tie
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval._human_sheets import CRITERIA
from rag_core import files
from rag_core.errors import DataError

OPTIONS = ("a", "b", "both_good", "both_poor", "tie")
_WIDE = re.compile(r"annotator_?\d+")
_WIDE_VALUES = {"1": "a", "2": "b", "0": "tie"}
_PREFERENCE = "preference"


@dataclass(frozen=True)
class Judgement:
    """What one annotator said of one pair: an option, or None, for each criterion."""

    annotator: str
    pair: str
    choices: Mapping[str, str | None]
    gold: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The right answers, by criterion, where the pair is a gold question."""
    left: str | None = None
    """Which text stood first, where that is known."""


@dataclass
class Judgements:
    """All judgements, each annotator and pair once, and what was counted on the way."""

    rows: list[Judgement]
    counts: Counter[str]
    names: tuple[str, str]
    criteria: tuple[str, ...]


def read_judgements(paths: Sequence[str], key: Mapping[str, Any] | None = None) -> Judgements:
    """Every judgement of these files. The same one twice counts once; two that differ are bad data.

    Raises DataError naming file, record and reason, and FileNotFoundError.
    """
    found: dict[tuple[str, str], tuple[Judgement, str]] = {}
    counts: Counter[str] = Counter()
    for path in paths:
        for number, record in _records(path):
            where = f"{path}: record {number}"
            for judgement in _judgements(record, where, key):
                counts["read"] += 1
                if not any(judgement.choices.values()):
                    counts["not judged"] += 1
                    continue
                name = judgement.annotator, judgement.pair
                if name not in found:
                    found[name] = judgement, where
                elif found[name][0] == judgement:
                    counts["read again"] += 1
                else:
                    first = found[name][1]
                    raise DataError(f"{where}: {name[0]!r} judged pair {name[1]!r} otherwise in {first}")
    rows = [judgement for judgement, _ in found.values()]
    counts["kept"] = len(rows)
    seen = {name for row in rows for name in row.choices}
    criteria = tuple(sorted(seen, key=lambda c: (CRITERIA.index(c) if c in CRITERIA else len(CRITERIA), c)))
    names = (key["names"]["a"], key["names"]["b"]) if key else ("1", "2")
    return Judgements(rows, counts, names, criteria)


def read_key(path: str) -> dict[str, Any]:
    """The key that `sheet` wrote. DataError when it is none."""
    key = files.read_json(path)
    if not isinstance(key, dict) or not {"names", "criteria", "items"} <= key.keys():
        raise DataError(f"{path}: not a key of `eval.human sheet` (names, criteria, items)")
    return key


def _judgements(record: Any, where: str, key: Mapping[str, Any] | None) -> Iterator[Judgement]:
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected an object, found {record!r:.80}")
    wide = [name for name in record if name is not None and _WIDE.fullmatch(name)]
    if wide:
        name = next((n for n in ("pair", "pair_id", "question_id", "idx", "id") if n in record), None)
        if name is None:
            raise DataError(f"{where}: no id (pair, pair_id, question_id, idx, id)")
        for annotator in wide:
            choice = _option(record[annotator], where, annotator, _WIDE_VALUES, ("a", "b", "tie"))
            yield Judgement(annotator, str(record[name]), {_PREFERENCE: choice})
    elif "item" in record:
        yield _from_sheet(record, where, key)
    elif "pair" in record:
        criteria = [c for c in (*CRITERIA, _PREFERENCE) if c in record]
        if not criteria:
            raise DataError(f"{where}: none of {', '.join((*CRITERIA, _PREFERENCE))}")
        choices = {c: _option(record[c], where, c, {}, OPTIONS) for c in criteria}
        yield Judgement(_annotator(record, where), str(record["pair"]), choices)
    else:
        raise DataError(f"{where}: neither 'item', nor 'pair', nor 'annotator1' is in it")


def _from_sheet(record: dict[str, Any], where: str, key: Mapping[str, Any] | None) -> Judgement:
    if key is None:
        raise DataError(f"{where}: a judgement of a blinded sheet; give --key, the key.json made with it")
    entry = key["items"].get(record["item"])
    if entry is None:
        raise DataError(f"{where}: item {record['item']!r} is not in the key; is it another sheet's?")
    sides = {"left": entry["left"], "right": "ab"["ba".index(entry["left"])]}
    choices = {
        c: _option(record.get(c), where, c, sides, ("both_good", "both_poor")) for c in key["criteria"]
    }
    return Judgement(_annotator(record, where), entry["pair"], choices, entry["gold"], entry["left"])


def _annotator(record: dict[str, Any], where: str) -> str:
    name = str(record.get("annotator") or "").strip()
    if not name:
        raise DataError(f"{where}: no annotator")
    return name


def _option(
    value: Any, where: str, column: str, meanings: Mapping[str, str], others: Sequence[str]
) -> str | None:
    """The option a value stands for; None for an empty one."""
    word = "_".join(str("" if value is None else value).strip().lower().replace("-", " ").split())
    if not word:
        return None
    option = meanings.get(word, word if word in others else None)
    if option is None:
        raise DataError(f"{where}: {column} is {value!r:.80}: expected {', '.join([*meanings, *others])}")
    return option


def _records(path: str) -> Iterator[tuple[int, Any]]:
    """Records and their numbers from 1."""
    data = files.read_bytes(path)
    try:
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not readable as text: {error}") from None
    start = text.lstrip()[:1]
    if start == "[":
        try:
            yield from enumerate(json.loads(text), 1)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: not valid JSON: {error}") from None
    elif start == "{":
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    yield number, json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise DataError(f"{path}: record {number}: not valid JSON: {error}") from None
    else:
        head = text.split("\n", 1)[0]
        rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count))
        try:
            yield from enumerate(rows, 1)
        except csv.Error as error:
            raise DataError(f"{path}: not readable as CSV: {error}") from None
