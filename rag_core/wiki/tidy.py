"""What the dropped parts leave behind. `( ; )`, doubled spaces, a space before a comma.

Each repair is guarded by a cheap test, of the page and then of the line: few lines need any.
"""

from __future__ import annotations

import re

_ODD_SPACES = "\u00a0\u2002\u2003\u2009\u200a\u202f\u3000"
_INVISIBLE = "\u00ad\u200e\u200f\ufeff"  # soft hyphen, direction marks, byte order mark
_SPACES = re.compile(r"  ++")

# Patterns with a rare, literal first character: `re` looks for that at memchr's speed.
_OPENING_TRACE = re.compile(r"\([ ,;:)–]")
_SQUARE_TRACE = re.compile(r"\[[ ,;\]]")
_COMMA_TRACE = re.compile(r", ?[,;]")
_SEMICOLON_TRACE = re.compile(r"; ?[,;]")

_EMPTY_BRACKETS = re.compile(r" ?(?:\([ ,;:–—-]*+\)|\[[ ,;]*+\])")
_AFTER_OPENING = re.compile(r"\((?: *+[,;:])++ *+|\( ++")
# Only from the start of a run of marks: else a long run that no bracket ends is tried at every character.
_BEFORE_CLOSING = re.compile(r"(?<![ ,;:–—])[ ,;:–—]++\)")
_REPEATED_COMMA = re.compile(r"([,;])(?: *+[,;])++")
_SPACE_BEFORE_MARK = re.compile(r" ([,.])(?=\s|$)")


def tidy(text: str) -> str:
    """Plain text without the traces of what was dropped from it. Lines stay lines, stripped ones."""
    text = text.replace("\t", " ")
    if not text.isascii():
        text = _plain_spaces(text)
    if _has_bracket_trace(text):
        text = "\n".join(map(_mend_brackets, text.split("\n")))
    if _COMMA_TRACE.search(text) or _SEMICOLON_TRACE.search(text):
        text = _REPEATED_COMMA.sub(r"\1", text)
    if "  " in text:
        text = _SPACES.sub(" ", text)
    if _characters_before(",", text) & _SPACE or _characters_before(".", text) & _SPACE:
        text = _SPACE_BEFORE_MARK.sub(r"\1", text)
    return "\n".join(filter(None, map(str.strip, text.split("\n"))))


def _plain_spaces(text: str) -> str:
    for invisible in _INVISIBLE:
        if invisible in text:
            text = text.replace(invisible, "")
    for space in _ODD_SPACES:
        if space in text:
            text = text.replace(space, " ")
    return text


def _has_bracket_trace(text: str) -> bool:
    if _OPENING_TRACE.search(text) or _SQUARE_TRACE.search(text):
        return True
    return bool(_characters_before(")", text) & _CLOSING_TRACES)


def _characters_before(mark: str, text: str) -> set[str]:
    """The characters that stand right before a mark, wherever it occurs."""
    pieces = text.split(mark)
    pieces.pop()
    return {piece[-1:] for piece in pieces}


_SPACE = frozenset(" ")
_CLOSING_TRACES = frozenset(" ,;:–")


def _mend_brackets(line: str) -> str:
    if _has_bracket_trace(line):
        for _ in range(3):  # "((,))" leaves "()"
            line = _EMPTY_BRACKETS.sub("", line)
        line = _AFTER_OPENING.sub("(", line)
        line = _BEFORE_CLOSING.sub(")", line)
    return line
