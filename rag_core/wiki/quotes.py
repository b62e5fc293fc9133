"""Bold and italic marks of one line, read as MediaWiki reads them.

Two apostrophes are italic, three bold, five both; four are an apostrophe and bold, more than five
apostrophes and both. A line with an odd number of both kinds holds a bold mark that is really an
apostrophe before an italic one: ''Odyssey'''s.
"""

from __future__ import annotations

import re

_RUN = re.compile(r"('{2,})")


def strip_quotes(line: str) -> str:
    """The line without bold and italic marks; apostrophes that are text stay."""
    parts = _RUN.split(line)  # text, run, text, run, …, text
    italics = bolds = 0
    for i in range(1, len(parts), 2):
        length = len(parts[i])
        if length == 4 or length > 5:
            kept = 1 if length == 4 else length - 5
            parts[i - 1] += "'" * kept
            length -= kept
        italics += length in (2, 5)
        bolds += length in (3, 5)
        parts[i] = "'" * length
    if italics % 2 and bolds % 2 and (at := _apostrophe_bold(parts)) is not None:
        parts[at] += "'"
    return "".join(parts[::2])


def _apostrophe_bold(parts: list[str]) -> int | None:
    """Index of the text before the bold mark that is best read as an apostrophe and italic."""
    after_space = after_letter = after_word = None
    for i in range(1, len(parts), 2):
        if len(parts[i]) != 3:
            continue
        before = parts[i - 1]
        if before.endswith(" "):
            after_space = i - 1 if after_space is None else after_space
        elif before[-2:-1] == " ":
            after_letter = i - 1 if after_letter is None else after_letter
        elif after_word is None:
            after_word = i - 1
    return next((i for i in (after_letter, after_word, after_space) if i is not None), None)
