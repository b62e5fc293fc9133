"""The small parts that template tables are written with.

A renderer is a function from `Arguments` to the text a reader would see. The table of a language maps
names to renderers; several names of one template share a row: `table({"nowrap | nobr": shown(1)})`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rag_core.wiki.templates.arguments import Arguments

Renderer = Callable[[Arguments], str]


def drop(arguments: Arguments) -> str:
    """Known to carry no prose: citations, boxes, navigation, maintenance notes."""
    return ""


def unknown(arguments: Arguments) -> str:
    """Known to carry prose that the page does not hold, such as figures kept elsewhere under a key:
    counted as lost, and never taken for an English template of the same name."""
    return ""


def shown(*keys: str | int) -> Renderer:
    """The first of these arguments that is not empty."""
    return lambda arguments: arguments.first(*keys)


def literal(text: str) -> Renderer:
    """Always the same text."""
    return lambda arguments: text


def wrapped(before: str, key: str | int, after: str = "") -> Renderer:
    """One argument between two fixed texts; nothing at all when it is empty."""
    return lambda arguments: f"{before}{arguments[key]}{after}" if arguments[key] else ""


def joined(separator: str, *keys: str | int) -> Renderer:
    """The non-empty ones of these arguments, or of all unnamed ones when no key is given."""

    def render(arguments: Arguments) -> str:
        values = [arguments[key] for key in keys] if keys else arguments.unnamed()
        return separator.join(filter(None, values))

    return render


def list_of(separator: str = ", ") -> Renderer:
    """Unnamed arguments as a run-on list; bullets inside one argument are separated the same way."""

    def render(arguments: Arguments) -> str:
        items = (line.strip(" *#:;") for value in arguments.unnamed() for line in value.split("\n"))
        return separator.join(filter(None, items))

    return render


def table(rows: Mapping[str, Renderer], beside: Mapping[str, Renderer] = {}) -> dict[str, Renderer]:
    """`{"a | b": renderer}` → `{"a": renderer, "b": renderer}`, names case-folded.

    Raises `ValueError` for a name given twice, here or in `beside`: the second would silently win.
    """
    result: dict[str, Renderer] = {}
    for names, renderer in rows.items():
        for name in (name.strip().casefold() for name in names.split(" | ")):
            if name in result or name in beside:
                raise ValueError(f"template {name!r} stands twice in the tables")
            result[name] = renderer
    return result
