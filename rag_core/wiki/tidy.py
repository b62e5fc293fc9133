"""Last pass: what the dropped parts leave behind. `( ; )`, doubled spaces, a space before a comma."""

from __future__ import annotations

import re

_EMPTY_BRACKETS = re.compile(r" ?(?:\([ ,;:–—-]*\)|\[[ ,;]*\])")
_LEADING = re.compile(r"\([ ,;:]*[,;:][ ,;:]*|\( +")
_TRAILING = re.compile(r"[ ,;:]*[,;:][ ,;:]*\)| +\)")
_DOUBLED = re.compile(r"([,;])(?: *[,;])++")
_SPACE_BEFORE = re.compile(r" +([,.])(?=\s|$)")
_SPACES = re.compile(r"[ \t\u00a0\u2000-\u200a\u202f\u205f\u3000]{2,}|[\t\u00a0\u2000-\u200a\u202f\u205f\u3000]")


def tidy(paragraph: str) -> str:
    """One paragraph of plain text without the traces of what was dropped from it."""
    if "(" in paragraph:
        paragraph = _EMPTY_BRACKETS.sub("", paragraph)
        paragraph = _LEADING.sub("(", paragraph)
        paragraph = _TRAILING.sub(")", paragraph)
    paragraph = _SPACES.sub(" ", paragraph)
    return _SPACE_BEFORE.sub(r"\1", paragraph).strip()
