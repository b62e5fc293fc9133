"""The arguments of one template call, expanded only when a renderer asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from rag_core.wiki.marks import SHIELD, TRACES

_BLANK = " \t\n\r\xa0" + TRACES + SHIELD
_KEY = re.compile(r"([^=\[\]{}<>|]*+)=")


class Arguments:
    """What stands between the pipes. Keys are strings; unnamed arguments are "1", "2", …

    Named values are stripped, as MediaWiki does; unnamed ones are stripped too, since no renderer
    here wants the white space around them.
    """

    __slots__ = ("_expand", "_n_unnamed", "_order", "_spans", "_text", "_values", "lang")

    def __init__(self, text: str, lang: str, expand: Callable[[int, int], str]):
        self.lang = lang
        self._text = text
        self._expand = expand
        self._spans: dict[str, tuple[int, int]] = {}
        self._values: dict[str, str] = {}
        self._order: list[tuple[str | None, int, int]] = []
        self._n_unnamed = 0

    def add(self, start: int, end: int) -> None:
        """Take the piece [start, end) of the page as the next argument."""
        key = _KEY.match(self._text, start, end)
        if key:
            name = key.group(1).strip()
            self._spans[name.lower()] = (key.end(), end)
            self._order.append((name, key.end(), end))
        else:
            self._n_unnamed += 1
            self._spans[str(self._n_unnamed)] = (start, end)
            self._order.append((None, start, end))

    def __getitem__(self, key: str | int) -> str:
        """The expanded value; "" where there is none."""
        key = str(key)
        value = self._values.get(key)
        if value is None:
            span = self._spans.get(key)
            value = self._values[key] = self._stripped(*span) if span else ""
        return value

    def raw(self, key: str) -> str:
        """The value as it stands in the page; "" where there is none."""
        start, end = self._spans.get(key, (0, 0))
        return self._text[start:end]

    def __contains__(self, key: str | int) -> bool:
        return str(key) in self._spans

    def first(self, *keys: str | int) -> str:
        """The first of these that is not empty, else ""."""
        return next((value for key in keys if (value := self[key])), "")

    def unnamed(self, start: int = 1) -> list[str]:
        """The values of "start", "start + 1", … as far as the numbers run, empty ones included."""
        values = []
        while str(start) in self._spans:
            values.append(self[start])
            start += 1
        return values

    def cases(self) -> Iterator[tuple[str | None, Callable[[], str]]]:
        """(name as written or None, its value when called) in the order of the page: for `#switch`."""
        for name, start, end in self._order:
            yield name, partial(self._stripped, start, end)

    def _stripped(self, start: int, end: int) -> str:
        return self._expand(start, end).strip(_BLANK)
