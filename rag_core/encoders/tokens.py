"""Texts → token ids, cut at a length, a few hundred texts at a time.

What the tokenizers library gives for a text holds offsets and strings: forty times the text. Only ids and
types are kept of it. Its own truncation is not used: it keeps every piece beyond the cut, and of a pair
every piece of the one with every piece of the other, so that a long title over a long text takes minutes.

Shapes: S tokens of a text.
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


def tokenize(fast: Any, max_length: int, *columns: Sequence[str]) -> list[Tokens]:
    """Tokens of single texts (one column) or of pairs (two), at most `max_length` of each.

    `fast`: a `tokenizers.Tokenizer` that neither cuts nor pads. Of a pair the longer text is cut first
    (`longest_first`), at its end; special tokens stay.
    """
    found = []
    for start, stop in _calls([sum(map(len, row)) for row in zip(*columns)]):
        rows = [column[start:stop] for column in columns]
        for e in fast.encode_batch(list(zip(*rows)) if len(columns) > 1 else rows[0]):
            ids_S, types_S = np.array(e.ids, np.int32), np.array(e.type_ids, np.uint8)
            truncated = len(ids_S) > max_length
            if truncated:
                kept_S = _kept(np.array([-1 if s is None else s for s in e.sequence_ids]), max_length)
                ids_S, types_S = ids_S[kept_S], types_S[kept_S]
            found.append(Tokens(ids_S, types_S, truncated))
    return found


def _kept(sequence_S: np.ndarray, max_length: int) -> np.ndarray:
    """Which positions stay: all special tokens (−1) and the first tokens of text 0 and of text 1."""
    first_S, second_S = sequence_S == 0, sequence_S == 1
    n_first, n_second = int(first_S.sum()), int(second_S.sum())
    room = max(0, max_length - (len(sequence_S) - n_first - n_second))
    short, half = min(n_first, n_second), room // 2
    # The shorter text stays whole if it fits into half of the room; else the odd token is the longer one's.
    short = short if 2 * short <= room else half
    first = short if n_first <= n_second else room - short
    second = room - first
    return (
        (sequence_S < 0)
        | (first_S & (first_S.cumsum() <= first))
        | (second_S & (second_S.cumsum() <= second))
    )


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
