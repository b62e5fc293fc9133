"""The embed job under passages, encoders and earlier runs that are not as they should be."""

from __future__ import annotations

import json
import shutil
import threading

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from beam_jobs import embed, index, split
from beam_jobs.transforms import embed_passages as transform
from beam_jobs.transforms.embed_passages import as_stored, embed_passages, reused_and_computed
from beam_jobs.transforms.parts import PartFn
from beam_jobs.transforms.progress import Progress
from rag_core import files, parts, read_embeddings
from rag_core.encoders import load_encoder
from rag_core.encoders.text_encoder import EncodedCounts
from rag_core.errors import DataError, UsageError
from rag_core.parts import Part
from rag_core.reuse import OldVectors
from rag_core.run_dir import read_manifest
from rag_core.schemas import Passage, embeddings_schema
from rag_core.stages import read_table


def corpus(tmp_path, rows, name="p"):
    """A passages run of rows (id, title, text), written as JSON lines."""
    path = tmp_path / f"{name}.jsonl"
    path.write_text("".join(json.dumps({"id": i, "title": t, "text": x}) + "\n" for i, t, x in rows))
    argv = ["--input", str(path), "--input-format", "jsonl", "--output", str(tmp_path / name)]
    assert split.run(argv) == 0
    return str(tmp_path / name)


def run(passages, encoder, output, *more):
    return embed.run(["--passages", passages, "--encoder", encoder, "--output", str(output), *more])


def with_weights(encoder_dir, path, change):
    """A copy of an encoder whose BertModel went through `change`."""
    encoder = load_encoder(encoder_dir)
    with torch.no_grad():
        change(encoder.module)
    encoder.save_pretrained(path)
    return str(path)


# -- passages ----------------------------------------------------------------------------------

HOSTILE = [
    ("ten thousand words", "Title", "river bridge " * 5000),
    ("both long", "castle " * 5000, "river " * 5000),
    ("scripts", "東京", "η λίμνη البحيرة उत्तर 👩‍👩‍👧"),
    ("controls", "a\x00b", "river \x01\x02\x1f\x7f\x85\u2028 bridge"),
    ("surrogate", "lone \ud800", "river \udfff"),
    ("no title", "", "painter"),
    ("quote", '"', '"An unbalanced quote opens, river'),
    *((word, word, word) for word in ("NA", "null", "nan", "None", "-", "0")),
]


def test_hostile_passages_are_rows_like_any_other(tiny_encoder, tmp_path):
    passages = corpus(tmp_path, HOSTILE)
    assert run(passages, tiny_encoder, tmp_path / "e") == 0
    manifest = read_manifest(str(tmp_path / "e"))
    table = read_table(passages)
    ids, vectors_ND = read_embeddings(str(tmp_path / "e"))
    assert ids == table["passage_id"].to_pylist()
    assert {"ten thousand words", "NA", "null", "nan", "None", "quote", "no title"} <= set(ids)
    assert np.isfinite(vectors_ND).all() and vectors_ND.any(axis=1).all()
    counts = manifest["counts"]
    assert counts["read"] == counts["written"] == len(ids) and counts["truncated"] == 2
    encoder = load_encoder(tiny_encoder)
    rows = zip(table["title"].to_pylist(), table["text"].to_pylist(), vectors_ND)
    for title, text, vector in rows:
        assert np.abs(encoder.encode_passages([title], [text])[0] - vector).max() <= 1e-5


def test_equal_ids_and_equal_texts_keep_their_rows(tiny_encoder, tmp_path):
    """Within a part split rejects a repeated id; between two files it may stand twice."""
    for n, text in enumerate(("river", "bridge", "river")):
        (tmp_path / f"{n}.tsv").write_text(f"same\t{text}\tT\nother{n}\t{text}\tT\n")
    passages = str(tmp_path / "p")
    argv = ["--input", str(tmp_path / "*.tsv"), "--input-format", "tsv", "--output", passages]
    assert split.run(argv) == 0
    kept = read_table(passages)
    assert kept["passage_id"].to_pylist().count("same") == 3
    assert run(passages, tiny_encoder, tmp_path / "e") == 0
    ids, vectors_ND = read_embeddings(str(tmp_path / "e"))
    assert ids == kept["passage_id"].to_pylist()
    by_text = {}
    for text, vector in zip(kept["text"].to_pylist(), vectors_ND):
        np.testing.assert_allclose(by_text.setdefault(text, vector), vector, atol=1e-6)
    assert len(by_text) == 2


def test_row_groups_of_one_row(tiny_encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "ROWS_PER_GROUP", 1)
    passages = corpus(tmp_path, [(str(i), "T", f"river {i}") for i in range(5)])
    assert run(passages, tiny_encoder, tmp_path / "one") == 0
    monkeypatch.undo()
    whole = corpus(tmp_path, [(str(i), "T", f"river {i}") for i in range(5)], "whole")
    assert run(whole, tiny_encoder, tmp_path / "all", "--reuse", str(tmp_path / "one")) == 0
    assert len(read_manifest(str(tmp_path / "one"))["parts"]) == 5
    for left, right in zip(read_embeddings(str(tmp_path / "one")), read_embeddings(str(tmp_path / "all"))):
        assert np.array_equal(left, right)
    assert read_manifest(str(tmp_path / "all"))["counts"]["reused"] == 5


def test_parts_without_rows_open_with_the_others_everywhere(tiny_encoder, tmp_path, monkeypatch):
    """A model that fails on all of the first part: the part is there, empty, and has the run's types."""
    monkeypatch.setattr(parts, "ROWS_PER_GROUP", 2)
    passages = corpus(tmp_path, [(str(i), "T", "river" if i < 2 else "castle") for i in range(5)])
    river = load_encoder(tiny_encoder).tokenizer.convert_tokens_to_ids("river")
    bad = with_weights(
        tiny_encoder,
        tmp_path / "bad",
        lambda m: m.embeddings.word_embeddings.weight[river].fill_(float("nan")),
    )
    out = str(tmp_path / "e")
    assert run(passages, bad, out) == 0
    assert [part["rows"] for part in read_manifest(out)["parts"]] == [0, 1, 2]
    assert list(pd.read_parquet(out)["passage_id"]) == ["2", "3", "4"]
    assert pl.read_parquet(f"{out}/*.parquet").height == 3
    assert duckdb.sql(f"select count(*) from '{out}/*.parquet'").fetchall() == [(3,)]
    schema = (
        pd.read_parquet(f"{out}/part-00000.parquet", dtype_backend="pyarrow").dtypes["vector"].pyarrow_dtype
    )
    assert schema == embeddings_schema(32).field("vector").type
    assert index.run(["--embeddings", out, "--kind", "flat", "--output", str(tmp_path / "i")]) == 0
    assert run(passages, bad, tmp_path / "again", "--reuse", out) == 0  # what had no vector is tried again
    counts = read_manifest(str(tmp_path / "again"))["counts"]
    assert counts["reused"] == 3 and counts["dead_lettered"] == {"not_finite": 2}


# -- models ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value, reason", [(float("nan"), "not_finite"), (float("inf"), "not_finite")])
def test_a_model_that_is_not_finite_on_some_words(tiny_encoder, tmp_path, value, reason):
    passages = corpus(tmp_path, [("a", "", "castle"), ("b", "", "river castle"), ("c", "", "winter " * 99)])
    river = load_encoder(tiny_encoder).tokenizer.convert_tokens_to_ids("river")
    bad = with_weights(
        tiny_encoder, tmp_path / "bad", lambda m: m.embeddings.word_embeddings.weight[river, :2].fill_(value)
    )
    assert run(passages, bad, tmp_path / "e") == 0
    ids, vectors_ND = read_embeddings(str(tmp_path / "e"))
    assert ids == ["a", "c"] and np.isfinite(vectors_ND).all()
    counts = read_manifest(str(tmp_path / "e"))["counts"]
    assert counts["dead_lettered"] == {reason: 1}
    assert counts["truncated"] == 1  # though it was encoded twice
    letters = files.read_bytes(str(tmp_path / "e" / "_dead_letter" / "part-00000.jsonl")).decode()
    assert json.loads(letters)["record"] == "b"


def test_a_model_that_gives_nothing_is_no_run(tiny_encoder, tmp_path):
    passages = corpus(tmp_path, [("a", "T", "castle"), ("b", "T", "river")])
    zero = with_weights(
        tiny_encoder,
        tmp_path / "zero",
        lambda m: [p.zero_() for p in m.encoder.layer[-1].output.LayerNorm.parameters()],
    )
    with pytest.raises(DataError, match="nothing was written: 2 read; 2 zero_vector"):
        run(passages, zero, tmp_path / "e")
    assert not (tmp_path / "e" / "_manifest.json").exists()


@pytest.mark.parametrize("scale, reason", [(1e6, "float16_overflow"), (1e-9, "zero_vector")])
def test_what_float16_cannot_hold_is_rejected_by_name(tiny_encoder, tmp_path, scale, reason):
    passages = corpus(tmp_path, [("a", "T", "castle"), ("b", "T", "river")])
    river = load_encoder(tiny_encoder).encode_passages(["T"], ["river"])[0]
    castle = load_encoder(tiny_encoder).encode_passages(["T"], ["castle"])[0]

    def scaled(module):
        for p in module.encoder.layer[-1].output.LayerNorm.parameters():
            p.mul_(scale)

    other = with_weights(tiny_encoder, tmp_path / "other", scaled)
    assert run(passages, other, tmp_path / "full") == 0
    np.testing.assert_allclose(read_embeddings(str(tmp_path / "full"))[1] / scale, [castle, river], rtol=1e-4)
    with pytest.raises(DataError, match=f"nothing was written: 2 read; 2 {reason}"):
        run(passages, other, tmp_path / "half", "--dtype", "float16")


def test_as_stored_keeps_the_neighbours():
    vectors_ND = np.array([[1, 2], [65504, 0], [70000, 1], [1e-9, 0], [0, 0], [-1e30, 1]], np.float32)
    stored_ND, faults = as_stored(vectors_ND, "float16")
    overflow = "float16_overflow"
    assert faults == {2: overflow, 3: "zero_vector", 4: "zero_vector", 5: overflow}
    assert stored_ND.dtype == np.float16 and stored_ND[:2].tolist() == [[1, 2], [65504, 0]]
    assert as_stored(vectors_ND, "float32")[1] == {4: "zero_vector"}


class Broken:
    dim, counts = 2, EncodedCounts()

    def __init__(self, error):
        self.error, self.calls = error, 0

    def encode_passages(self, titles, texts, ids=None):
        self.calls += 1
        raise self.error


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        RuntimeError("CUBLAS_STATUS_EXECUTION_FAILED when calling cublasGemmEx"),
        torch.OutOfMemoryError("no memory left"),
        MemoryError(),
    ],
)
def test_what_the_machine_cannot_do_is_not_blamed_on_passages(error):
    encoder = Broken(error)
    with pytest.raises(type(error)):
        embed_passages(encoder, [Passage(str(i), "", "a") for i in range(8)])
    assert encoder.calls == 1


def test_what_the_encoder_raises_on_every_passage_is_told_of_each():
    faults = embed_passages(
        Broken(TypeError("TextEncodeInput")), [Passage(str(i), "", "") for i in range(3)]
    )[1]
    assert faults == dict.fromkeys(range(3), "encoder_error: TypeError")


# -- an encoder that is replaced ---------------------------------------------------------------


def test_an_encoder_that_is_replaced_while_the_job_runs_is_an_error(tiny_encoder, tmp_path, monkeypatch):
    """Its vectors would stand under the fingerprint of the one before, in some of the parts."""
    monkeypatch.setattr(parts, "ROWS_PER_GROUP", 2)
    passages = corpus(tmp_path, [(str(i), "T", f"river {i}") for i in range(6)])
    encoder = with_weights(tiny_encoder, tmp_path / "encoder", lambda m: None)
    other = with_weights(
        tiny_encoder, tmp_path / "other", lambda m: m.embeddings.word_embeddings.weight.add_(1)
    )
    plain, seen = transform.embed_passages, []

    def replacing(model, chosen):
        seen.append(model.loaded_fingerprint)
        if len(seen) == 2:  # only the weights: config.json stays what it was
            (tmp_path / "encoder" / "model.safetensors").unlink()
            shutil.copy(f"{other}/model.safetensors", tmp_path / "encoder")
        return plain(model, chosen)

    monkeypatch.setattr(transform, "embed_passages", replacing)
    with pytest.raises(DataError, match="encoder: replaced while the job ran"):
        run(passages, encoder, tmp_path / "e")
    assert len(set(seen)) == 1 and not (tmp_path / "e" / "_manifest.json").exists()
    written = [path.name for path in sorted((tmp_path / "e").glob("*.parquet"))]
    assert len(written) < 3
    monkeypatch.setattr(transform, "embed_passages", plain)
    shutil.rmtree(encoder)
    with_weights(tiny_encoder, tmp_path / "encoder", lambda m: None)
    assert run(passages, encoder, tmp_path / "e") == 0  # put back, it goes on
    with pytest.raises(UsageError, match="holds a run of other inputs, models or options"):
        run(passages, other, tmp_path / "e")


def test_an_encoder_that_cannot_be_loaded_by_a_worker_is_a_report(tmp_path):
    class Task:
        def setup(self):
            raise UsageError("compute int8: needs a CPU with VNNI")

        def __call__(self, part):
            self.setup()

    step = PartFn(Task())
    step.setup()
    assert list(step.process(Part(4, {}))) == [{"index": 4, "error": "compute int8: needs a CPU with VNNI"}]


# -- --reuse -----------------------------------------------------------------------------------


def options(passages_dir, tiny_encoder):
    return ["--passages", passages_dir, "--encoder", tiny_encoder]


@pytest.mark.parametrize(
    "more, error, message",
    [
        (["--dtype", "float16"], UsageError, "this run has --compute fp32, --dtype float16"),
        (["--compute", "bf16"], UsageError, "made with --compute fp32, --dtype float32, this run"),
        (["--reuse", ""], FileNotFoundError, ""),
        (["--reuse", "PASSAGES"], DataError, "a run of job 'split', expected 'embed'"),
        (["--reuse", "/no/such"], FileNotFoundError, "No such directory"),
        (["--reuse", "gs"], FileNotFoundError, "No such directory"),
    ],
)
def test_runs_that_cannot_be_reused(
    passages_dir, embeddings_dir, tiny_encoder, tmp_path, more, error, message
):
    more = [passages_dir if word == "PASSAGES" else word for word in more]
    argv = [*options(passages_dir, tiny_encoder), "--reuse", embeddings_dir, *more]
    with pytest.raises(error, match=message):
        embed.run([*argv, "--output", str(tmp_path / "e")])
    assert not (tmp_path / "e").exists()


def test_unfinished_and_damaged_runs_are_not_reused(passages_dir, embeddings_dir, tiny_encoder, tmp_path):
    argv = [*options(passages_dir, tiny_encoder), "--output", str(tmp_path / "e"), "--reuse"]
    old = shutil.copytree(embeddings_dir, tmp_path / "old")
    part = sorted(old.glob("part-*.parquet"))[1]
    whole = part.read_bytes()
    place = len(whole) // 2
    part.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    with pytest.raises(DataError, match=f"{part.name}: not readable as Parquet"):
        embed.run([*argv, str(old)])
    part.write_bytes(whole[:-8] + b"\xff" * 8)
    with pytest.raises(DataError, match=f"{part.name}: not readable as Parquet"):
        embed.run([*argv, str(old)])
    part.write_bytes(whole[:-1])
    with pytest.raises(DataError, match=f"{part.name}: "):
        embed.run([*argv, str(old)])
    part.unlink()
    with pytest.raises(DataError, match=f"{part.name}: missing"):
        embed.run([*argv, str(old)])
    (old / "_manifest.json").unlink()
    with pytest.raises(DataError, match="an unfinished run"):
        embed.run([*argv, str(old)])
    assert not (tmp_path / "e" / "_manifest.json").exists()


def test_a_run_is_not_replaced_by_itself(passages_dir, embeddings_dir, tiny_encoder, tmp_path):
    """`--reuse X --output X --overwrite` would remove X before a vector is read from it."""
    old = shutil.copytree(embeddings_dir, tmp_path / "old")
    argv = [*options(passages_dir, tiny_encoder), "--overwrite", "--reuse", str(old), "--output"]
    (tmp_path / "link").symlink_to(old)
    for name in (str(old), f"{old}/", str(tmp_path / "link"), str(tmp_path / "x" / ".." / "old")):
        with pytest.raises(UsageError, match="also --reuse; name a new directory"):
            embed.run([*argv, name])
    passages = shutil.copytree(passages_dir, tmp_path / "passages")
    with pytest.raises(UsageError, match="also --passages"):
        run(str(passages), tiny_encoder, passages, "--overwrite")
    with pytest.raises(UsageError, match="also --embeddings"):
        index.run(["--embeddings", str(old), "--kind", "flat", "--output", str(old), "--overwrite"])
    assert len(read_embeddings(str(old))[0]) == len(read_table(str(passages))) == 120


def test_old_vectors_that_no_run_of_today_writes_are_computed_again(embeddings_dir, tmp_path):
    old = shutil.copytree(embeddings_dir, tmp_path / "old")
    table = read_table(str(old))
    vectors = read_embeddings(str(old))[1].copy()
    vectors[3, 5], vectors[7, 0], vectors[9] = np.nan, np.inf, 0
    path = str(old / "part-00000.parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = embeddings_schema(32)
    numbers = pa.FixedSizeListArray.from_arrays(pa.array(vectors[:40].reshape(-1)), type=schema.field(2).type)
    first = table.slice(0, 40).combine_chunks()
    columns = [*(first[n].combine_chunks() for n in ("passage_id", "content_hash")), numbers]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path, **parts.writer_options(schema))
    manifest = json.loads((old / "_manifest.json").read_text())
    manifest["parts"][0]["bytes"] = files.size(path)
    (old / "_manifest.json").write_text(json.dumps(manifest))
    found = OldVectors(str(old)).take(table["content_hash"].to_pylist())
    assert sorted(set(range(120)) - set(found)) == [3, 7, 9]


def test_old_runs_of_another_dump_with_doubles(passages_dir, tiny_encoder, tmp_path, capsys):
    """Equal texts under many ids and in another order: each finds its vector, and none a wrong one."""
    rows = [(str(i), f"Title {i % 3}", f"river {i % 7}") for i in range(60)]
    old = corpus(tmp_path, rows[::-1], "old")
    new = corpus(tmp_path, [*rows, ("new", "Title", "lantern")], "new")
    assert run(old, tiny_encoder, tmp_path / "e-old") == 0
    assert run(new, tiny_encoder, tmp_path / "fresh") == 0
    capsys.readouterr()
    assert run(new, tiny_encoder, tmp_path / "reused", "--reuse", str(tmp_path / "e-old")) == 0
    assert "reused: 60 (98.4%)" in (out := capsys.readouterr().out) and "computed: 1 (1.6%)" in out
    fresh, reused = (read_embeddings(str(tmp_path / name)) for name in ("fresh", "reused"))
    assert fresh[0] == reused[0]
    np.testing.assert_allclose(reused[1], fresh[1], atol=1e-5)
    assert run(old, tiny_encoder, tmp_path / "none", "--reuse", str(tmp_path / "fresh")) == 0
    other = corpus(tmp_path, [("z", "Other", "meadow")], "other")
    capsys.readouterr()
    assert run(other, tiny_encoder, tmp_path / "nothing", "--reuse", str(tmp_path / "e-old")) == 0
    assert "computed: 1 (100.0%)" in capsys.readouterr().out
    assert reused_and_computed({}, 0.0).startswith("computed: 0 (0.0%)")


def test_float16_vectors_are_copied_bit_for_bit(passages_dir, tiny_encoder, tmp_path):
    for name, more in (("a", ()), ("b", ("--reuse", str(tmp_path / "a")))):
        assert run(passages_dir, tiny_encoder, tmp_path / name, "--dtype", "float16", *more) == 0
    assert read_manifest(str(tmp_path / "b"))["counts"]["reused"] == 120
    digests = [[p["row_digest"] for p in read_manifest(str(tmp_path / n))["parts"]] for n in "ab"]
    assert digests[0] == digests[1]


# -- --compute auto ----------------------------------------------------------------------------


def test_auto_follows_the_run_whose_vectors_it_copies(passages_dir, tiny_encoder, tmp_path, monkeypatch):
    assert run(passages_dir, tiny_encoder, tmp_path / "old", "--compute", "bf16") == 0
    monkeypatch.setattr("rag_core.encoders.compute.fastest_compute", lambda name: "fp32")
    auto = ("--compute", "auto", "--reuse", str(tmp_path / "old"))
    assert run(passages_dir, tiny_encoder, tmp_path / "new", *auto) == 0
    manifest = read_manifest(str(tmp_path / "new"))
    assert manifest["options"]["compute"] == "bf16" and manifest["counts"]["reused"] == 120


def test_auto_reads_no_output_in_a_dry_run_and_survives_a_damaged_one(
    passages_dir, tiny_encoder, tmp_path, monkeypatch
):
    chosen = []
    monkeypatch.setattr(
        "rag_core.encoders.compute.fastest_compute", lambda name: chosen.append(name) or "fp32"
    )
    (tmp_path / "e").mkdir()
    for content in ("{", "[]", '{"job": "embed", "options": {"compute": "bf16"}}'):
        (tmp_path / "e" / "_run.json").write_text(content)
        assert run(passages_dir, tiny_encoder, tmp_path / "e", "--compute", "auto", "--dry_run") == 0
        with pytest.raises(UsageError, match="_run.json: damaged"):
            run(passages_dir, tiny_encoder, tmp_path / "e", "--compute", "auto")
    assert len(chosen) == 6


# -- stopped and watched -----------------------------------------------------------------------


def test_stopped_between_a_part_and_its_report(
    passages_dir, embeddings_dir, tiny_encoder, tmp_path, monkeypatch
):
    plain = files.write_json

    def struck(url, value):
        if url.endswith("report-00001.json"):
            raise OSError("no space left on device")
        plain(url, value)

    monkeypatch.setattr(files, "write_json", struck)
    with pytest.raises(Exception, match="no space left"):
        run(passages_dir, tiny_encoder, tmp_path / "e")
    assert not (tmp_path / "e" / "_manifest.json").exists()
    monkeypatch.undo()
    assert run(passages_dir, tiny_encoder, tmp_path / "e") == 0
    right, found = read_manifest(embeddings_dir), read_manifest(str(tmp_path / "e"))
    assert found["content_digest"] == right["content_digest"] and found["counts"] == right["counts"]


def test_damaged_reports_do_not_end_the_progress(embeddings_dir, tmp_path, monkeypatch):
    run_dir = shutil.copytree(embeddings_dir, tmp_path / "e")
    (run_dir / "_work" / "report-00000.json").write_text("{")
    (run_dir / "_work" / "report-00001.json").write_text("[]")
    failures = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    monkeypatch.setattr(Progress, "EVERY_SECONDS", 0.01)
    progress = Progress(str(run_dir), "embed", {0, 1, 2}, transform.tokens_and_padding)
    with progress:
        (run_dir / "_work" / "report-00000.json").unlink()
        threading.Event().wait(0.2)
    assert not failures and progress._read == {2}
