"""Brackets and quotation marks around what was dropped: emptied ones go, half-empty ones are mended.

A bracket without a mark (`marks`) in it is the author's own, whatever it holds: `f()` stays.
"""

from __future__ import annotations

import re

from rag_core.wiki.marks import BREAK, TRACES
from rag_core.wiki.templates.languages import LANGUAGE_NAMES

_PAIRS = ("()", "[]", "（）", "［］", "【】", "〔〕", "「」", "『』", "《》", "〈〉")
_BRACKETS = {pair[0]: re.compile(rf" ?\{pair[0]}([^\{pair[0]}\{pair[1]}]*+)\{pair[1]}") for pair in _PAIRS}
_MAX_NESTING = 4

# Inside a pair of quotation marks: nothing but marks.
_EMPTY = r"[ ,;]*+[\x01\x02][ ,;\x01\x02]*+"
_BEFORE_QUOTE = re.compile(r"[\"“”»’›'](?:(?<=[\x01\x02].)|(?<=[\x01\x02] .))")
_EMPTY_QUOTES = re.compile(
    rf"(?<![\w\"]) ?(?:\"{_EMPTY}\"(?!\w)|“{_EMPTY}”|„{_EMPTY}[“”]|«{_EMPTY}»|‘{_EMPTY}’|‹{_EMPTY}›"
    rf"|(?<![\w'])'{_EMPTY}'(?![\w']))"
)

_SEGMENTS = re.compile(r"([;,；，、؛،])")
# A slash or bar between two readings of which one is gone; not the slash of /ˈɔːk/.
_LOOSE_SLASH = re.compile(
    r"(?<=[\x01\x02]) *(?:/ *(?=[\x01\x02 ]|$)|\| *)"
    r"|(?:(?<=[ \x01\x02])|(?<=\A))/ *(?=[\x01\x02])| *\| *(?=[\x01\x02])"
)
# The same for the only slash of a bracket: `({{x}}/foo)`.
_ONLY_SLASH = re.compile(r"(?<=[\x01\x02])/|/(?=[\x01\x02])")
# A mark that stands for words of its own, not one glued to a word as a reference is.
_OWN_WORDS = re.compile(r"(?:^|[\s:：*†=~])[\x01\x02]")
_MARKS = re.compile(r"[\x01\x02]")
_PUNCTUATION = frozenset(" ,;:/*†‡–—-=~\"'“”„«»‘’.·•…、，；：／・؛،")

# Words that only announce what was dropped.
_ANNOUNCING = frozenset(
    """
    le la les à au du des der die das am el il lo
    pronounced pronunciation pronunciations ipa listen born né née nee or and also either in from of
    the a an to for by with at as lit lit. literally meaning romanized romanised transliterated
    transliteration spelled written see b b. d d. c c. ca ca. circa fl fl. r r. i.e. e.g.
    abbreviated abbr. locally sometimes formerly known called named died since until after before
    between about approximately nicknamed styled geboren geb geb. gest gest. ausgesprochen oder und
    auch von eigentlich ou et prononcé prononcée prononciation en o u y e nacido nacida pronunciado
    pronunciación nato nata pronuncia pronunciato ou nascido nascida или и род род. ум ум.
    произносится также lub i ur ur. zm zm. wym wym. eller född och uttal geboren of en または および 或 和 与
    또는
    """.split()
)
# Words that join it to something else, or point to a sound.
_JOINING = frozenset(
    """
    or and also listen ipa oder und ou et o y e u или и lub i eller och of en または および 或 和 與 또는
    """.split()
)
_LANGUAGE_WORDS = frozenset(name.casefold() for name in LANGUAGE_NAMES.values())


def mend_brackets(line: str) -> str:
    """The line with its emptied brackets and quotation marks replaced by marks."""
    for _ in range(_MAX_NESTING):
        before = line
        if _BEFORE_QUOTE.search(line):
            line = _EMPTY_QUOTES.sub(BREAK, line)
        for opening, pattern in _BRACKETS.items():
            if opening in line:
                line = pattern.sub(_mended, line)
        if line == before:
            break
    return line


def _mended(match: re.Match[str]) -> str:
    content = match[1]
    if not _MARKS.search(content):
        return match.group()
    loose = _ONLY_SLASH if content.count("/") == 1 else _LOOSE_SLASH
    mended = _without_announcements(_LOOSE_SLASH.sub("", loose.sub("", content)))
    if all(character in _PUNCTUATION for character in _MARKS.sub("", mended)):
        return BREAK
    start, end = match.span(1)
    whole, shift = match.group(), match.start()
    return whole[: start - shift] + mended + whole[end - shift :]


def _without_announcements(content: str) -> str:
    """Without the parts between commas that hold a mark and, besides, nothing that means anything."""
    parts = _SEGMENTS.split(content)  # part, separator, part, …
    out = ""
    for i in range(0, len(parts), 2):
        separator = parts[i - 1] if i else ""
        if not _only_announces(parts[i]):
            out += separator + parts[i] if out else parts[i].lstrip()
    return out


def _only_announces(part: str) -> bool:
    if not _OWN_WORDS.search(part):
        return False
    text = " ".join(_MARKS.sub(" ", part).casefold().split())
    if part.rstrip()[-1] not in TRACES:  # "{{x}} or": what the words announce would stand behind them
        return all(word in _JOINING or _PUNCTUATION.issuperset(word) for word in text.split())
    if text.endswith((":", "：")) or text in _LANGUAGE_WORDS:
        return True
    return all(word in _ANNOUNCING or _PUNCTUATION.issuperset(word) for word in text.split())
