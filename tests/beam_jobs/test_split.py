"""The split job against the library without Beam."""

from __future__ import annotations

import bz2
import json

import pandas as pd
import pytest

from beam_jobs import split
from rag_core.errors import DataError, UsageError
from rag_core.passages import split_words
from rag_core.run_dir import NoManifestError, read_manifest
from rag_core.schemas import PASSAGES, content_hash
from rag_core.stages import part_urls, read_table
from rag_core.wiki import read_articles

PAGE = """<page><title>{title}</title><ns>{ns}</ns><id>{id}</id>{redirect}<revision><id>1</id>
<text xml:space="preserve">{text}</text></revision></page>"""


def dump(*pages: str) -> str:
    header = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">'
    return header + "".join(pages) + "</mediawiki>"


def page(id, title, text, ns=0, redirect=""):
    redirect = f'<redirect title="{redirect}" />' if redirect else ""
    return PAGE.format(id=id, title=title, text=text, ns=ns, redirect=redirect)


SMALL = dump(
    page(7, "Alder", "'''Alder''' is a [[tree]]. " + "It grows by rivers and lakes. " * 30),
    page(8, "Alders", "#REDIRECT [[Alder]]", redirect="Alder"),
    page(9, "Talk:Alder", "chat", ns=1),
    page(10, "Birch (disambiguation)", "'''Birch''' may refer to:\n* [[Birch tree]]\n{{disambiguation}}"),
    page(11, "Cedar", "Cedar is a tree &amp; a wood."),
)


def test_a_dump_against_the_plain_functions(tmp_path):
    path = tmp_path / "small.xml.bz2"
    path.write_bytes(bz2.compress(SMALL.encode()))
    out = str(tmp_path / "passages")
    assert split.run(["--input", str(path), "--output", out]) == 0
    expected = [
        (f"{a.page_id}:{i}", a.page_id, a.title, text)
        for a in read_articles(str(path))
        for i, text in enumerate(split_words(a.title, a.text))
    ]
    table = read_table(out)
    assert table.schema.equals(PASSAGES)
    rows = table.to_pylist()
    assert [(r["passage_id"], r["page_id"], r["title"], r["text"]) for r in rows] == expected
    assert [r["n_words"] for r in rows] == [100, 84, 7]
    assert all(r["content_hash"] == content_hash(r["title"], r["text"]) for r in rows)
    counts = read_manifest(out)["counts"]
    assert counts == {
        "read": 5,
        "written": 2,
        "skipped": {"redirect": 1, "namespace": 1, "disambiguation": 1},
        "dead_lettered": {},
    }


def test_filters_and_mode_are_options(tmp_path):
    path = tmp_path / "small.xml"
    path.write_text(SMALL)
    out = str(tmp_path / "p")
    argv = ["--input", str(path), "--output", out, "--mode", "dpr", "--words", "10", "--keep-disambiguation"]
    assert split.run([*argv, "--namespaces", "0", "1", "--min-words", "1"]) == 0
    rows = read_table(out).to_pylist()
    assert {r["title"] for r in rows} >= {"Alder", "Talk:Alder", "Cedar"}
    assert all(len(r["text"].split()) == 10 for r in rows)
    assert next(r["text"] for r in rows if r["page_id"] == "11").startswith("Cedar Cedar is a tree & a wood.")


def test_rows_of_a_custom_corpus_are_kept_whole(tmp_path):
    path = tmp_path / "c.jsonl"
    long_text = "word " * 250
    rows = [{"id": "a/1", "title": "T", "text": long_text}, {"id": "b", "text": "x"}, {"text": "no id"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    out = str(tmp_path / "p")
    assert split.run(["--input", str(path), "--input-format", "jsonl", "--output", out]) == 0
    table = read_table(out)
    assert table["passage_id"].to_pylist() == ["a/1", "b"]
    assert table["text"].to_pylist() == [long_text, "x"] and table["page_id"].to_pylist() == [None, None]
    assert read_manifest(out)["counts"]["dead_lettered"] == {"no_id": 1}


def test_a_folder_of_text(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "My_note.md").write_text("one two three")
    (tmp_path / "in" / "b.txt").write_text("")
    (tmp_path / "in" / "c.pdf").write_bytes(b"%PDF")
    out = str(tmp_path / "p")
    argv = ["--input", str(tmp_path / "in"), "--input-format", "text", "--words", "2", "--output", out]
    assert split.run(argv) == 0
    rows = [(r["passage_id"], r["title"], r["text"]) for r in read_table(out).to_pylist()]
    assert rows == [("My_note.md:0", "My note", "one two"), ("My_note.md:1", "My note", "three")]
    assert read_manifest(out)["counts"]["skipped"] == {"short": 1}


def test_part_i_of_the_input_is_part_i_of_the_output(tmp_path):
    for name in ("b", "a"):
        (tmp_path / f"{name}.tsv").write_text(f"{name}1\ttext\t{name}\n")
    out = str(tmp_path / "p")
    assert split.run(["--input", str(tmp_path / "*.tsv"), "--input-format", "tsv", "--output", out]) == 0
    assert [pd.read_parquet(url).title.tolist() for url in part_urls(out)] == [["a"], ["b"]]


@pytest.mark.parametrize(
    "content, error",
    [
        (SMALL.removesuffix("</mediawiki>"), "mediawiki"),
        (SMALL.replace("<mediawiki", '<!DOCTYPE x [<!ENTITY a "b">]><mediawiki', 1), "DOCTYPE"),
        (SMALL[:400], r"bad\.xml"),
        ("", "empty file"),
    ],
)
def test_a_broken_dump_is_one_clear_error_and_no_manifest(tmp_path, content, error):
    path = tmp_path / "bad.xml"
    path.write_text(content)
    with pytest.raises(DataError, match=error):
        split.run(["--input", str(path), "--output", str(tmp_path / "p")])
    with pytest.raises((NoManifestError, FileNotFoundError)):
        read_manifest(str(tmp_path / "p"))


def test_a_copy_among_the_inputs_is_a_warning(tmp_path):
    for name in ("a.xml", "b.xml"):
        (tmp_path / name).write_text(SMALL)
    with pytest.warns(UserWarning, match=r"b\.xml is a copy of .*a\.xml"):
        assert split.run(["--input", str(tmp_path / "*.xml"), "--output", str(tmp_path / "out")]) == 0


def test_the_output_is_checked_before_the_input(tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UsageError, match="not empty"):
        split.run(["--input", "nosuch", "--output", str(tmp_path), "--overwrite"])
    with pytest.raises(UsageError, match="--input nosuch: no file matches"):
        split.run(["--input", "nosuch", "--output", str(tmp_path / "new")])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.txt"]


def test_a_dry_run_touches_nothing(tmp_path, capsys):
    path = tmp_path / "small.xml"
    path.write_text(SMALL)
    assert split.run(["--input", str(path), "--output", str(tmp_path / "p"), "--dry_run=True"]) == 0
    assert "dry run of split: 1 parts" in capsys.readouterr().out
    assert not (tmp_path / "p").exists()


def test_the_multistream_wiki_is_cut_by_its_index(shared_data, tmp_path, monkeypatch):
    monkeypatch.setattr(split, "BYTES_PER_RANGE", 1 << 17)
    source = str(shared_data / "wikipedia" / "smallwiki-pages-articles-multistream.xml.bz2")
    whole, cut = str(tmp_path / "whole"), str(tmp_path / "cut")
    assert split.run(["--input", source, "--output", cut]) == 0
    monkeypatch.setattr(split, "BYTES_PER_RANGE", 1 << 40)
    assert split.run(["--input", source, "--output", whole]) == 0
    assert len(read_manifest(cut)["parts"]) > 4 and len(read_manifest(whole)["parts"]) == 1
    assert read_table(cut).equals(read_table(whole))
    assert read_manifest(cut)["counts"] == read_manifest(whole)["counts"]
    assert read_manifest(cut)["counts"]["read"] == 2004


def test_the_real_english_pages(shared_data, tmp_path):
    source = str(
        shared_data / "wikipedia" / "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
    )
    out = str(tmp_path / "p")
    assert split.run(["--input", source, "--output", out, "--keep-disambiguation", "--keep-lists"]) == 0
    manifest = read_manifest(out)
    counts = manifest["counts"]
    assert counts["read"] == 206 and counts["skipped"].get("redirect") in (99, 100)
    assert counts["read"] == counts["written"] + sum(counts["skipped"].values()) + sum(
        counts["dead_lettered"].values()
    )
    frame = pd.read_parquet(out)
    assert len(frame) == manifest["rows"] and frame.passage_id.is_unique
    assert frame.n_words.max() == 100 and (frame.n_words > 0).all()
