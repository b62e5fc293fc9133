"""Ids, titles, file names and questions that look like paths: nothing is written outside a run directory."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from beam_jobs import embed, generate, index, retrieve, split
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
