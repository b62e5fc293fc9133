"""The index of a multistream dump: which bytes hold which pages.

A multistream file is many small bzip2 streams of about 100 pages each, between a stream with the
header and one with `</mediawiki>`. Index lines are `offset:page_id:title`; a title may hold colons.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rag_core import files
from rag_core.wiki.export_xml import ExportParser
from rag_core.wiki.records import DumpError, Page, SiteInfo
from rag_core.wiki.streams import TrailingGarbage, xml_chunks

_DUMP_NAME = re.compile(r"-multistream(\d*)\.xml((?:-p\d+p\d+)?)\.bz2$")


@dataclass(frozen=True, slots=True)
class StreamRange:
    """Bytes [start, end) of a multistream file and the ids of the pages in them, in order."""

    start: int
    end: int
    page_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PageIds:
    """Ids of pages in order, as their number and a digest: what a part of the work can carry.

    (The ids of a range are thousands; those of a whole Wikipedia are hundreds of megabytes, far above what
    a runner takes as a graph.)
    """

    count: int
    digest: str

    @classmethod
    def of(cls, ids: Sequence[str]) -> PageIds:
        return cls(len(ids), hashlib.sha256("\n".join(ids).encode()).hexdigest()[:32])

    def mismatch(self, found: Sequence[str]) -> str | None:
        """What is wrong with the ids that were found; None when they are these."""
        if len(found) != self.count:
            return f"the range holds {len(found)} pages, the index says {self.count}"
        if PageIds.of(found) != self:
            ends = f"{found[0]} to {found[-1]}" if found else "none"
            return f"the {len(found)} pages of the range ({ends}) have other ids than the index says"
        return None


def index_name(dump: str) -> str | None:
    """The name under which the index of a dump lies beside it, or None for another kind of dump.

    >>> index_name("enwiki-pages-articles-multistream1.xml-p1p41242.bz2")
    'enwiki-pages-articles-multistream-index1.txt-p1p41242.bz2'
    """
    if not _DUMP_NAME.search(dump):
        return None
    return _DUMP_NAME.sub(r"-multistream-index\1.txt\2.bz2", dump)


def read_index(index: str, dump: str) -> list[StreamRange]:
    """The ranges that an index promises for a dump, in the order of the file.

    The last range ends with the file, so it holds the footer too. Raises `DumpError` for a line that
    is none, for offsets that go backwards or leave the file, for pages that lie before the first one.
    """
    dump_bytes = files.size(dump)
    offsets: list[int] = []
    ids: list[list[str]] = []
    for n, (offset, page_id) in enumerate(_index_lines(index), start=1):
        if not offsets or offset != offsets[-1]:
            if offset >= dump_bytes or (offsets and offset < offsets[-1]):
                reason = f"offset should grow and stay below the {dump_bytes} bytes of {dump}"
                raise DumpError(index, n, f"line {n}: {reason}, got {offset}")
            offsets.append(offset)
            ids.append([])
        ids[-1].append(page_id)
    if offsets and offsets[0]:
        _check_header(index, dump, offsets[0])
    ends = [*offsets[1:], dump_bytes]
    return [StreamRange(start, end, tuple(page_ids)) for start, end, page_ids in zip(offsets, ends, ids)]


def _check_header(index: str, dump: str, end: int) -> None:
    """Raise unless the bytes before the first offset hold a header and no page, which no range would read."""
    parser = ExportParser(dump, ends_dump=False)
    with files.open_input(dump) as source:
        try:
            for chunk in xml_chunks(source, dump, (0, end)):
                for item in parser.feed(chunk):
                    if not isinstance(item, SiteInfo):
                        page = item if isinstance(item, Page) else item.page
                        raise DumpError(
                            index, 0, f"page {page.page_id} of {dump} lies before its first offset, {end}"
                        )
        except TrailingGarbage as garbage:
            raise DumpError(dump, garbage.offset, f"no stream, before the first offset of {index}") from None


def merge_ranges(ranges: Iterable[StreamRange], max_bytes: int) -> list[StreamRange]:
    """Neighbouring ranges joined up to about `max_bytes`: a part of the work needs more than 100 pages.

    The cut depends on the file alone. A single stream above `max_bytes` stays one range.
    """
    merged: list[StreamRange] = []
    for stream in ranges:
        last = merged[-1] if merged else None
        if last and last.end == stream.start and stream.end - last.start <= max_bytes:
            merged[-1] = StreamRange(last.start, stream.end, last.page_ids + stream.page_ids)
        else:
            merged.append(stream)
    return merged


def _index_lines(index: str) -> Iterator[tuple[int, str]]:
    with files.open_input(index) as source:
        rest = b""
        for chunk in xml_chunks(source, index):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (_parse_line(index, line) for line in lines if line)
        if rest:
            yield _parse_line(index, rest)


def _parse_line(index: str, line: bytes) -> tuple[int, str]:
    offset, _, rest = line.partition(b":")
    page_id, colon, _ = rest.partition(b":")
    if not (colon and offset.isdigit() and page_id.isdigit()):
        raise DumpError(index, 0, f"expected offset:page_id:title, got {line[:80]!r}")
    return int(offset), page_id.decode()
