"""What the dropped parts leave behind: `( ; )`, doubled spaces, a space before a comma, words run together.

Only what stands beside a mark (`marks`) is mended: brackets and commas that the author wrote stay.
"""

from __future__ import annotations

import re

from rag_core.wiki.brackets import mend_brackets
from rag_core.wiki.marks import BREAK, DROPPED, SHIELD, TRACES

_ODD_SPACES = "\t\u00a0\u2002\u2003\u2009\u200a\u202f\u3000"
# Soft hyphen, byte order mark, word joiner; marks, embeddings, overrides and isolates of direction.
_INVISIBLE = "\u00ad\ufeff\u2060\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_SPACES = re.compile(r"  ++")

_SEPARATORS = " ,;:、，；：،؛"
_LISTING = frozenset(",;、，；،؛")
_ENDING = frozenset(".!?…。！？")
_OPENING = frozenset("([（［【「『〔《〈«“„‘")
_JOINING = frozenset("-–—/'\"“=≈±×+<>~$€£¥#^")
_CLOSING = frozenset(")]）］】」』〕》〉»”’")
# A mark behind a word or a full stop, and a space behind it: most are, and need nothing.
_HARMLESS = re.compile(r"\x01(?<=[\w.!?'\"”%)]\x01)\x01*+(?= [\w('\"“])")
# How authors leave brackets themselves: `( ; 1900)`, `(a warming of CO2,)`.
_OPENED_SO = re.compile(r"\( ?[,;]")
_CLOSED_SO = re.compile(r"\)(?:(?<=[,;]\))|(?<=[,;] \)))")
_BRACKET = re.compile(r" ?\(([^()\n]*+)\)")
# "{{x}}'s book": whose it was went with the name. Not behind a word, as "Ann<ref>…</ref>'s".
_OWNED = re.compile(r"[\x01\x02](?<![^\s\x01\x02(\[].)[\x01\x02]*+['’]s(?!\w)")
_RUN = re.compile(rf"([\x01\x02][{_SEPARATORS}\x01\x02]*+)")


def tidy(text: str) -> str:
    """Plain text without the traces of what was dropped from it. Lines stay lines, stripped ones."""
    text = _plain_spaces(text) if not text.isascii() else text.replace("\t", " ")
    if DROPPED in text or BREAK in text:
        text = _HARMLESS.sub("", text)
        text = "\n".join(
            [_mend(line) if DROPPED in line or BREAK in line else line for line in text.split("\n")]
        )
    if _OPENED_SO.search(text) or _CLOSED_SO.search(text):
        text = _BRACKET.sub(_as_meant, text)
    if "  " in text:
        text = _SPACES.sub(" ", text)
    if SHIELD in text:
        text = text.replace(SHIELD, "")
    return "\n".join(filter(None, map(str.strip, text.split("\n"))))


def _plain_spaces(text: str) -> str:
    for invisible in _INVISIBLE:
        if invisible in text:
            text = text.replace(invisible, "")
    for space in _ODD_SPACES:
        if space in text:
            text = text.replace(space, " ")
    return text


def _as_meant(match: re.Match[str]) -> str:
    """A bracket without commas at its edges; but code, as `for (;;)` or `(x,)`, as it stands."""
    content = match[1]
    words = content.strip(" ,;")
    if words == content or " " not in content:
        return match.group()
    if not words:
        return match.group() if content.isspace() else ""
    head, tail = content.split(words)
    if not head.isspace() and " " in head:
        content = content[len(head) :]
    if tail and not tail.isspace() and words.count(" ") > 2:
        content = content[: -len(tail)]
    return match.group().partition("(")[0] + f"({content})"


def _mend(line: str) -> str:
    """One line without its marks, and whole where they were."""
    pieces = _RUN.split(mend_brackets(_OWNED.sub(BREAK, line)))  # text, run, text, run, …, text
    for i in range(1, len(pieces), 2):
        text = pieces[i - 1]
        kept = text.rstrip(_SEPARATORS)
        pieces[i - 1] = kept
        pieces[i] = _glue(kept[-1:], text[len(kept) :] + pieces[i], pieces[i + 1][:1])
    return "".join(pieces)


def _glue(before: str, run: str, after: str) -> str:
    """What belongs between two characters that a run of separators and marks stands between."""
    if before in _OPENING or (not before and run[0] in TRACES) or after in _CLOSING:
        return ""
    separators = ""
    for character in run:
        if character in _LISTING and separators[-1:] in _LISTING:
            continue  # "a, {{x}}, b"
        if character == ":" and separators[-1:] in _LISTING:
            separators = separators[:-1]  # "a, {{x}}: b"
        if character not in TRACES and character != " ":
            separators += character
    if separators and after in _ENDING:  # "a, {{x}}."
        return ""
    if separators:
        return separators + (" " if " " in run[run.rindex(separators[-1]) :] and after else "")
    if " " in run:
        return "" if after in ".!?" and run[-1] != " " else " "
    if not before or not after or not _apart(before, after, BREAK in run):
        return ""
    return " "


def _apart(before: str, after: str, is_break: bool) -> bool:
    """Whether two characters that would now touch belong to two words."""
    if before > "\u2e7f" or after > "\u2e7f":  # Chinese and Japanese have no spaces
        return False
    if is_break:
        return (after.isalnum() or after in '(["“„«') and before not in _JOINING
    return after.isalpha() and before in ".,;:!?)"
