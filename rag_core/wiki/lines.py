"""Line by line: headings, lists, bold and italic, behaviour switches, tidying."""

from __future__ import annotations

import re

from rag_core.wiki.quotes import strip_quotes

_SWITCH = re.compile(r"__(\w{2,50}?)__")
_ANY_CASE_SWITCHES = frozenset(
    "notoc forcetoc toc noeditsection nogallery newsectionlink nonewsectionlink".split()
)
_LIST_MARK = re.compile(r"[*#;: \t]+")
_HEADING = re.compile(r"={1,6}[^=\n].*=[ \t]*$")


def clean_lines(text: str, keep_lists: bool) -> list[str]:
    """The paragraphs of a page, one string each, without line-level markup."""
    text = _SWITCH.sub(_switch, text)
    paragraphs = []
    for line in text.split("\n"):
        line = line.strip()
        if not line:
            continue
        first = line[0]
        if first in _SPECIAL:
            if first == "=" and _HEADING.match(line):
                continue
            if first in "*#;:":
                if not keep_lists:
                    continue
                line = _LIST_MARK.sub("", line, count=1)
            elif first == "|" or line.startswith(("{|", "----")):
                continue
        if "''" in line:
            line = strip_quotes(line)
        if line:
            paragraphs.append(line)
    return paragraphs


_SPECIAL = frozenset("=*#;:|{-")


def _switch(match: re.Match[str]) -> str:
    word = match[1]
    return "" if word.upper() == word or word.lower() in _ANY_CASE_SWITCHES else match.group()
