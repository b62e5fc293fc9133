"""What a dump is read into, and the one error for a dump that cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rag_core.errors import DataError


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a dump as it stands there: nothing cleaned, nothing left out.

    `redirect` is the target's title where the page has a `<redirect>` element, else None. `wikitext`
    is the newest revision's; it is empty for deleted and for empty text. `model` is its content model:
    "wikitext", or "javascript", "Scribunto", "json", …, and the text is in that language.
    """

    page_id: str
    namespace: int
    title: str
    redirect: str | None
    wikitext: str
    model: str = "wikitext"


@dataclass(frozen=True, slots=True)
class BadPage:
    """A page of well-formed XML that cannot be used; `offset` is where in the XML it ends."""

    page: Page
    reason: str
    offset: int


@dataclass(frozen=True, slots=True)
class Article:
    """A page that passed the filters, as plain text: one line per paragraph."""

    page_id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class SiteInfo:
    """What a dump says about its own wiki: language code and the local names of its namespaces."""

    lang: str | None = None
    namespaces: Mapping[int, str] = field(default_factory=dict)


class DumpError(DataError):
    """A dump that is damaged, cut off or not a dump: names the file and the byte offset.

    `offset` counts bytes of the file as stored, or of the XML inside it where `reason` says so.
    """

    def __init__(self, file: str, offset: int, reason: str):
        super().__init__(f"{file}: byte {offset}: {reason}")
        self.file = file
        self.offset = offset
        self.reason = reason

    def __reduce__(self):
        return type(self), (self.file, self.offset, self.reason)
