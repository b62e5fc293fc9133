"""What a part of a multistream dump carries of its index: a number and a digest, whatever the pages."""

from __future__ import annotations

import bz2
import json

import pytest

from beam_jobs.split import dump_ranges
from rag_core import files
from rag_core.wiki import DumpError, PageIds, read_pages

HEAD = b'<mediawiki xml:lang="en"><siteinfo><sitename>S</sitename></siteinfo>'


def stream(ids) -> bytes:
    page = (
        "<page><title>T{0}</title><ns>0</ns><id>{0}</id><revision><id>1</id><text>x</text></revision></page>"
    )
    return bz2.compress("".join(page.format(i) for i in ids).encode())


@pytest.fixture
def dump(tmp_path):
    """A dump of 3 streams of 400 pages, and its index."""
    pieces = [bz2.compress(HEAD), *(stream(range(s * 400 + 1, s * 400 + 401)) for s in range(3))]
    path = tmp_path / "xwiki-pages-articles-multistream.xml.bz2"
    path.write_bytes(b"".join(pieces) + bz2.compress(b"</mediawiki>"))
    starts = [sum(map(len, pieces[: s + 1])) for s in range(3)]
    lines = [f"{starts[s]}:{i}:T{i}\n" for s in range(3) for i in range(s * 400 + 1, s * 400 + 401)]
    index = tmp_path / "xwiki-pages-articles-multistream-index.txt.bz2"
    index.write_bytes(bz2.compress("".join(lines).encode()))
    return str(path)


def test_a_part_does_not_grow_with_its_pages(dump):
    (part,) = dump_ranges(files.info(dump))
    assert part["pages"] == 1200 and len(json.dumps(part)) < 150
    promised = PageIds(part["pages"], part["ids"])
    assert len(list(read_pages(dump, byte_range=tuple(part["range"]), expected_ids=promised))) == 1200


@pytest.mark.parametrize(
    "ids, complaint",
    [
        (range(1, 1200), "the range holds 1200 pages, the index says 1199"),
        (
            [*range(1, 1200), 9999],
            "the 1200 pages of the range (1 to 1200) have other ids",
        ),
        ([2, 1, *range(3, 1201)], "other ids than the index says"),
    ],
)
def test_other_pages_than_the_index_says(dump, ids, complaint):
    (part,) = dump_ranges(files.info(dump))
    promised = PageIds.of([str(i) for i in ids])
    with pytest.raises(DumpError) as caught:
        list(read_pages(dump, byte_range=tuple(part["range"]), expected_ids=promised))
    assert complaint in str(caught.value)


def test_no_pages():
    assert PageIds.of([]).mismatch([]) is None
    assert PageIds.of(["1"]).mismatch([]) == "the range holds 0 pages, the index says 1"
