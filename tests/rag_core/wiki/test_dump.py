"""Reading dumps: every packing, every kind of damage."""

import bz2
import gzip
import io
import random
import subprocess
import sys

import pytest

from rag_core import files
from rag_core.wiki import DumpError, Page, index_name, merge_ranges, read_index, read_pages
from rag_core.wiki.multistream import StreamRange

HEADER = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en"><siteinfo>'
    '<namespaces><namespace key="0"/><namespace key="6">File</namespace></namespaces></siteinfo>'
)
FOOTER = "</mediawiki>"


def page(n, text="Words.", extra=""):
    return (
        f"<page><title>T{n}</title><ns>0</ns><id>{n}</id>{extra}<revision><id>9</id>"
        f"<contributor><username>U</username><id>8</id></contributor><text>{text}</text></revision></page>"
    )


def dump(*pages):
    return (HEADER + "".join(pages) + FOOTER).encode()


def multistream(*groups):
    """Streams as in a real multistream file: header, groups of pages, footer; and where each begins."""
    streams = [bz2.compress(part.encode()) for part in (HEADER, *groups, FOOTER)]
    starts = [sum(map(len, streams[:i])) for i in range(len(streams))]
    return b"".join(streams), starts


def ids(data, **options):
    return [p.page_id for p in read_pages(io.BytesIO(data), **options)]


def read_until_error(data):
    """The ids read before the error, and the error."""
    found = []
    with pytest.raises(DumpError) as caught:
        for p in read_pages(io.BytesIO(data)):
            found.append(p.page_id)
    return found, caught.value


@pytest.mark.parametrize("pack", [bytes, bz2.compress, gzip.compress], ids=["plain", "bz2", "gzip"])
def test_packings(pack, tmp_path):
    data = pack(dump(page(1), page(2)))
    assert ids(data) == ["1", "2"]
    path = tmp_path / "dump"
    path.write_bytes(data)
    assert [p.page_id for p in read_pages(path)] == [p.page_id for p in read_pages(str(path))] == ["1", "2"]


def test_a_url_is_opened_by_its_backend(monkeypatch):
    class Store:
        def open_input(self, url):
            assert url == "mem://bucket/dump.xml.bz2"
            return io.BytesIO(bz2.compress(dump(page(1))))

    monkeypatch.setitem(files._backends, "mem", Store())
    assert [p.page_id for p in read_pages("mem://bucket/dump.xml.bz2")] == ["1"]


def test_all_fields():
    data = dump(page(1, "a &amp;amp; b", '<redirect title="Oak" />'))
    assert list(read_pages(io.BytesIO(data))) == [Page("1", 0, "T1", "Oak", "a &amp; b")]


def test_every_stream_of_a_concatenated_file_is_read():
    first, second = HEADER + page(1), page(2) + FOOTER
    assert ids(bz2.compress(first.encode()) + bz2.compress(second.encode())) == ["1", "2"]
    assert ids(gzip.compress(first.encode()) + gzip.compress(second.encode())) == ["1", "2"]
    assert ids(multistream(page(1) + page(2), page(3) + page(4))[0]) == ["1", "2", "3", "4"]


def test_ids_of_revisions_and_contributors_are_not_the_page_s():
    assert ids(dump(page(7))) == ["7"]


def test_unknown_elements_are_passed_over():
    extra = "<restrictions>x</restrictions><discussionthreadinginfo><id>5</id></discussionthreadinginfo>"
    assert ids(dump(page(1, extra=extra))) == ["1"]
    assert ids(dump(page(1).replace("<text>", "<origin>3</origin><text>"))) == ["1"]


def test_empty_and_deleted_text_is_empty_and_does_not_leak_into_the_next_page():
    empty = page(1).replace("<text>Words.</text>", '<text bytes="0" />')
    deleted = page(2).replace("<text>Words.</text>", '<text deleted="deleted" />')
    texts = [p.wikitext for p in read_pages(io.BytesIO(dump(empty, deleted, page(3, "C"))))]
    assert texts == ["", "", "C"]


def test_the_newest_revision_of_a_history_counts():
    old = "<revision><id>1</id><text>old</text></revision>"
    new = "<revision><id>2</id><text>new</text></revision>"
    data = dump(f"<page><title>T</title><ns>0</ns><id>1</id>{old}{new}</page>")
    assert [p.wikitext for p in read_pages(io.BytesIO(data))] == ["new"]


def test_utf16():
    xml = '<?xml version="1.0" encoding="UTF-16"?>' + HEADER + page(1, "Стена") + FOOTER
    assert [p.wikitext for p in read_pages(io.BytesIO(bz2.compress(xml.encode("utf-16"))))] == ["Стена"]


def test_real_utf16_dump(shared_data):
    path = shared_data / "wikipedia" / "bgwiki-latest-pages-articles-shortened.xml.bz2"
    assert [p.title for p in read_pages(path)][0] == "Григориански календар"


@pytest.mark.parametrize("pack", [bz2.compress, gzip.compress])
def test_truncated_stream(pack):
    whole, cut = pack((HEADER + page(1)).encode()), pack((page(2) + FOOTER).encode())[:-10]
    found, error = read_until_error(whole + cut)
    assert found[0] == "1"
    assert error.offset == len(whole + cut)
    assert "cut off" in error.reason


def test_cut_between_streams_is_told_by_the_missing_end_tag():
    data, starts = multistream(page(1), page(2))
    found, error = read_until_error(data[: starts[2]])
    assert found == ["1"]
    assert "without </mediawiki>" in error.reason


def test_flipped_bits_are_never_silent():
    text = " ".join(random.Random(0).choices("oak elm ash fir beech".split(), k=20_000))
    data = bytearray(bz2.compress(dump(page(1, text), page(2, text))))
    for position in random.Random(1).sample(range(4, len(data)), 40):
        data[position] ^= 1 << position % 8
        read_until_error(bytes(data))
        data[position] ^= 1 << position % 8


def test_damage_in_a_large_file_yields_what_precedes_it(shared_data, tmp_path):
    source = next((shared_data / "wikipedia").glob("enwiki-latest-pages-articles1*.bz2"))
    data = bytearray(source.read_bytes())
    data[len(data) // 2] ^= 4
    path = tmp_path / "flipped.bz2"
    path.write_bytes(data)
    found = []
    with pytest.raises(DumpError, match=r"flipped\.bz2: byte \d+: damaged bzip2 data"):
        for p in read_pages(path):
            found.append(p.page_id)
    assert found == [p.page_id for p, _ in zip(read_pages(source), found)]
    assert len(found) > 50


def test_doctype_is_refused_with_its_place():
    data = b'<!DOCTYPE m [<!ENTITY f SYSTEM "file:///etc/hostname">]>' + dump(page(1, "[&f;]"))
    found, error = read_until_error(data)
    assert found == [] and "DOCTYPE is refused" in error.reason


@pytest.mark.parametrize("encoding", ["no-such", "GB2312", "rot13"])
def test_an_encoding_that_cannot_be_read(encoding):
    data = f'<?xml version="1.0" encoding="{encoding}"?>'.encode() + dump(page(1))
    with pytest.raises(DumpError, match=r"byte \d+: in the XML"):
        list(read_pages(io.BytesIO(data)))


def test_the_text_of_a_page_is_its_revision_s():
    upload = "<upload><text>File note.</text></upload>"
    whole = page(1).replace("</page>", upload + "</page>")
    assert [p.wikitext for p in read_pages(io.BytesIO(dump(whole)))] == ["Words."]


def test_malformed_xml_names_page_and_byte():
    data = dump(page(1), page(2, "A \x0b tree."))
    found, error = read_until_error(data)
    assert found == ["1"]
    assert data[error.offset] == 0x0B
    assert "'T2', id 2" in error.reason


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"<html></html>", b"7z\xbc\xaf\x27\x1c", b"\x28\xb5\x2f\xfd."]
)
def test_what_is_no_dump(data):
    read_until_error(data)


def test_garbage_after_a_complete_dump_is_a_warning(tmp_path):
    whole = dump(page(1))
    for data in (bz2.compress(whole) + b"garbage", gzip.compress(whole) + b"garbage", whole + b"garbage"):
        with pytest.warns(UserWarning, match="ignored what follows"):
            assert ids(data) == ["1"]


def test_a_second_dump_in_the_file_is_not_passed_over():
    for pack in (bytes, bz2.compress, gzip.compress):
        found, error = read_until_error(pack(dump(page(1))) + pack(dump(page(2))))
        assert found == ["1"] and "another document starts" in error.reason
        assert error.offset == len(dump(page(1)))


def test_garbage_between_streams_is_an_error():
    data, starts = multistream(page(1), page(2))
    found, error = read_until_error(data[: starts[2]] + b"garbage" + data[starts[2] :])
    assert found == ["1"] and error.offset == starts[2]


def test_bad_pages_are_handed_over_and_the_rest_goes_on():
    no_id = page(2).replace("<id>2</id>", "", 1)
    no_title = page(3).replace("<title>T3</title>", "<title> </title>")
    odd_namespace = page(4).replace("<ns>0</ns>", "<ns>x</ns>")
    bad = []
    data = dump(page(1), no_id, no_title, odd_namespace, page(5))
    assert ids(data, on_bad_page=lambda p, reason: bad.append((p.title, reason))) == ["1", "5"]
    assert bad == [
        ("T2", "<id> should be a whole number, got ''"),
        (" ", "<title> is missing or empty"),
        ("T4", "<ns> should be a whole number, got 'x'"),
    ]
    with pytest.raises(DumpError, match="page 'T2', id ''"):
        ids(data)


class TestMultistream:
    @pytest.fixture
    def files(self, tmp_path):
        data, starts = multistream(page(1) + page(2), page(3) + page(4))
        dump_path = tmp_path / "wiki-pages-articles-multistream.xml.bz2"
        dump_path.write_bytes(data)
        lines = f"{starts[1]}:1:T1\n{starts[1]}:2:T:2\n{starts[2]}:3:T3\n{starts[2]}:4:T4\n"
        index = tmp_path / "wiki-pages-articles-multistream-index.txt.bz2"
        index.write_bytes(bz2.compress(lines.encode()))
        return str(index), str(dump_path), starts, len(data)

    def test_index_name(self, files):
        assert index_name(files[1]) == files[0]
        assert index_name("enwiki-pages-articles.xml.bz2") is None

    def test_ranges_cover_all_pages(self, files):
        index, dump_path, starts, size = files
        ranges = read_index(index, dump_path)
        assert ranges == [
            StreamRange(starts[1], starts[2], ("1", "2")),
            StreamRange(starts[2], size, ("3", "4")),
        ]
        for r in ranges:
            pages = read_pages(dump_path, byte_range=(r.start, r.end), expected_ids=r.page_ids)
            assert tuple(p.page_id for p in pages) == r.page_ids

    def test_merged_ranges(self, files):
        index, dump_path, starts, size = files
        ranges = read_index(index, dump_path)
        assert merge_ranges(ranges, 10**6) == [StreamRange(starts[1], size, ("1", "2", "3", "4"))]
        assert merge_ranges(ranges, 1) == ranges

    def test_other_ids_than_the_index_says(self, files):
        index, dump_path, starts, _ = files
        with pytest.raises(DumpError, match="page 1 of the range has id 2, the index says 5"):
            list(read_pages(dump_path, byte_range=(starts[1], starts[2]), expected_ids=["1", "5"]))
        with pytest.raises(DumpError, match="holds 2 pages, the index says 3"):
            list(read_pages(dump_path, byte_range=(starts[1], starts[2]), expected_ids=["1", "2", "3"]))

    def test_the_last_range_must_hold_the_end_of_the_dump(self, files):
        index, dump_path, starts, size = files
        with open(dump_path, "rb") as source:
            cut = source.read()[: starts[3]]
        with pytest.raises(DumpError, match="without </mediawiki>"):
            list(read_pages(io.BytesIO(cut), byte_range=(starts[2], starts[3])))

    def test_a_range_that_starts_nowhere(self, files):
        _, dump_path, starts, size = files
        for start in (starts[1] + 1, size + 5):
            with pytest.raises(DumpError, match=f"byte {start}: the range"):
                list(read_pages(dump_path, byte_range=(start, size + 9)))

    def test_bad_index_lines(self, files, tmp_path):
        _, dump_path, _, _ = files
        index = tmp_path / "index.txt"
        for line in (b"x:1:T\n", b"10\n", b"999999:1:T\n", b"90:1:T\n50:2:T\n"):
            index.write_bytes(line)
            with pytest.raises(DumpError):
                read_index(str(index), dump_path)

    def test_an_index_that_leaves_out_the_first_pages(self, files, tmp_path):
        _, dump_path, starts, _ = files
        index = tmp_path / "index.txt"
        index.write_bytes(f"{starts[2]}:3:T3\n{starts[2]}:4:T4\n".encode())
        with pytest.raises(DumpError, match=f"page 1 of .* lies before its first offset, {starts[2]}"):
            read_index(str(index), dump_path)

    def test_a_whole_real_wiki(self, shared_data):
        path = str(shared_data / "wikipedia" / "smallwiki-pages-articles-multistream.xml.bz2")
        ranges = read_index(index_name(path), path)
        by_range = [
            p for r in ranges for p in read_pages(path, byte_range=(r.start, r.end), expected_ids=r.page_ids)
        ]
        assert by_range == list(read_pages(path))
        assert len(by_range) == 2004


def test_an_abandoned_iterator_does_not_abort_the_process(shared_data):
    source = next((shared_data / "wikipedia").glob("enwiki-latest-pages-articles1*.bz2"))
    program = "import sys; from rag_core.wiki import read_pages; pages = read_pages(sys.argv[1]); next(pages)"
    done = subprocess.run([sys.executable, "-c", program, source], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
