"""Line by line: headings, lists, bold and italic, behaviour switches, tidying."""

from __future__ import annotations

import re

from rag_core.wiki.magic_words import is_switch
from rag_core.wiki.marks import DROPPED, TRACES
from rag_core.wiki.quotes import strip_quotes

_SWITCH = re.compile(r"(?:__|＿＿)([^\s\x01-\x03]{2,60}?)(?:__|＿＿)")
_LIST_MARK = re.compile(r"[*#;: \t]+")
_HEADING = re.compile(r"={1,6}[^=\n].*=[ \t]*$")


def clean_lines(text: str, keep_lists: bool, lang: str) -> list[str]:
    """The paragraphs of a page, one string each, without line-level markup."""
    if "__" in text or "＿＿" in text:
        text = _SWITCH.sub(lambda match: "" if is_switch(match[1], lang) else match.group(), text)
    paragraphs = []
    for line in text.split("\n"):
        line = line.strip()
        if not line:
            continue
        if line[0] in TRACES or line[-1] in TRACES:
            line = line.strip(_BLANK)
            if not line:
                continue
            if line.startswith(_HANGING):
                line = DROPPED + line
        first = line[0]
        if first in _SPECIAL:
            if first == "=" and _HEADING.match(line):
                continue
            if first in "*#;:":
                if not keep_lists:
                    continue
                line = _LIST_MARK.sub("", line, count=1)
            elif line.startswith("|}"):  # the end of a table whose start is lost
                line = line[2:].lstrip()
            elif first == "|" or line.startswith(("{|", "----")):
                continue
        if "''" in line:
            line = strip_quotes(line)
        if line:
            paragraphs.append(line)
    return paragraphs


# What hangs on a word that went from the start of a line: the last pass takes it away there.
_HANGING = (",", "、", "，", "'s ", "’s ")
_SPECIAL = frozenset("=*#;:|{-")
_BLANK = " \t\r\xa0\u3000" + TRACES
