"""Marks that the passes leave where something was dropped, so that the last one mends there and only there.

They are control characters that XML forbids, so no dump holds them.
"""

from __future__ import annotations

DROPPED = "\x01"  # something inside a sentence, or between two of its letters
BREAK = "\x02"  # something that kept the words on its two sides apart: a file, a box, a gallery
SHIELD = "\x03"  # what follows begins a line, but no list

TRACES = DROPPED + BREAK
_ALL = TRACES + SHIELD


def without_marks(text: str) -> str:
    """Text without the characters that the passes use as marks."""
    for mark in _ALL:
        if mark in text:
            text = text.replace(mark, "")
    return text
