"""Texts → token ids, a few hundred texts at a time.

What the tokenizers library gives for a text holds offsets, strings and every piece beyond the cut: for long
texts forty times the text. Only ids, types and whether the text was cut are kept of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

TEXTS_PER_CALL = 512
CHARACTERS_PER_CALL = 1 << 20


@dataclass(frozen=True, slots=True)
class Tokens:
    """One text: `ids_S` int32, `types_S` uint8, and whether something was cut off."""

    ids_S: np.ndarray
    types_S: np.ndarray
    truncated: bool

    def __len__(self) -> int:
        return len(self.ids_S)


def tokenize(fast: Any, *columns: Sequence[str]) -> list[Tokens]:
    """Tokens of single texts (one column) or of pairs (two); `fast` is a `tokenizers.Tokenizer`."""
    found = []
    for start, stop in _calls([sum(map(len, row)) for row in zip(*columns)]):
        rows = [column[start:stop] for column in columns]
        for e in fast.encode_batch(list(zip(*rows)) if len(columns) > 1 else rows[0]):
            ids_S, types_S = np.array(e.ids, np.int32), np.array(e.type_ids, np.uint8)
            found.append(Tokens(ids_S, types_S, bool(e.overflowing)))
    return found


def _calls(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges of at most `TEXTS_PER_CALL` texts and `CHARACTERS_PER_CALL` characters, one text at least."""
    start = characters = 0
    for row, length in enumerate(lengths):
        full = row - start >= TEXTS_PER_CALL or characters + length > CHARACTERS_PER_CALL
        if full and row > start:
            yield start, row
            start, characters = row, 0
        characters += length
    if start < len(lengths):
        yield start, len(lengths)


def valid_texts(texts: Sequence[str]) -> tuple[list[str], int]:
    """Texts with lone surrogates, which no tokenizer reads, made valid, and how many there were."""
    valid, repaired = list(texts), 0
    for i, text in enumerate(valid):
        if not isinstance(text, str):
            raise ValueError(f"text {i} is {type(text).__name__}, need str")
        try:
            text.encode()
        except UnicodeEncodeError:
            valid[i] = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
            repaired += 1
    return valid, repaired
