"""Comments, `<nowiki>`, extension tags and HTML.

One walk from `<` to `<`. What hides its content from the rest of wikitext must go first: a `{{` in a
comment opens nothing. Linear: the next closing tag of each name is looked up once and remembered.
"""

from __future__ import annotations

import re

from rag_core.wiki.formulas import formula_text
from rag_core.wiki.marks import BREAK, DROPPED, SHIELD

# A comment's start, or a whole reference without another tag in it (most are), or any tag.
_TAG = re.compile(
    r"<(?:(!--)"
    r"|(ref\b[^<>]*+>(?:(?<=/>)|[^<]*+</ref\s*+>))"
    r"|(/?)([a-zA-Z][a-zA-Z0-9]*+)([^<>]*+)>)"
)

# What a reference never holds: another one, or a blank line. Then its end is another one's.
_NOT_IN_REF = re.compile(r"<ref\b[^<>]*+(?<!/)>|\n[ \t]*+\n", re.IGNORECASE)
_LOOSE_CLOSE = re.compile(r"</ref\b[^<>\n]*+(?:>|(?=[\n<])|\Z)", re.IGNORECASE)
# `<ref name="a"` without its `>`.
_BROKEN_OPENING = re.compile(r"<ref\s++(?:name|group)\s*+=\s*+(?:\"[^\"<>\n]*+\"|[^\s<>\"/]++)\s?/?")
# A known tag without its `>`: with attributes, or at the end of its line; `<\\br>`, `</ br>`, `< br>`.
_ODD_TAG = re.compile(
    r"</?+([a-zA-Z][a-zA-Z0-9]*+)"
    r"(?:((?:\s++[\w-]++\s*+=\s*+(?:\"[^\"<>\n]*+\"|'[^'<>\n]*+'|[^\s<>\"'/]++))++)|[ \t]*+/?+(?=[\n<]|\Z))"
    r"|<[ /\\]++(br) ?/?+>",
    re.IGNORECASE,
)
# Where the line ends, unless it ends inside a template.
_LINE_END = re.compile(r"\n(?![ \t]*+[|}])")
_TABLE_TAG = re.compile(r"<(/)?table\b[^<>]*+>", re.IGNORECASE)
_CLOSING_NAME = re.compile(r"</([a-zA-Z][a-zA-Z0-9]*+)")

# Shown by MediaWiki as something other than running text: gone, with all they enclose.
_DROPPED = frozenset(
    "ref references gallery syntaxhighlight source score timeline hiero imagemap inputbox templatedata "
    "templatestyles graph mapframe maplink categorytree dynamicpagelist rss includeonly indicator "
    "languages listing quiz section style script mapsources choose charinsert".split()
)
# They show nothing, and nothing is missing where they stood.
_INVISIBLE = frozenset(
    "includeonly templatestyles indicator languages section style script templatedata".split()
)
# Their content is shown as it stands, without being parsed.
_VERBATIM = frozenset(("nowiki", "pre"))
_CODE = frozenset(("syntaxhighlight", "source"))  # with the attribute `inline`: words of the sentence
_FORMULA = frozenset(("math", "chem", "ce"))
_ENCLOSING = _DROPPED | _VERBATIM | _FORMULA
# Separate the words on their two sides.
_SPACE = frozenset(("br", "hr"))
_BLOCK = frozenset(
    "table p div blockquote center dl h1 h2 h3 h4 h5 h6 ol ul poem td th tr tbody thead "
    "tfoot caption article aside footer header main nav figure figcaption".split()
)
_ITEMS = frozenset(("li", "dt", "dd"))
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_MAX_HEADING = 500
_INLINE = frozenset(
    "a abbr b bdi bdo big blink cite code data del dfn em font i ins kbd label langconvert link mark meta "
    "noinclude nobr onlyinclude q rb rbc rp rt rtc ruby s samp small span strike strong sub sup tt time u "
    "var wbr img translate tvar phonos".split()
)
_KNOWN = _ENCLOSING | _SPACE | _BLOCK | _INLINE | _ITEMS

_LINE_MARKS = frozenset("*#:;|")
_ONLY_TAGS = re.compile(r"(?:<[^<>]*+>)*+")

# Wikitext's own characters as entities: the later passes see text, the last one gives it back.
_ESCAPES = {ord(c): f"&#{ord(c)};" for c in "[]{}|'=*:;_<>~-/!"} | {ord("#"): "&#35;"}


def escape_markup(text: str) -> str:
    """Text that no later pass takes for markup; entities in it stay entities."""
    return _ENTITY_OR_TEXT.sub(_escape_part, text)


_ENTITY_OR_TEXT = re.compile(r"&#?\w++;|[^&]++|&")


def _escape_part(match: re.Match[str]) -> str:
    part = match.group()
    return part if part[0] == "&" else part.translate(_ESCAPES)


def strip_tags(text: str) -> str:
    """Wikitext without comments and tags."""
    if "<" not in text:
        return text
    return _TagStripper(text).run()


class _TagStripper:
    """One page; what was looked up in it once is kept, so that no text is searched twice."""

    def __init__(self, text: str):
        self._text = text
        self._out: list[str] = []
        self._next_close: dict[str, re.Match[str] | None] = {}
        self._closed: set[str] | None = None
        self._tables: dict[int, int] | None = None

    def run(self) -> str:
        text, out = self._text, self._out
        position = 0
        search = _TAG.search
        while match := search(text, position):
            start, end = match.span()
            if start > position:
                out.append(text[position:start])
            comment, reference, slash, name, attributes = match.groups()
            if reference:
                out.append(DROPPED)
                position = end
                continue
            if comment:
                close = text.find("-->", end)
                position = len(text) if close < 0 else close + 3
                continue
            name = name.lower()
            if "\n\n" in attributes:  # "5 <a 6\n\n… >": no tag spans paragraphs
                out.append("<")
                position = start + 1
            elif name not in _KNOWN:
                if not (slash or "=" in attributes or name in self._closed_names()):
                    out.append(escape_markup(match.group()))
                position = end
            elif slash or attributes.rstrip().endswith("/"):
                out.append(_replacement(name, closing=bool(slash)))
                if text[end : end + 1] in _LINE_MARKS:
                    self._shield(name, start, end)
                position = end
            else:
                position = self._element(name, attributes, end)
                if text[end : end + 1] in _LINE_MARKS:
                    self._shield(name, start, end)
        out.append(text[position:])
        stripped = "".join(out)
        if "<ref" in stripped:
            stripped = _BROKEN_OPENING.sub(DROPPED, stripped)
        return _ODD_TAG.sub(_odd_tag, stripped) if "<" in stripped else stripped

    def _element(self, name: str, attributes: str, content_start: int) -> int:
        """Handle an opening tag; returns where to go on."""
        if name == "table":
            self._out.append(BREAK)
            return self._table_ends().get(content_start, content_start)
        if name in _HEADINGS and (close := self._close(name, content_start)):
            if close.start() - content_start < _MAX_HEADING:
                self._out.append("\n")
                return close.end()
        if name not in _ENCLOSING:
            self._out.append(_replacement(name, closing=False))
            return content_start
        close = self._close(name, content_start)
        if name == "ref" and (end := self._broken_reference(content_start, close)) is not None:
            self._out.append(DROPPED)
            return end
        if close is None:
            self._out.append("" if name in _VERBATIM else BREAK)
            return content_start
        content = self._text[content_start : close.start()]
        if name in _DROPPED and not (name in _CODE and "inline" in attributes):
            self._out.append(DROPPED if name == "ref" else "" if name in _INVISIBLE else BREAK)
        elif name in _FORMULA:
            edge = BREAK if "block" in attributes else ""
            self._out.append(f"{edge}{escape_markup(formula_text(content)) or BREAK}{edge}")
        else:
            edge = "\n" if name == "pre" else ""
            self._out.append(f"{edge}{escape_markup(content)}{edge}")
        return close.end()

    def _broken_reference(self, start: int, close: re.Match[str] | None) -> int | None:
        """Where a reference ends that has no end of its own; None for one that has, or is beyond mending.

        At something like an end, `</ref name="a">`; else where its line does.
        """
        text = self._text
        other = _NOT_IN_REF.search(text, start, close.start() if close else len(text))
        if other is None and close:
            return None
        stop = other.start() if other else len(text)
        if loose := _LOOSE_CLOSE.search(text, start, stop):
            return loose.end()
        if close is None:
            return None
        line_end = _LINE_END.search(text, start, stop)
        return line_end.start() if line_end else stop

    def _shield(self, name: str, start: int, end: int) -> None:
        """`<b>#1` at the start of a line is no list: the tag, not the sign, stands first."""
        if name in _INLINE or name in _SPACE or name == "nowiki":
            before = self._text[max(0, start - 200) : start].rpartition("\n")[2]
            if _ONLY_TAGS.fullmatch(before):
                self._out.append(SHIELD)

    def _closed_names(self) -> set[str]:
        """All names with a closing tag somewhere: an unknown `<name>` without one is text (`List<T>`)."""
        if self._closed is None:
            self._closed = {name.lower() for name in _CLOSING_NAME.findall(self._text)}
        return self._closed

    def _table_ends(self) -> dict[int, int]:
        """End of the opening tag → end of the element, for HTML tables, which nest."""
        if self._tables is None:
            self._tables = {}
            open_tables = []
            for tag in _TABLE_TAG.finditer(self._text):
                if tag[1] is None:
                    open_tables.append(tag.end())
                elif open_tables:
                    self._tables[open_tables.pop()] = tag.end()
        return self._tables

    def _close(self, name: str, position: int) -> re.Match[str] | None:
        known = self._next_close.get(name)
        if name not in self._next_close or (known is not None and known.start() < position):
            known = re.compile(rf"</{name}\s*+>", re.IGNORECASE).search(self._text, position)
            self._next_close[name] = known
        return known


def _odd_tag(match: re.Match[str]) -> str:
    name, attributes, line_break = match.groups()
    if line_break:
        return " "
    name = name.lower()
    if name in _KNOWN and (attributes or len(name) > 2 or name in _SPACE):
        return _replacement(name, closing=match[0][1] == "/")
    return match.group()


def _replacement(name: str, closing: bool) -> str:
    """What stands for a tag that encloses nothing: an opening or closing one, or `<name/>`."""
    if name in _ITEMS:
        return "\n" if closing else "\n* "
    if name in _DROPPED:
        return "" if closing or name in _INVISIBLE else DROPPED if name == "ref" else BREAK
    if name in _BLOCK:
        return "\n"
    return " " if name in _SPACE else ""
