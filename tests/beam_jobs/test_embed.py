"""The embed job against the encoder without Beam."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from beam_jobs import embed, handlers, split
from beam_jobs.transforms.embed_passages import embed_passages, tokens_and_padding
from beam_jobs.transforms.progress import Progress
from rag_core import files, read_embeddings
from rag_core.encoders import NonFiniteVectorError, load_encoder
from rag_core.encoders.text_encoder import EncodedCounts
from rag_core.errors import DataError, UsageError
from rag_core.run_dir import read_manifest
from rag_core.schemas import Passage
from rag_core.stages import read_table
from tests.beam_jobs.conftest import WORDS, split_options


def test_vectors_are_the_encoders_row_by_row(passages_dir, embeddings_dir, tiny_encoder):
    passages = read_table(passages_dir)
    ids, vectors_ND = read_embeddings(embeddings_dir)
    assert ids == passages["passage_id"].to_pylist() and vectors_ND.dtype == np.float32
    encoder = load_encoder(tiny_encoder)
    plain = [
        encoder.encode_passages([title], [text])[0]
        for title, text in zip(passages["title"].to_pylist(), passages["text"].to_pylist())
    ]
    np.testing.assert_allclose(vectors_ND, plain, atol=1e-5)
    manifest = read_manifest(embeddings_dir)
    assert manifest["encoder"]["token_budget"] == 2048 and manifest["versions"]["torch"]
    assert manifest["encoder"]["dim"] == 32 and manifest["encoder"]["fingerprint"] == encoder.fingerprint
    assert read_table(embeddings_dir)["content_hash"].equals(passages["content_hash"])


def test_float16_halves_the_bytes_and_stays_close(passages_dir, embeddings_dir, tiny_encoder, tmp_path):
    out = str(tmp_path / "e")
    argv = ["--passages", passages_dir, "--encoder", tiny_encoder, "--output", out, "--dtype", "float16"]
    assert embed.run(argv) == 0
    halves, full = read_embeddings(out)[1], read_embeddings(embeddings_dir)[1]
    assert halves.dtype == np.float16
    np.testing.assert_array_equal(halves, full.astype(np.float16))
    assert len(pd.read_parquet(out)) == 120


class Faulty:
    """An encoder of 2 dimensions that fails on some words."""

    dim, counts = 2, EncodedCounts()

    def encode_passages(self, titles, texts, ids=None):
        if any("boom" in t for t in texts):
            raise RuntimeError("tokenizer exploded")
        bad = [i for i, t in enumerate(texts) if "nan" in t]
        if bad:
            raise NonFiniteVectorError("faulty", bad, [ids[i] for i in bad])
        return np.array(
            [[len(t), 0.0 if "zero" in t else 1.0] if "zero" not in t else [0.0, 0.0] for t in texts]
        )


def test_a_faulty_passage_is_found_and_its_neighbours_survive():
    texts = ["a", "nan", "bb", "boom", "ccc", "zero", "dddd", "nan boom"]
    vectors, faults = embed_passages(Faulty(), [Passage(str(i), "", t) for i, t in enumerate(texts)])
    assert faults == {
        1: "not_finite",
        3: "encoder_error: RuntimeError",
        5: "zero_vector",
        7: "encoder_error: RuntimeError",
    }
    assert vectors[[0, 2, 4, 6], 0].tolist() == [1, 2, 3, 4]


def test_faults_go_to_the_dead_letters_and_are_counted(tmp_path, monkeypatch, tiny_encoder):
    (tmp_path / "c.tsv").write_text("1\ta\tT\n2\tnan\tT\n3\tzero\tT\n4\tbb\tT\n")
    passages, out = str(tmp_path / "p"), str(tmp_path / "e")
    assert split.run(["--input", str(tmp_path / "c.tsv"), "--input-format", "tsv", "--output", passages]) == 0

    class Encoder(Faulty):
        fingerprint = loaded_fingerprint = fits_passage_encoder = "f"
        score_scale, max_length, token_budget = 1.0, 8, 64

    monkeypatch.setattr(embed, "shared_encoder", lambda *a: Encoder())
    monkeypatch.setattr("beam_jobs.transforms.embed_passages.shared_encoder", lambda *a: Encoder())
    assert embed.run(["--passages", passages, "--encoder", tiny_encoder, "--output", out]) == 0
    assert read_embeddings(out)[0] == ["1", "4"]
    counts = read_manifest(out)["counts"]
    assert counts["dead_lettered"] == {"not_finite": 1, "zero_vector": 1} and counts["written"] == 2
    letters = files.read_bytes(files.join(out, "_dead_letter", "part-00000.jsonl")).decode().splitlines()
    assert [json.loads(letter)["record"] for letter in letters] == ["2", "3"]


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"--encoder": "nosuch"}, UsageError, "unknown model 'nosuch'; built-in: minilm"),
        ({"--passages": "/nosuch"}, FileNotFoundError, "No such directory"),
        ({"--dtype": "float8"}, UsageError, "invalid choice: 'float8'"),
    ],
)
def test_wrong_names(passages_dir, tiny_encoder, tmp_path, changes, error, message):
    options = {
        "--passages": passages_dir,
        "--encoder": tiny_encoder,
        "--output": str(tmp_path / "e"),
        **changes,
    }
    with pytest.raises(error, match=message):
        embed.run([word for pair in options.items() for word in pair])
    assert not (tmp_path / "e").exists()


def test_another_jobs_run_is_no_input(embeddings_dir, tiny_encoder, tmp_path):
    with pytest.raises(DataError, match="a run of job 'embed', expected 'split'"):
        embed.run(["--passages", embeddings_dir, "--encoder", tiny_encoder, "--output", str(tmp_path / "e")])


def test_tokens_and_padding_are_counted_and_told(
    embeddings_dir, passages_dir, tiny_encoder, tmp_path, capsys
):
    counts = read_manifest(embeddings_dir)["counts"]
    passages = read_table(passages_dir)
    encoder = load_encoder(tiny_encoder)
    encoder.encode_passages(passages["title"].to_pylist(), passages["text"].to_pylist())
    assert counts["tokens"] == encoder.counts.tokens > 120
    assert 0 < counts["padding"] < counts["tokens"]
    assert tokens_and_padding({"tokens": 900, "padding": 100}, 3.0) == "300 tokens/s a process, padding 10.0%"
    assert tokens_and_padding({}, 3.0) == "nothing computed"
    argv = ["--passages", passages_dir, "--encoder", tiny_encoder, "--output", str(tmp_path / "e")]
    assert embed.run(argv) == 0
    assert f"tokens: {counts['tokens']:,}" in capsys.readouterr().out


def test_progress_tells_the_rate_of_what_was_reported(embeddings_dir):
    progress = Progress(embeddings_dir, "embed", set(range(9)), tokens_and_padding)
    done = progress._reported()
    assert done == len(read_manifest(embeddings_dir)["parts"])
    assert progress._counts["tokens"] == read_manifest(embeddings_dir)["counts"]["tokens"]
    assert progress._reported() == done  # and nothing is counted twice
    assert progress._counts["tokens"] == read_manifest(embeddings_dir)["counts"]["tokens"]


def test_compute_is_chosen_by_a_measurement_and_kept(
    passages_dir, tiny_encoder, tmp_path, monkeypatch, caplog
):
    argv = ["--passages", passages_dir, "--encoder", tiny_encoder, "--compute", "auto"]
    argv += ["--output", str(tmp_path / "e")]
    monkeypatch.setattr("rag_core.encoders.compute.fastest_compute", lambda name: "bf16")
    assert embed.run(argv) == 0
    assert read_manifest(str(tmp_path / "e"))["options"]["compute"] == "bf16"
    monkeypatch.setattr("rag_core.encoders.compute.fastest_compute", lambda name: "fp32")
    assert embed.run(argv) == 0  # what was begun stays: the same run, already complete
    assert read_manifest(str(tmp_path / "e"))["options"]["compute"] == "bf16"
    remote = [
        "--runner=DataflowRunner",
        "--dry_run",
        "--project=p",
        "--region=r",
        "--temp_location=gs://bkt/t",
    ]
    with pytest.raises(UsageError, match="measures this machine, not the workers"):
        embed.run([*argv[:-1], str(tmp_path / "x"), *remote, "--setup_file="])


def test_the_model_is_loaded_once_a_process(tiny_encoder):
    assert handlers.shared_encoder(tiny_encoder, "fp32") is handlers.shared_encoder(tiny_encoder, "fp32")


def test_only_what_changed_is_computed(passages_dir, embeddings_dir, tiny_encoder, tmp_path, capsys):
    """A sentence inserted into a page of another dump: its passages are computed, the others copied."""
    from tests.beam_jobs.conftest import write_corpus

    tsv = write_corpus(tmp_path / "tsv", files=3, rows=40)
    lines = (tsv / "corpus-01.tsv").read_text().splitlines()
    lines[5] = lines[5].replace("\tTitle", " river castle\tTitle")
    lines.append(lines[6].replace("1-5", "new"))  # same title and text under another id
    (tsv / "corpus-01.tsv").write_text("\n".join(lines) + "\n")
    changed, fresh, reused = (str(tmp_path / name) for name in ("p", "fresh", "reused"))
    assert split.run(split_options(tsv, changed)) == 0
    argv = ["--passages", changed, "--encoder", tiny_encoder]
    assert embed.run([*argv, "--output", fresh]) == 0
    assert embed.run([*argv, "--output", reused, "--reuse", embeddings_dir]) == 0
    assert "reused: 120 (99.2%)" in capsys.readouterr().out
    assert read_manifest(reused)["counts"]["reused"] == 120
    assert read_embeddings(reused)[0] == read_embeddings(fresh)[0]
    np.testing.assert_allclose(read_embeddings(reused)[1], read_embeddings(fresh)[1], atol=1e-5)
    with pytest.raises(UsageError, match="made with .*this run has .*float16"):
        embed.run([*argv, "--output", str(tmp_path / "x"), "--reuse", embeddings_dir, "--dtype", "float16"])
    with pytest.raises(UsageError, match="another than this one"):
        embed.run(
            ["--passages", changed, "--encoder", "minilm", "--output", str(tmp_path / "x"), "--reuse", reused]
        )


def test_next_months_dump_costs_its_changes(tiny_encoder, tmp_path, capsys):
    """A sentence inserted into one page of a hundred: what is computed is the passages that it changed."""
    at = {name: str(tmp_path / name) for name in ("old", "new", "e-old", "e-fresh", "e-reused")}
    for month, changed in (("old", 0), ("new", 4)):
        pages = "".join(
            f"<page><title>Page {n}</title><ns>0</ns><id>{n}</id><revision><text>"
            f"{'A sentence came in. ' if n % 100 < changed // 4 else ''}"
            f"{' '.join(f'{WORDS[(n * 7 + i * i) % 10]} {n} {i}' for i in range(40 + n % 90))}."
            "</text></revision></page>"
            for n in range(1, 401)
        )
        dump = tmp_path / f"{month}.xml"
        dump.write_text(f"<mediawiki><siteinfo></siteinfo>{pages}</mediawiki>")
        assert split.run(["--input", str(dump), "--output", at[month]]) == 0
    embed.run(["--passages", at["old"], "--encoder", tiny_encoder, "--output", at["e-old"]])
    argv = ["--passages", at["new"], "--encoder", tiny_encoder]
    embed.run([*argv, "--output", at["e-fresh"]])
    capsys.readouterr()
    embed.run([*argv, "--output", at["e-reused"], "--reuse", at["e-old"]])
    old, new = (read_table(at[m])["content_hash"].to_pylist() for m in ("old", "new"))
    changed = len([h for h in new if h not in set(old)])
    assert 4 <= changed <= 12  # four pages of one to three passages
    counts = read_manifest(at["e-reused"])["counts"]
    assert counts["reused"] == len(new) - changed == counts["read"] - changed
    assert f"({(len(new) - changed) / len(new):.1%})" in capsys.readouterr().out
    assert read_embeddings(at["e-reused"])[0] == read_embeddings(at["e-fresh"])[0]
    np.testing.assert_allclose(
        read_embeddings(at["e-reused"])[1], read_embeddings(at["e-fresh"])[1], atol=1e-5
    )


def test_old_vectors_tell_hashes_apart_to_the_last_byte(embeddings_dir):
    from rag_core.reuse import OldVectors

    table = read_table(embeddings_dir)
    hashes = table["content_hash"].to_pylist()
    old = OldVectors(embeddings_dir)
    vectors = read_embeddings(embeddings_dir)[1]
    near = [h[:15] + bytes([h[15] ^ 1]) for h in hashes]
    assert old.take(near) == {} and old.take([]) == {} and len(old) == 120
    found = old.take([near[0], hashes[7], hashes[100]])
    assert sorted(found) == [1, 2]
    np.testing.assert_array_equal(found[2], vectors[100])
