"""MediaWiki export XML → pages, streaming (schemas 0.3 to 0.11; any encoding that XML declares).

Elements are told by name *and depth*: a revision and a contributor have an `<id>` too. Unknown
elements (`<origin>`, `<content>`, `<upload>`, …) are passed over.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import BinaryIO
from xml.parsers import expat

from rag_core import files
from rag_core.wiki.records import DumpError, Page, SiteInfo
from rag_core.wiki.streams import TrailingGarbage, xml_chunks

Source = str | os.PathLike[str] | BinaryIO
OnBadPage = Callable[[Page, str], None]

_ROOT, _IN_ROOT, _IN_PAGE, _IN_REVISION = 1, 2, 3, 4
# Elements whose text is kept, by depth: fields of a page, and the names in <siteinfo>.
_TEXT_AT = {(_IN_PAGE, "title"), (_IN_PAGE, "ns"), (_IN_PAGE, "id"), (_IN_REVISION, "text"), (4, "namespace")}


def read_pages(
    path_or_file: Source,
    *,
    byte_range: tuple[int, int] | None = None,
    expected_ids: Sequence[str] | None = None,
    on_bad_page: OnBadPage | None = None,
) -> Iterator[Page]:
    """Every page of a dump, in its order, redirects and other namespaces included.

    `path_or_file` is a path, a URL or an open binary file: plain XML, gzip, or bzip2 of one or of many
    streams. `byte_range` reads one range of a multistream file (see `read_index`) and `expected_ids`
    are the page ids the index promises for it.

    A page without a usable id, title or namespace goes to `on_bad_page(page, reason)`, and is a
    `DumpError` when there is none. `DumpError`, with file and offset, is raised for anything that
    makes the rest of the file doubtful: damaged or cut-off data, XML that is not well formed, any
    DOCTYPE, a missing `</mediawiki>`, ids other than the index's. Pages before the damage have been
    yielded by then. Bytes after a complete dump are a warning.
    """
    for item in read_dump(path_or_file, byte_range=byte_range, expected_ids=expected_ids):
        if isinstance(item, Page):
            fault = page_fault(item)
            if fault is None:
                yield item
            elif on_bad_page is not None:
                on_bad_page(item, fault)
            else:
                raise DumpError(source_name(path_or_file), 0, f"page id {item.page_id!r}: {fault}")


def source_name(path_or_file: Source) -> str:
    if isinstance(path_or_file, (str, os.PathLike)):
        return os.fspath(path_or_file)
    return str(getattr(path_or_file, "name", "<stream>"))


def page_fault(page: Page) -> str | None:
    """Why a page of well-formed XML cannot be used, or None."""
    if not page.page_id.isascii() or not page.page_id.isdigit():
        return f"<id> should be a whole number, got {page.page_id!r}"
    if not page.title.strip():
        return "<title> is missing or empty"
    if page.namespace == _NO_NAMESPACE:
        return "<ns> should be a whole number"
    return None


_NO_NAMESPACE = -(10**9)


def read_dump(
    path_or_file: Source,
    *,
    byte_range: tuple[int, int] | None = None,
    expected_ids: Sequence[str] | None = None,
) -> Iterator[SiteInfo | Page]:
    """`read_pages`, with bad pages left in and one `SiteInfo` ahead of the pages where there is one."""
    name = source_name(path_or_file)
    by_name = isinstance(path_or_file, (str, os.PathLike))
    with files.open_input(name) if by_name else nullcontext(path_or_file) as source:
        if byte_range is None:
            local_path = name if by_name and files.is_local(name) else None
            yield from _parse(xml_chunks(source, name, local_path=local_path), name, _DumpParser(name))
            return
        ends_file = byte_range[1] >= source.seek(0, os.SEEK_END)
        parser = _DumpParser(name, fragment=True, ends_dump=ends_file)
        found_ids = []
        for item in _parse(xml_chunks(source, name, byte_range), name, parser):
            if isinstance(item, Page):
                found_ids.append(item.page_id)
            yield item
        if expected_ids is not None and found_ids != list(expected_ids):
            raise DumpError(name, byte_range[0], _id_mismatch(found_ids, list(expected_ids)))


def _id_mismatch(found: list[str], expected: list[str]) -> str:
    for i, (got, want) in enumerate(zip(found, expected)):
        if got != want:
            return f"page {i} of the range has id {got}, the index says {want}"
    return f"the range holds {len(found)} pages, the index says {len(expected)}"


def _parse(chunks: Iterator[bytes], name: str, parser: _DumpParser) -> Iterator[SiteInfo | Page]:
    try:
        for chunk in chunks:
            yield from parser.feed(chunk)
    except TrailingGarbage as garbage:
        if not parser.complete:
            raise DumpError(name, garbage.offset, "neither a stream nor the end of the dump") from None
        warnings.warn(f"{name}: byte {garbage.offset}: ignored what follows the dump", stacklevel=2)
    yield from parser.close()


class _DumpParser:
    """Push bytes in, take pages out.

    `fragment`: pages without the start of the root element. `ends_dump`: its end must come.
    """

    _FRAGMENT_ROOT = b"<mediawiki>"

    def __init__(self, name: str, fragment: bool = False, ends_dump: bool = True):
        self._name = name
        self._expat = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = 1 << 20
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._doctype
        self._depth = 0
        self._text: list[str] | None = None
        self._lang: str | None = None
        self._namespaces: dict[int, str] = {}
        self._namespace_key = 0
        self._out: list[SiteInfo | Page] = []
        self._ends_dump = ends_dump
        self._offset_shift = 0
        self._begin_page()
        self.complete = False
        if fragment:
            self._offset_shift = len(self._FRAGMENT_ROOT)
            parser.Parse(self._FRAGMENT_ROOT)

    def feed(self, data: bytes) -> list[SiteInfo | Page]:
        if self.complete:
            self._warn_if_content(data)
            return []
        try:
            self._expat.Parse(data)
        except expat.ExpatError as error:
            self._fail(error)
        return self._take()

    def close(self) -> list[SiteInfo | Page]:
        """Check that the document was whole."""
        if not self.complete:
            offset = self._expat.CurrentByteIndex - self._offset_shift
            if not self._ends_dump and self._depth == _ROOT:
                return []
            raise DumpError(
                self._name, offset, f"the XML ends{self._where()} without </mediawiki>: the dump is cut off"
            )
        return self._take()

    def _take(self) -> list[SiteInfo | Page]:
        out, self._out = self._out, []
        return out

    def _fail(self, error: expat.ExpatError) -> None:
        offset = self._expat.ErrorByteIndex - self._offset_shift
        if self.complete:
            warnings.warn(
                f"{self._name}: byte {offset} of the XML: ignored what follows the dump", stacklevel=4
            )
            return
        reason = expat.ErrorString(error.code)
        raise DumpError(self._name, offset, f"in the XML{self._where()}: {reason}") from None

    def _warn_if_content(self, data: bytes) -> None:
        if data.strip():
            warnings.warn(f"{self._name}: ignored what follows </mediawiki>", stacklevel=4)

    def _where(self) -> str:
        if self._depth < _IN_ROOT or not (self._title or self._page_id):
            return ""
        return f" (in or after page {self._title!r}, id {self._page_id or 'unknown'})"

    def _doctype(self, *_declaration: object) -> None:
        raise DumpError(
            self._name, self._expat.CurrentByteIndex, "a DOCTYPE is refused: no MediaWiki dump has one"
        )

    def _begin_page(self) -> None:
        self._page_id = self._title = self._ns = self._wikitext = ""
        self._redirect: str | None = None

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth = depth = self._depth + 1
        if (depth, tag) in _TEXT_AT:
            self._text = []
            self._expat.CharacterDataHandler = self._text.append
            if tag == "namespace":
                self._namespace_key = int(attributes.get("key", "0"))
        elif depth == _IN_ROOT:
            if tag == "page":
                self._begin_page()
        elif depth == _IN_PAGE:
            if tag == "redirect":
                self._redirect = attributes.get("title", "")
            elif tag == "revision":
                self._wikitext = ""
        elif depth == _ROOT:
            if tag != "mediawiki":
                raise DumpError(self._name, 0, f"not a MediaWiki dump: its root element is <{tag}>")
            self._lang = attributes.get("xml:lang")

    def _end(self, tag: str) -> None:
        depth = self._depth
        self._depth = depth - 1
        if self._text is not None and (depth, tag) in _TEXT_AT:
            text = "".join(self._text)
            self._text = self._expat.CharacterDataHandler = None
            if tag == "text":
                self._wikitext = text
            elif tag == "title":
                self._title = text
            elif tag == "id":
                self._page_id = text.strip()
            elif tag == "ns":
                self._ns = text.strip()
            else:
                self._namespaces[self._namespace_key] = text
        elif depth == _IN_ROOT:
            if tag == "page":
                namespace = int(self._ns) if _is_integer(self._ns) else _NO_NAMESPACE
                self._out.append(Page(self._page_id, namespace, self._title, self._redirect, self._wikitext))
            elif tag == "siteinfo":
                self._out.append(SiteInfo(self._lang, self._namespaces))
        elif depth == _ROOT:
            self.complete = True


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii()
