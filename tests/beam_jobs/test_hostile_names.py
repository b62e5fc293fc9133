"""Ids, titles, file names and questions that look like paths: nothing is written outside a run directory."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from beam_jobs import embed, generate, index, retrieve, split
from rag_core.errors import UsageError
from tests.beam_jobs.conftest import make_tiny_encoder

NAMES = (
    "../../evil", "/tmp/evil-ragline", "..", ".", "_manifest.json", "_run.json", "part-00000.parquet",
    "a/../../../evil", "C:\\evil", "evil\x01name", "%2e%2e%2fevil", "~/evil", "$(touch evil)", "`touch evil`",
    "evil; touch evil", "<script>evil</script>", "{0.__class__}", "%s%n", "e" * 5000,
)  # fmt: skip


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return make_tiny_encoder(tmp_path_factory.mktemp("encoder"))


def test_hostile_names_through_every_job(tmp_path, encoder, monkeypatch):
    work = tmp_path / "a" / "b" / "work"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    rows = [{"id": name, "title": name, "text": f"river castle {n}"} for n, name in enumerate(NAMES)]
    Path("corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = [{"question_id": n, "question": f"river {n}?", "answers": [n]} for n in NAMES]
    Path("q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    questions = ["--questions", "q.jsonl", "--task", "custom"]
    search = [*questions, "--question-encoder", encoder, "--embeddings", "embed", "--top-k", "3"]
    read = [*questions, "--checkpoint", "mini-bart", "--retrieved", "retrieve", "--passages", "split"]
    assert split.run(["--input", "corpus.jsonl", "--input-format", "jsonl", "--output", "split"]) == 0
    assert embed.run(["--passages", "split", "--encoder", encoder, "--output", "embed"]) == 0
    assert index.run(["--embeddings", "embed", "--kind", "flat", "--output", "flat"]) == 0
    assert index.run(["--passages", "split", "--kind", "bm25", "--output", "bm25"]) == 0
    assert retrieve.run([*search, "--output", "retrieve"]) == 0
    assert retrieve.run([*questions, "--index", "bm25", "--output", "by_bm25"]) == 0
    assert generate.run([*read, "--n-docs", "2", "--max-length", "4", "--output", "generate"]) == 0

    assert pd.read_parquet("split")["passage_id"].tolist() == list(NAMES)
    assert pd.read_parquet("embed")["passage_id"].tolist() == list(NAMES)
    assert pd.read_parquet("generate")["question_id"].tolist() == list(NAMES)
    outputs = {"split", "embed", "flat", "bm25", "retrieve", "by_bm25", "generate"}
    assert {entry.name for entry in work.iterdir()} == outputs | {"corpus.jsonl", "q.jsonl"}
    assert [p for p in tmp_path.rglob("*") if "evil" in p.name] == []
    assert not os.path.exists("/tmp/evil-ragline")


def test_hostile_file_names_of_a_text_corpus(tmp_path):
    source = tmp_path / "notes"
    (source / "sub dir").mkdir(parents=True)
    names = ["..evil.txt", "sub dir/$(touch evil).md", "a;b.txt", "é\u202e.txt", "-rf.txt", "[x].txt"]
    for name in names:
        (source / name).write_text("river castle winter")
    out = tmp_path / "out"
    assert split.run(["--input", str(source), "--input-format", "text", "--output", str(out)]) == 0
    # Names that start with a dot are left out of a folder.
    assert sorted(pd.read_parquet(out)["page_id"]) == sorted(n for n in names if not n.startswith("."))
    assert {p.name for p in tmp_path.iterdir()} == {"notes", "out"}


def test_names_that_are_no_utf8(tmp_path):
    """A file whose name is bytes, and an id that JSON can spell and a file cannot hold."""
    source = os.fsencode(tmp_path / "in")
    os.mkdir(source)
    for name in (b"good.txt", b"bad\xff.txt"):
        Path(os.fsdecode(source + b"/" + name)).write_text("river castle")
    rows = '{"id": "\\ud800", "text": "river"}\n{"id": "a", "text": "castle"}\n'
    Path(os.fsdecode(source + b"/c\xff.jsonl")).write_text(rows)
    out = tmp_path / "text"
    assert split.run(["--input", str(tmp_path / "in"), "--input-format", "text", "--output", str(out)]) == 0
    assert pd.read_parquet(out)["page_id"].tolist() == ["good.txt"]
    assert '"reason": "not_utf8"' in (out / "_dead_letter/part-00000.jsonl").read_text()
    out = tmp_path / os.fsdecode(b"json\xff")
    argv = ["--input", str(tmp_path / "in/*.jsonl"), "--input-format", "jsonl", "--output", str(out)]
    assert split.run(argv) == 0
    manifest = json.loads((out / "_manifest.json").read_text())
    assert manifest["counts"]["dead_lettered"] == {"no_id": 1} and manifest["rows"] == 1
    assert manifest["inputs"]["files"][0][0] == "c\udcff.jsonl"


def test_an_input_is_never_overwritten(tmp_path):
    """Of an overwritten run the files are deleted before anything is read."""
    out = tmp_path / "passages"
    (tmp_path / "c.jsonl").write_text('{"id": "a", "text": "river castle"}\n')
    assert (
        split.run(["--input", str(tmp_path / "c.jsonl"), "--input-format", "jsonl", "--output", str(out)])
        == 0
    )
    before = sorted(p.name for p in out.iterdir())
    for source in (f"{out}/*.parquet", f"{out}/part-00000.parquet", f"{tmp_path}/*/*.parquet", f"{out}//"):
        argv = ["--input", source, "--input-format", "parquet", "--output", f"{out}/", "--overwrite"]
        with pytest.raises(UsageError, match="/passages: also --input; name a new directory"):
            split.run(argv)
    assert sorted(p.name for p in out.iterdir()) == before


def test_slashes_at_the_end_of_an_output_change_nothing(tmp_path):
    (tmp_path / "c.jsonl").write_text("".join(f'{{"id": "{i}", "text": "river castle"}}\n' for i in range(3)))
    (tmp_path / "d.jsonl").write_text('{"id": "x", "text": "river castle"}\n')
    argv = ["--input-format", "jsonl", "--output", f"{tmp_path}/out//"]
    assert split.run(["--input", f"{tmp_path}/*.jsonl", *argv]) == 0
    assert split.run(["--input", f"{tmp_path}/c.jsonl", *argv, "--overwrite"]) == 0
    assert len(pd.read_parquet(tmp_path / "out")) == 3
