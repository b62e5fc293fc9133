"""MediaWiki's export format: bytes in, pages out (schemas 0.6 to 0.11; any encoding that XML declares).

Elements are told by name *and depth*: a revision and a contributor have an `<id>` too. Unknown
elements (`<origin>`, `<content>`, `<upload>`, …) are passed over.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from xml.parsers import expat

from rag_core.wiki.records import BadPage, DumpError, Page, SiteInfo

Item = SiteInfo | Page | BadPage

_ROOT, _IN_ROOT, _IN_PAGE, _IN_REVISION = 1, 2, 3, 4
# Elements whose text is kept, by depth: the fields of a page, and the names inside <siteinfo>.
_TEXT_AT = {
    (_IN_PAGE, "title"), (_IN_PAGE, "ns"), (_IN_PAGE, "id"), (_IN_REVISION, "text"), (_IN_REVISION, "model"),
    (4, "namespace"),
}  # fmt: skip
_FRAGMENT_ROOT = b"<mediawiki>"
# MediaWiki saves no page above 2 MiB. What is far above is no page, and must not fill the memory: half a
# kilobyte of bzip2 can hold gigabytes of one letter.
MAX_CHARACTERS = 1 << 24
MAX_TAG_BYTES = 1 << 24


class ExportParser:
    """A push parser: `feed` bytes, take the pages they complete, `close` when there are no more.

    `fragment`: the pages come without the start of the root element, as in the middle of a multistream
    file. `ends_dump`: the end of the root element must come.
    """

    _redirect: str | None
    _in_revision = False

    def __init__(self, name: str, *, fragment: bool = False, ends_dump: bool = True):
        self.complete = False
        self._name = name
        self._ends_dump = ends_dump
        self._expat = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = 1 << 20
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._doctype
        self._depth = 0
        self._text: list[str] | None = None
        self._room = 0
        self._too_long: str | None = None
        self._lang: str | None = None
        self._namespaces: dict[int, str] = {}
        self._namespace_key = 0
        self._out: list[Item] = []
        self._begin_page()
        self._offset_shift = self._n_fed = len(_FRAGMENT_ROOT) if fragment else 0
        if fragment:
            parser.Parse(_FRAGMENT_ROOT)

    def feed(self, data: bytes) -> Iterator[Item]:
        """The pages that end in `data`, then a `DumpError` where the XML is not well formed."""
        if self.complete:
            self._behind_the_end(data, self._n_fed)
            self._n_fed += len(data)
            return
        error = None
        try:
            self._expat.Parse(data)
        except expat.ExpatError as caught:
            error = caught
        except DumpError:
            raise
        except (
            LookupError,
            ValueError,
        ) as caught:  # an encoding that cannot be read, a key that is no number
            reason = f"in the XML: {caught}"
            raise DumpError(self._name, max(0, self._expat.CurrentByteIndex), reason) from caught
        yield from self._out
        self._out.clear()
        if error is not None:
            at = self._expat.ErrorByteIndex
            if not self.complete:
                reason = f"in the XML{self._where()}: {expat.ErrorString(error.code)}"
                raise DumpError(self._name, at - self._offset_shift, reason)
            self._behind_the_end(data[at - self._n_fed :], at)
        self._n_fed += len(data)
        if not self.complete and self._n_fed - self._expat.CurrentByteIndex > MAX_TAG_BYTES + len(data):
            at = max(0, self._expat.CurrentByteIndex - self._offset_shift)
            raise DumpError(self._name, at, f"in the XML: a tag longer than {MAX_TAG_BYTES:,} bytes")

    def _behind_the_end(self, data: bytes, at: int) -> None:
        """Bytes after `</mediawiki>`: another dump must not be passed over, anything else is a warning."""
        offset = at - self._offset_shift
        if data.lstrip().startswith(b"<"):
            reason = (
                "in the XML: another document starts behind </mediawiki>; give each dump a file of its own"
            )
            raise DumpError(self._name, offset, reason)
        if data.strip():
            message = f"{self._name}: byte {offset} of the XML: ignored what follows </mediawiki>"
            warnings.warn(message, stacklevel=5)

    def close(self) -> None:
        """Raises `DumpError` unless the document, or the fragment, was whole."""
        if self.complete or (not self._ends_dump and self._depth == _ROOT):
            return
        offset = max(0, self._expat.CurrentByteIndex - self._offset_shift)
        missing = "</mediawiki>" if self._depth <= _ROOT or self._ends_dump else "</page>"
        reason = f"the XML ends{self._where()} without {missing}: the dump is cut off"
        raise DumpError(self._name, offset, reason)

    def _where(self) -> str:
        if not (self._title or self._page_id):
            return ""
        return f" (in or after page {self._title!r}, id {self._page_id or 'unknown'})"

    def _doctype(self, *_declaration: object) -> None:
        offset = self._expat.CurrentByteIndex
        raise DumpError(self._name, offset, "a DOCTYPE is refused: no MediaWiki dump has one")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth = depth = self._depth + 1
        if (depth, tag) in _TEXT_AT and (depth != _IN_REVISION or self._in_revision or tag == "namespace"):
            self._text, self._room = [], MAX_CHARACTERS
            self._expat.CharacterDataHandler = self._characters
            if tag == "namespace":
                self._namespace_key = int(attributes.get("key", "0"))
        elif depth == _IN_ROOT:
            if tag == "page":
                self._begin_page()
        elif depth == _IN_PAGE:
            if tag == "redirect":
                self._redirect = attributes.get("title", "")
            self._in_revision = tag == "revision"
            if self._in_revision:
                self._wikitext = self._model = ""
        elif depth == _ROOT:
            if tag != "mediawiki":
                raise DumpError(self._name, 0, f"not a MediaWiki dump: its root element is <{tag}>")
            self._lang = attributes.get("xml:lang")

    def _characters(self, data: str) -> None:
        assert self._text is not None
        self._room -= len(data)
        if self._room >= 0:
            self._text.append(data)

    def _end(self, tag: str) -> None:
        depth = self._depth
        self._depth = depth - 1
        if self._text is not None and (depth, tag) in _TEXT_AT:
            text = "".join(self._text)
            if self._room < 0:
                text, self._too_long = "", tag
            self._text = self._expat.CharacterDataHandler = None
            if tag == "text":
                self._wikitext = text
            elif tag == "model":
                self._model = text.strip()
            elif tag == "title":
                self._title = text
            elif tag == "id":
                self._page_id = text.strip()
            elif tag == "ns":
                self._namespace = text.strip()
            else:
                self._namespaces[self._namespace_key] = text
        elif depth == _IN_ROOT:
            if tag == "page":
                self._out.append(self._finished_page())
            elif tag == "siteinfo":
                self._out.append(SiteInfo(self._lang, self._namespaces))
        elif depth == _ROOT:
            self.complete = True

    def _begin_page(self) -> None:
        self._page_id = self._title = self._namespace = self._wikitext = self._model = ""
        self._redirect = self._too_long = None

    def _finished_page(self) -> Page | BadPage:
        fault = self._fault()
        namespace = 0 if fault else int(self._namespace)
        page = Page(
            self._page_id, namespace, self._title, self._redirect, self._wikitext, self._model or "wikitext"
        )
        if fault is None:
            return page
        return BadPage(page, fault, self._expat.CurrentByteIndex - self._offset_shift)

    def _fault(self) -> str | None:
        """Why the page that just ended cannot be used, or None."""
        if self._too_long is not None:
            return f"<{self._too_long}> is longer than {MAX_CHARACTERS:,} characters"
        if not (self._page_id.isascii() and self._page_id.isdigit()):
            return f"<id> should be a whole number, got {self._page_id!r}"
        if not self._title.strip():
            return "<title> is missing or empty"
        digits = self._namespace.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            return f"<ns> should be a whole number, got {self._namespace!r}"
        return None
