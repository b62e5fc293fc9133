"""A few hundred bytes that unpack to gigabytes: one clear error, and memory that stays where it was."""

from __future__ import annotations

import bz2
import gzip
import io
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from rag_core import corpora
from rag_core.corpora import read_jsonl, read_tsv
from rag_core.datasets import load_questions
from rag_core.errors import DataError, UsageError
from rag_core.given_contexts import given_contexts
from rag_core.parts import PartLog
from rag_core.training.config import load_file
from rag_core.wiki import DumpError, read_articles, read_pages
from rag_core.wiki.export_xml import MAX_CHARACTERS
from rag_core.wiki.streams import PIECE_BYTES, _pieces

ROOT = Path(__file__).resolve().parents[2]
HEAD = b'<mediawiki xml:lang="en"><siteinfo><sitename>S</sitename></siteinfo>'


def page(number: int, text: bytes) -> bytes:
    start = f"<page><title>T{number}</title><ns>0</ns><id>{number}</id><revision><id>1</id><text>"
    return start.encode() + text + b"</text></revision></page>"


def bomb(path: Path, before: bytes, unit: bytes, times: int, after: bytes) -> str:
    """`before`, a long run of `unit`, `after`; bzip2, or gzip by the name."""
    packer = zlib.compressobj(wbits=31) if path.suffix == ".gz" else bz2.BZ2Compressor()
    with open(path, "wb") as stream:
        stream.write(packer.compress(before))
        for _ in range(times):
            stream.write(packer.compress(unit * (1 << 20)))
        stream.write(packer.compress(after) + packer.flush())
    return str(path)


@pytest.mark.parametrize("ending", [".bz2", ".gz"])
def test_a_page_of_one_letter_is_a_bad_page_and_its_neighbours_stay(tmp_path, ending):
    before, after = HEAD + page(1, b"one") + page(2, b"").partition(b"</text>")[0], page(3, b"three")
    after = b"</text></revision></page>" + after + b"</mediawiki>"
    path = bomb(tmp_path / f"b.xml{ending}", before, b"a", 24, after)
    bad = []
    articles = read_articles(path, on_bad_page=lambda page, reason: bad.append((page.page_id, reason)))
    assert [a.page_id for a in articles] == ["1", "3"]
    assert bad == [("2", f"<text> is longer than {MAX_CHARACTERS:,} characters")]
    with pytest.raises(DumpError, match="is longer than 16,777,216 characters"):
        list(read_articles(path))


def test_a_tag_without_an_end_is_refused(tmp_path):
    path = bomb(tmp_path / "b.xml.bz2", HEAD + b'<page x="', b"a", 40, b'"></page></mediawiki>')
    with pytest.raises(DumpError, match="a tag longer than 16,777,216 bytes"):
        list(read_pages(path))


def test_a_header_of_a_multistream_file_is_bounded(tmp_path):
    path = bomb(tmp_path / "b.xml.bz2", HEAD, b" ", 40, b"")
    with pytest.raises(DumpError, match="the header, is above 16,777,216 bytes"):
        list(read_pages(path, byte_range=(0, 100)))


@pytest.mark.parametrize("reader, ending", [(read_tsv, "tsv.bz2"), (read_jsonl, "jsonl.gz")])
def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch, reader, ending):
    monkeypatch.setattr(corpora, "MAX_LINE_BYTES", 1 << 20)
    path = bomb(tmp_path / f"b.{ending}", b"", b"a", 3, b"\n")
    with pytest.raises(DataError, match=rf"b\.{ending}:1: a line of more than 1,048,576 bytes"):
        list(reader(path, PartLog()))


def test_a_line_just_short_of_the_limit_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "MAX_LINE_BYTES", 64)
    (tmp_path / "c.tsv").write_text("1\t" + "a" * 58 + "\tb\n")  # 63 bytes
    assert [p.passage_id for p in read_tsv(str(tmp_path / "c.tsv"), PartLog())] == ["1"]


@pytest.mark.parametrize("packed", [bz2.compress, gzip.compress])
def test_pieces_are_small_and_whole(packed):
    data = bytes(range(256)) * 20_000
    new = bz2.BZ2Decompressor if packed is bz2.compress else lambda: zlib.decompressobj(31)
    pieces = list(_pieces(new(), packed(data)))
    assert b"".join(pieces) == data and max(map(len, pieces)) <= PIECE_BYTES < len(data)


def test_memory_stays_where_it_was(tmp_path):
    """A range of bzip2, read by Python's own decoder: 120 MB of one letter from a few hundred bytes."""
    before, after = HEAD + page(1, b"").partition(b"</text>")[0], b"</text></revision></page></mediawiki>"
    path = bomb(tmp_path / "b.xml.bz2", before, b"a", 120, after)
    code = (
        "import sys; from rag_core.wiki import read_articles\n"
        "try:\n    list(read_articles(open(sys.argv[1], 'rb')))\n"
        "except ValueError as error:\n    print(error)\n"
        # (not ru_maxrss: that one remembers the process which started this one)
        "print(next(int(l.split()[1]) // 1024 for l in open('/proc/self/status') if l.startswith('VmHWM')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    complaint, megabytes = done.stdout.splitlines()
    assert "is longer than" in complaint and int(megabytes) < 250, done.stdout


def test_short_reads_of_a_stream_that_gives_little_at_a_time():
    class Slow(io.BytesIO):
        def read(self, n=-1):
            return super().read(min(n, 7) if n and n > 0 else n)

    whole = HEAD + page(1, b"words here") + b"</mediawiki>"
    for data in (whole, bz2.compress(whole), gzip.compress(whole)):
        assert [p.wikitext for p in read_pages(Slow(data))] == ["words here"]


DEEP = "[" * 100_000
CONFIGS = [("c.toml", "steps = " + DEEP), ("c.json", DEEP), ("c.toml", "steps = " + "9" * 100_000)]


@pytest.mark.parametrize("name, text", CONFIGS)
def test_a_config_nested_without_end_is_one_complaint(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises((UsageError, DataError), match=rf"{name}: not valid (TOML|JSON)"):
        load_file(str(tmp_path / name))


@pytest.mark.parametrize(
    "text", [DEEP, '{"question": ' + DEEP, '{"question": "a"}\n' + DEEP, '{"a":' * 100_000]
)
def test_questions_nested_without_end_are_bad_data(tmp_path, text):
    path = tmp_path / "q.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=r"q\.jsonl"):
        load_questions(str(path), "custom", require_answers=False)
    path.write_text('{"question": "a"}\n')
    assert load_questions(str(path), "custom", require_answers=False).questions
    path.write_text('{"question": "a", "ctxs": ' + DEEP)
    with pytest.raises(DataError, match=r"q\.jsonl"):
        given_contexts(str(path), "custom")
