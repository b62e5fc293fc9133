"""Template calls `{{…}}` are rendered or dropped, tables `{|…|}` are dropped.

Brackets are matched once for the whole page, with a stack. Everything after that jumps from an
opening to its end, so that no text is looked at twice on one level. What a template shows is asked
from `templates.find_template`; a renderer sees arguments that are expanded only when it wants them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, MutableMapping
from typing import NamedTuple

from rag_core.wiki.counting import add_one
from rag_core.wiki.marks import BREAK, DROPPED, SHIELD, without_marks
from rag_core.wiki.templates import Arguments, drop, find_function, find_template

# Rendered text is copied once per level that encloses it: a bound on levels keeps the cost linear.
MAX_DEPTH = 40

CALL, PARAMETER, TABLE, UNCLOSED_CALL, UNCLOSED_TABLE, STRAY, SHORT_CALL = range(7)


class Span(NamedTuple):
    """A piece of wikitext, from its opening bracket to behind its closing one."""

    start: int
    end: int
    kind: int


def expand_calls(
    text: str, lang: str, lost: MutableMapping[str, int] | None = None, variables: Mapping[str, str] = {}
) -> str:
    """Wikitext without templates and tables, with a mark where one showed nothing.

    `lost` counts the templates nobody knows how to render; `variables` are the page's own, `PAGENAME`.
    """
    if "{" not in text and "}}" not in text:
        return text
    # Tables start on a line of their own. Let the first line start like every other, and give a line to
    # a table that its author wrote behind something else.
    if "{|" in text:
        text = _GLUED_TABLE.sub("}\n", _TABLE_OPENING.sub(_on_its_own_line, text))
    return _Expander("\n" + text, lang, lost, variables).expand_page()


# A table begins a line behind another table or template, or with nothing else in its line but attributes.
# Both patterns begin with a character that is rare: the engine looks at few places.
_GLUED_TABLE = re.compile(r"\}(?=\{\|)")
_TABLE_OPENING = re.compile(r"\{\|(?=(?:[ \t]*+[\w-]++[ \t]*+=[^\n{}|]*+|[ \t]*+)\n)")


def _on_its_own_line(opening: re.Match[str]) -> str:
    text, at = opening.string, opening.start() - 1
    while at >= 0 and text[at] in " \t":
        at -= 1
    inside = at >= 0 and not text[at].isspace() and text[at] not in ":;*#{"
    return "\n{|" if inside else "{|"


class _Expander:
    """Expands one page; `spans` are sorted by start and properly nested."""

    def __init__(
        self, text: str, lang: str, lost: MutableMapping[str, int] | None, variables: Mapping[str, str]
    ):
        self._spans = match_brackets(text)
        self._starts = [span.start for span in self._spans]
        self._text = _rows_alike(text, self._spans)
        self._lang = lang
        self._lost = lost
        self._variables = variables
        self._depth = 0

    def expand_page(self) -> str:
        return self.expand(0, len(self._text))

    def expand(self, start: int, end: int) -> str:
        """The text of [start, end) with every call in it rendered."""
        if self._depth > MAX_DEPTH:
            return ""
        self._depth += 1
        expanded = "".join(self._pieces(start, end))
        self._depth -= 1
        return expanded

    def _pieces(self, start: int, end: int) -> Iterator[str]:
        text, spans, starts = self._text, self._spans, self._starts
        i = bisect_left(starts, start)
        while i < len(spans) and spans[i].start < end:
            span = spans[i]
            if span.start > start:
                yield text[start : span.start]
            if span.kind == CALL:
                yield self._call(span.start + 2, span.end - 2)
            elif span.kind == SHORT_CALL:
                yield self._call(self._text.rindex("{", span.start, span.end) + 1, span.end - 1)
            elif span.kind == PARAMETER:
                yield self._parameter_default(span)
            elif span.kind in (TABLE, UNCLOSED_TABLE):
                yield "\n"
            start = span.end
            i = i + 1 if i + 1 == len(spans) or starts[i + 1] >= start else bisect_left(starts, start, i)
        if start < end:
            yield text[start:end]

    def _call(self, start: int, end: int) -> str:
        head = _NAME.match(self._text, start, end)
        assert head  # the pattern matches the empty text too
        name = head.group()
        function, colon, _ = name.partition(":")
        if colon and (render := find_function(function)):
            if render is drop:
                return DROPPED
            return render(self._arguments(start + len(function) + 1, end)) or DROPPED
        if head.end() == end or self._text[head.end()] == "|":
            if head.end() == end and (value := self._variables.get(name.strip())):
                return value
            render = find_template(name, self._lang)
            if render is drop:
                return BREAK
            if render is not None:
                shown = render(self._arguments(head.end() + 1, end)) or DROPPED
                if shown[0] in _LIST_MARKS and not self._text.startswith("\n", head.end() + 1):
                    return SHIELD + shown  # "{{nowrap|#1}} hit": no list
                return shown
        if self._lost is not None:
            add_one(self._lost, " ".join(without_marks(name).replace("_", " ").split()))
        return BREAK

    def _parameter_default(self, span: Span) -> str:
        """`{{{name|default}}}`: an article has no caller, so the default is what shows."""
        start, end = span.start + 3, span.end - 3
        parts = self._split(start, end)
        return self.expand(*parts[1]) if len(parts) > 1 else ""

    def _arguments(self, start: int, end: int) -> Arguments:
        arguments = Arguments(self._text, self._lang, self.expand)
        if start <= end:
            for part in self._split(start, end):
                arguments.add(*part)
        return arguments

    def _split(self, start: int, end: int) -> list[tuple[int, int]]:
        """Cut [start, end) at the pipes that stand outside links, calls and tables."""
        text, starts = self._text, self._starts
        parts = []
        links = 0
        part_start = position = start
        while token := _SPLIT_TOKEN.search(text, position, end):
            kind = token.group()
            position = token.end()
            if kind == "[[":
                links += 1
            elif kind == "]]":
                links = max(0, links - 1)
            elif kind == "|":
                if not links:
                    parts.append((part_start, token.start()))
                    part_start = position
            else:
                i = bisect_left(starts, token.start())
                if i < len(starts) and starts[i] < position:
                    position = self._spans[i].end
        parts.append((part_start, end))
        return parts


_LIST_MARKS = frozenset("*#:;=")
_NAME = re.compile(r"[^|{}\[\]]*+")
_SPLIT_TOKEN = re.compile(r"\{\{|\n[ \t:;*#]*+\{\||\[\[|\]\]|\|")
# One pattern per bracket: each begins with a literal, which `re` finds ten times faster than a choice.
_BRACKETS = [
    re.compile(pattern)
    for pattern in (r"\{\{++", r"\}\}++", r"\n[ \t:;*#]*+\{\|(?!\})", r"\n[ \t]*+\|\}(?!\}(?!\}))")
]


def match_brackets(text: str) -> list[Span]:
    """Pair every bracket of a page with its partner, in one sweep; sorted by start.

    Follows the MediaWiki preprocessor: in a run of braces the innermost two or three pair first. A
    broken construct must not swallow its surroundings: `}}` skips an unclosed table inside its call,
    `|}` skips an unclosed call inside its table, and what stays open covers its own bracket only.
    """
    spans: list[Span] = []
    stack: list[list[int]] = []  # [start, braces still open]; 0 braces: a table
    n_calls = n_tables = 0
    table_end = 0

    tokens = sorted(token.span() for bracket in _BRACKETS for token in bracket.finditer(text))
    for start, end in tokens:
        first = text[start]
        start = max(start, table_end)  # of "|}}}" the first three may have ended a table
        if first == "{":
            stack.append([start, end - start])
            n_calls += 1
        elif first == "}":
            while end - start >= 2:
                if not n_calls:
                    spans.append(Span(start, end, STRAY))
                    break
                while not stack[-1][1]:
                    spans.append(_unclosed_table(text, stack.pop()[0]))
                    n_tables -= 1
                opening = stack[-1]
                n = 3 if opening[1] >= 3 and end - start >= 3 else 2
                opening[1] -= n
                spans.append(Span(opening[0] + opening[1], start + n, PARAMETER if n == 3 else CALL))
                start += n
                if opening[1] < 2:
                    stack.pop()
                    n_calls -= 1
        elif text[end - 1] == "|":
            stack.append([start, 0])
            n_tables += 1
        elif n_tables:  # the end of a table
            while stack[-1][1]:
                spans.append(_unclosed_call(text, *stack.pop()))
                n_calls -= 1
            spans.append(Span(stack.pop()[0], end, TABLE))
            n_tables -= 1
            table_end = end
    for start, braces in stack:
        spans.append(_unclosed_call(text, start, braces) if braces else _unclosed_table(text, start))
    spans.sort()
    return spans


_SHORT_CALL = re.compile(r"[^\n{}\[\]<>|]++(?:\|[^\n{}]*+)?+\}(?!\})")
_CALL_HEAD = re.compile(r"(?:[^\n{}\[\]|]*+\|)++(?:[ \w-]*+=)?")
_TABLE_HEAD = re.compile(r"\n[ \t:;*#]*+\{\|[^\n{}]*+")


def _rows_alike(text: str, spans: list[Span]) -> str:
    """Header rows (`!`) of a table without an end as ordinary rows (`|`), which the lines pass drops."""
    start = next((span.start for span in spans if span.kind == UNCLOSED_TABLE), len(text))
    return text if start == len(text) else text[:start] + text[start:].replace("\n!", "\n|")


def _unclosed_call(text: str, start: int, braces: int) -> Span:
    """`{{name|key=` of a call without an end. The reader sees it literally; what follows is prose."""
    end = start + braces
    if short := _SHORT_CALL.match(text, end):  # "{{name|value}": one brace was forgotten
        return Span(start, short.end(), SHORT_CALL)
    if head := _CALL_HEAD.match(text, end):
        end = head.end()
    elif text.startswith("\n|", line_end := text.find("\n", end, end + 80)):
        end = line_end  # an infobox: its parameters start with `|` and go with the lines pass
    return Span(start, end, UNCLOSED_CALL)


def _unclosed_table(text: str, start: int) -> Span:
    """The first line of a table without an end; its rows start with `|` and go with the lines pass."""
    head = _TABLE_HEAD.match(text, start)
    assert head  # `start` is where this pattern's beginning was found
    return Span(start, head.end(), UNCLOSED_TABLE)
