"""`[[links]]` give their label, files and categories go, `[http://… label]` gives the label."""

from __future__ import annotations

import re

from rag_core.wiki.marks import BREAK, DROPPED, SHIELD
from rag_core.wiki.namespaces import LinkPrefixes

_SIMPLE = re.compile(
    r"\[\[([^\[\]|\n]*+)(?:\|([^\[\]]*+(?:\[[^\[\]]*+\](?!\])[^\[\]]*+)*+(?:\[[^\[\]]*+\](?=\]\]))?))?\]\]"
)
_OPEN, _CLOSE = re.compile(r"\[\["), re.compile(r"\]\]++")
_STRAY = re.compile(r"\]\]")
_EXTERNAL = re.compile(
    r"\[(?:(?:https?|ftps?|sftp|ircs?|news|nntp|gopher|git|svn|ssh|telnet|worldwind|geo|magnet|mailto|tel|sms|xmpp|"
    r"urn|bitcoin):|//)[^\s\[\]<>\"|]*+(?:[ \t\xa0|]++((?:[^\[\]\n]++|\[[^\[\]\n]*+\])*+))?\]",
    re.IGNORECASE,
)


# `[[Hit|#1]]` at the start of a line is no list.
_LISTLIKE_LABEL = re.compile(r"\n(?=\[\[(?:[^\[\]|\n]*+\||#)[*#:;|]?|\[[^\s\[\]]++ ++[*#:;])")


def resolve_links(text: str, prefixes: LinkPrefixes) -> str:
    """Wikitext without link markup. A link that never closes loses its brackets and its target."""
    if "\n[" in text:
        text = _LISTLIKE_LABEL.sub("\n" + SHIELD, text)
    if "[[" in text:
        text = _simple(text, prefixes)
        if "[[" in text:
            text = _nested(text, prefixes)
    if "[" in text:
        text = _EXTERNAL.sub(_label, text)
    return _STRAY.sub("", text)


def _simple(text: str, prefixes: LinkPrefixes) -> str:
    """Without the links that hold no other link: nearly all, so this is written for speed."""
    pieces = _SIMPLE.split(text)  # text, target, label, text, target, label, …, text
    pieces[1::3] = [
        label if label and ":" not in target and not label.isspace() else _shown(target, label, prefixes)
        for target, label in zip(pieces[1::3], pieces[2::3])
    ]
    del pieces[2::3]
    return "".join(pieces)


def _label(match: re.Match[str]) -> str:
    label = match[1]
    if label and "[" in label:  # "[http://… [a] b]": what stands in brackets may be a link itself
        label = _EXTERNAL.sub(_label, label)
    return label or DROPPED


def _shown(target: str, label: str | None, prefixes: LinkPrefixes) -> str:
    colon = target.find(":")
    if colon > 0:
        prefix, title = target[:colon].strip(), target[colon + 1 :]
        if prefixes.hides(prefix, title):
            return BREAK if prefixes.is_file(prefix, title) else DROPPED
        if label is None and prefixes.is_project(prefix):
            return title.strip()
    elif colon == 0:
        target = target[1:]
    if label is None:
        return target
    if label.strip():
        return label
    # "[[Oak (tree)|]]": the pipe trick, left unexpanded.
    return target.partition("(")[0].rpartition(":")[2].strip()


def _nested(text: str, prefixes: LinkPrefixes) -> str:
    """What the simple pattern left: links around links, and brackets without a partner.

    `out` holds the pieces so far, `open_at` where in it the open links began. Levels above the
    innermost few are treated as broken: only so is the cost linear.
    """
    out: list[str] = []
    open_at: list[int] = []
    position = 0
    brackets = sorted(found.span() for bracket in (_OPEN, _CLOSE) for found in bracket.finditer(text))
    for start, end in brackets:
        out.append(text[position:start])
        position = end
        if text[start] == "[":
            open_at.append(len(out))
            out.append("")
            continue
        n = end - start
        if n % 2:  # `[http://… site]]]`: the first belongs to what stands in the label
            out.append("]")
        for _ in range(min(n // 2, len(open_at))):
            opened = open_at.pop()
            if len(open_at) < _MAX_NESTING:
                out[opened:] = [_shown(*_target_and_label("".join(out[opened + 1 :])), prefixes)]
    out.append(text[position:])
    for opened in open_at:
        out[opened + 1] = _unclosed(out[opened + 1], prefixes)
    return "".join(out)


def _target_and_label(content: str) -> tuple[str, str | None]:
    target, pipe, label = content.partition("|")
    return target, label if pipe else None


def _unclosed(content: str, prefixes: LinkPrefixes) -> str:
    """What is prose behind a `[[` without an end: `target|` goes, of a file all its options."""
    line, newline, rest = content.partition("\n")
    target, pipe, label = line.partition("|")
    if not pipe:
        return content
    prefix, _, title = target.partition(":")
    if prefixes.hides(prefix.strip(), title):
        label = label.rpartition("|")[2]
    return label + newline + rest


_MAX_NESTING = 12
