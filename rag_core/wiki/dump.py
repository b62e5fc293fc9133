"""Dump files → pages, streaming: `read_pages`, and `read_dump` for those who also want what is no page."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import BinaryIO, cast

from rag_core import files
from rag_core.wiki.export_xml import ExportParser, Item
from rag_core.wiki.multistream import PageIds
from rag_core.wiki.records import BadPage, DumpError, Page, SiteInfo
from rag_core.wiki.streams import TrailingGarbage, first_stream, xml_chunks

Source = str | os.PathLike[str] | BinaryIO
OnBadPage = Callable[[Page, str], None]


def read_pages(
    path_or_file: Source,
    *,
    byte_range: tuple[int, int] | None = None,
    expected_ids: Sequence[str] | PageIds | None = None,
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
            yield item
        elif isinstance(item, BadPage):
            report_bad_page(item, path_or_file, on_bad_page)


def report_bad_page(bad: BadPage, path_or_file: Source, on_bad_page: OnBadPage | None) -> None:
    """Hand a bad page to the caller, or raise it as a `DumpError` when the caller takes none."""
    if on_bad_page is None:
        reason = f"page {bad.page.title!r}, id {bad.page.page_id!r}: {bad.reason}"
        raise DumpError(_name_of(path_or_file), bad.offset, reason)
    on_bad_page(bad.page, bad.reason)


def read_dump(
    path_or_file: Source,
    *,
    byte_range: tuple[int, int] | None = None,
    expected_ids: Sequence[str] | PageIds | None = None,
) -> Iterator[Item]:
    """`read_pages` with bad pages left in, and one `SiteInfo` ahead of the pages where the dump has one."""
    name = _name_of(path_or_file)
    by_name = isinstance(path_or_file, (str, os.PathLike))
    with files.open_input(name) if by_name else nullcontext(cast(BinaryIO, path_or_file)) as source:
        if byte_range is None:
            local_path = name if by_name and files.is_local(name) else None
            yield from _parse(xml_chunks(source, name, local_path=local_path), ExportParser(name), name)
        else:
            yield from _site_info(source, name)
            yield from _read_range(source, name, byte_range, expected_ids)


def _name_of(path_or_file: Source) -> str:
    if isinstance(path_or_file, (str, os.PathLike)):
        return os.fspath(path_or_file)
    return str(getattr(path_or_file, "name", "<stream>"))


def _parse(chunks: Iterator[bytes], parser: ExportParser, name: str) -> Iterator[Item]:
    try:
        for chunk in chunks:
            yield from parser.feed(chunk)
    except TrailingGarbage as garbage:
        if not parser.complete:
            raise DumpError(name, garbage.offset, "neither a stream nor the end of the dump") from None
        warnings.warn(f"{name}: byte {garbage.offset}: ignored what follows the dump", stacklevel=2)
    parser.close()


def _site_info(source: BinaryIO, name: str) -> Iterator[Item]:
    """The header of a multistream file: its first stream, which holds no page."""
    header = ExportParser(name, ends_dump=False).feed(first_stream(source, name))
    return (item for item in header if isinstance(item, SiteInfo))


def _read_range(
    source: BinaryIO, name: str, byte_range: tuple[int, int], expected_ids: Sequence[str] | PageIds | None
) -> Iterator[Item]:
    ends_file = byte_range[1] >= source.seek(0, os.SEEK_END)
    parser = ExportParser(name, fragment=True, ends_dump=ends_file)
    found_ids = []
    for item in _parse(xml_chunks(source, name, byte_range), parser, name):
        if not isinstance(item, SiteInfo):
            found_ids.append(item.page_id if isinstance(item, Page) else item.page.page_id)
        yield item
    if isinstance(expected_ids, PageIds):
        wrong = expected_ids.mismatch(found_ids)
    else:
        wrong = None if expected_ids is None else _id_mismatch(found_ids, list(expected_ids))
    if wrong is not None:
        raise DumpError(name, byte_range[0], wrong)


def _id_mismatch(found: list[str], expected: list[str]) -> str | None:
    for i, (got, want) in enumerate(zip(found, expected)):
        if got != want:
            return f"page {i} of the range has id {got}, the index says {want}"
    return PageIds.of(expected).mismatch(found)
