"""The retrieve job against a float64 reference, over every kind of search."""

from __future__ import annotations

import json
import shutil

import faiss
import numpy as np
import pytest

from beam_jobs import embed, index, retrieve, split
from beam_jobs.transforms import exact_search, parts
from beam_jobs.transforms.exact_search import ExactSearch, TopKFn, log_sum_exp
from rag_core import read_embeddings
from rag_core.datasets import load_questions
from rag_core.encoders import load_encoder
from rag_core.errors import DataError, UnreachableError, UsageError
from rag_core.retrieval import FaissIndex
from rag_core.run_dir import read_manifest
from rag_core.stages import read_table
from tests.beam_jobs.conftest import write_corpus


def reference(embeddings_dir, questions_file, encoder, k):
    """Best k by (-score, id) and the log-partition, in float64."""
    ids, vectors_ND = read_embeddings(embeddings_dir)
    questions = load_questions(questions_file, "custom").questions
    queries = encoder.encode_questions([q.question for q in questions]).astype(np.float64)
    scores_QN = encoder.score_scale * (queries @ vectors_ND.astype(np.float64).T)
    top = [sorted(zip(-row, ids))[:k] for row in scores_QN]
    high = scores_QN.max(axis=1)
    log_z = high + np.log(np.exp(scores_QN - high[:, None]).sum(axis=1))
    return [[i for _, i in hits] for hits in top], [[-s for s, _ in hits] for hits in top], log_z


def test_exact_search_is_the_reference(embeddings_dir, questions_file, tiny_encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(retrieve, "QUESTIONS_PER_PART", 7)
    out = str(tmp_path / "r")
    argv = ["--questions", questions_file, "--task", "custom", "--question-encoder", tiny_encoder]
    assert retrieve.run([*argv, "--embeddings", embeddings_dir, "--top-k", "10", "--output", out]) == 0
    rows = read_table(out).to_pylist()
    ids, scores, log_z = reference(embeddings_dir, questions_file, load_encoder(tiny_encoder), 10)
    assert [r["question_id"] for r in rows] == [f"q{i}" for i in range(30)]
    assert [r["passage_ids"] for r in rows] == ids
    np.testing.assert_allclose([r["doc_scores"] for r in rows], scores, rtol=1e-5)
    np.testing.assert_allclose([r["log_partition"] for r in rows], log_z, rtol=1e-5)
    manifest = read_manifest(out)
    assert (
        len(manifest["parts"]) == 5
        and manifest["encoder_fit"] == "unverified"
        or manifest["encoder_fit"] == "verified"
    )
    assert manifest["scores"] == {"kind": "dense_logits", "score_scale": 1.0}


def test_fusion_selects_by_rank_and_keeps_the_encoders_logits(
    embeddings_dir, passages_dir, questions_file, tiny_encoder, tmp_path, monkeypatch
):
    monkeypatch.setattr(retrieve, "QUESTIONS_PER_PART", 7)
    words, bm25, out = (str(tmp_path / name) for name in ("words", "bm25", "fused"))
    asked = ["--questions", questions_file, "--task", "custom", "--top-k", "10"]
    index.run(["--passages", passages_dir, "--kind", "bm25", "--output", words])
    retrieve.run([*asked, "--index", words, "--output", bm25])
    dense = ["--question-encoder", tiny_encoder, "--embeddings", embeddings_dir]
    assert retrieve.run([*asked, *dense, "--fuse", bm25, "--output", out]) == 0
    encoder = load_encoder(tiny_encoder)
    by_id = dict(zip(*read_embeddings(embeddings_dir)))
    questions = load_questions(questions_file, "custom").questions
    queries_QD = encoder.encode_questions([q.question for q in questions]).astype(np.float64)
    dense_ids, _, log_z = reference(embeddings_dir, questions_file, encoder, 10)
    rows, others = read_table(out).to_pylist(), read_table(bm25).to_pylist()
    for n, (row, other) in enumerate(zip(rows, others, strict=True)):
        gain: dict[str, float] = {}
        for ranking in (dense_ids[n], other["passage_ids"]):
            for rank, passage_id in enumerate(ranking, 1):
                gain[passage_id] = gain.get(passage_id, 0.0) + 1 / (60 + rank)
        wanted = sorted(gain, key=lambda i: (-gain[i], i))[:10]
        assert row["passage_ids"] == wanted
        logits = [encoder.score_scale * float(queries_QD[n] @ by_id[i].astype(np.float64)) for i in wanted]
        np.testing.assert_allclose(row["doc_scores"], logits, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose([r["log_partition"] for r in rows], log_z, rtol=1e-5)
    assert any(set(r["passage_ids"]) - set(d) for r, d in zip(rows, dense_ids))
    assert read_manifest(out)["kind"] == "fused"


def test_fusion_of_runs_that_do_not_belong_together(
    embeddings_dir, passages_dir, questions_file, tiny_encoder, tmp_path
):
    asked = ["--questions", questions_file, "--task", "custom", "--question-encoder", tiny_encoder]
    with pytest.raises(UsageError, match="--fuse needs --embeddings"):
        retrieve.run([*asked, "--index", "i", "--fuse", "f", "--output", str(tmp_path / "a")])
    foreign = write_corpus(tmp_path / "other", files=1, rows=5, seed=9)
    (tmp_path / "foreign.tsv").write_text((foreign / "corpus-00.tsv").read_text().replace("0-", "x-"))
    source, words, run = str(tmp_path / "foreign.tsv"), str(tmp_path / "words"), str(tmp_path / "run")
    split.run(["--input", source, "--input-format", "tsv", "--output", str(tmp_path / "p")])
    index.run(["--passages", str(tmp_path / "p"), "--kind", "bm25", "--output", words])
    retrieve.run(["--questions", questions_file, "--task", "custom", "--index", words, "--output", run])
    with pytest.raises(DataError, match=r"passage 'x-\d' of question 'q\d+' is not in"):
        retrieve.run([*asked, "--embeddings", embeddings_dir, "--fuse", run, "--output", str(tmp_path / "b")])


def written(directory, rows):
    """A TSV corpus of (id, text) and the options that split it."""
    directory.mkdir()
    lines = [f"{name}\t{text}\tT" for name, text in rows]
    (directory / "corpus.tsv").write_text("\n".join(["id\ttext\ttitle", *lines]) + "\n")
    return ["--input", str(directory / "corpus.tsv"), "--input-format", "tsv"]


def test_delta_runs_and_removed_passages_give_what_the_new_corpus_gives(
    embeddings_dir, passages_dir, questions_file, tiny_encoder, tmp_path, monkeypatch
):
    monkeypatch.setattr(retrieve, "QUESTIONS_PER_PART", 11)
    old = read_table(passages_dir).to_pylist()
    changed = [(row["passage_id"], f"{row['text']} winter") for row in old[::9]]
    delta = [*changed, *[(f"new-{i}", f"copper river {i}") for i in range(7)]]
    gone = {old[1]["passage_id"], old[2]["passage_id"], "new-3", "never was"}
    now = {row["passage_id"]: row["text"] for row in old} | dict(delta)
    title = {row["passage_id"]: row["title"] for row in old}
    whole = [(name, text) for name, text in now.items() if name not in gone]
    (tmp_path / "removed.txt").write_text("\n".join(gone) + "\n\n")
    embedded = {}
    for name, rows in (("delta", delta), ("whole", whole)):
        source = written(tmp_path / name, rows)
        if name == "whole":  # unchanged passages keep their titles
            lines = [f"{i}\t{t}\t{title.get(i, 'T') if (i, t) not in delta else 'T'}" for i, t in rows]
            (tmp_path / name / "corpus.tsv").write_text("\n".join(["id\ttext\ttitle", *lines]) + "\n")
        passages, embedded[name] = str(tmp_path / f"{name}-p"), str(tmp_path / f"{name}-e")
        split.run([*source, "--output", passages])
        embed.run(["--passages", passages, "--encoder", tiny_encoder, "--output", embedded[name]])
    asked = ["--questions", questions_file, "--task", "custom", "--question-encoder", tiny_encoder]
    runs = [embeddings_dir, embedded["delta"], "--removed", str(tmp_path / "removed.txt")]
    outs = [str(tmp_path / name) for name in ("by-delta", "anew")]
    assert retrieve.run([*asked, "--top-k", "9", "--output", outs[0], "--embeddings", *runs]) == 0
    assert retrieve.run([*asked, "--top-k", "9", "--output", outs[1], "--embeddings", embedded["whole"]]) == 0
    by_delta, anew = (read_table(out).to_pylist() for out in outs)
    assert [row["passage_ids"] for row in by_delta] == [row["passage_ids"] for row in anew]
    for column in ("doc_scores", "log_partition"):
        np.testing.assert_allclose([r[column] for r in by_delta], [r[column] for r in anew], rtol=1e-5)
    assert read_manifest(outs[0])["inputs"]["removed"]["ids"] == 4
    with pytest.raises(UsageError, match="--removed needs --embeddings"):
        retrieve.run([*asked, "--index", "i", "--removed", "f", "--output", str(tmp_path / "x")])


def test_a_question_that_is_a_passage_does_not_find_itself(tmp_path, tiny_encoder):
    """beir 105: equal scores in any input order give one run, and the query's own id is absent."""
    (tmp_path / "q.jsonl").write_text(
        '{"question_id": "q7", "question": "castle river?", "answers": ["x"]}\n'
    )
    asked = ["--questions", str(tmp_path / "q.jsonl"), "--task", "custom", "--top-k", "2", "--exclude-self"]
    found = []
    for order in (["d", "q7", "a", "c", "b"], ["c", "b", "q7", "a", "d"]):
        base = tmp_path / "".join(order)
        source = written(base, [(name, "castle river") for name in order])
        split.run([*source, "--output", str(base / "p")])
        embed.run(["--passages", str(base / "p"), "--encoder", tiny_encoder, "--output", str(base / "e")])
        index.run(["--embeddings", str(base / "e"), "--kind", "flat", "--output", str(base / "i")])
        index.run(["--passages", str(base / "p"), "--kind", "bm25", "--output", str(base / "b")])
        dense = ["--question-encoder", tiny_encoder]
        sources = (["--embeddings", str(base / "e"), *dense], ["--index", str(base / "b")])
        for n, source in enumerate(sources):
            out = str(base / f"r{n}")
            assert retrieve.run([*asked, *source, "--output", out]) == 0
            found += [row["passage_ids"] for row in read_table(out).to_pylist()]
            assert read_manifest(out)["options"]["exclude_self"] is True
        out = str(base / "fused")
        assert retrieve.run([*asked, *sources[0], "--fuse", str(base / "r1"), "--output", out]) == 0
        found += [row["passage_ids"] for row in read_table(out).to_pylist()]
    assert found == [["a", "b"]] * 6


def test_an_index_merged_from_the_parts_is_the_librarys(embeddings_dir, tmp_path):
    for kind in ("flat", "sq8"):
        assert (
            index.run(["--embeddings", embeddings_dir, "--kind", kind, "--output", str(tmp_path / kind)]) == 0
        )
        FaissIndex.build(embeddings_dir, kind, tmp_path / f"{kind}-library")
        built, right = tmp_path / kind / "index.faiss", tmp_path / f"{kind}-library" / "index.faiss"
        assert built.read_bytes() == right.read_bytes()
        assert not list((tmp_path / kind / "_work").glob("*.faiss")), "shards are taken away after the merge"


def test_a_damaged_part_of_the_embeddings_is_named(embeddings_dir, questions_file, tiny_encoder, tmp_path):
    copy = tmp_path / "embeddings"
    shutil.copytree(embeddings_dir, copy)
    ids, vectors_ND = read_embeddings(str(copy))
    path = copy / "part-00001.parquet"
    data = bytearray(path.read_bytes())
    data[data.index(vectors_ND[50].tobytes()) + 2] ^= 1
    path.write_bytes(data)
    argv = ["--questions", questions_file, "--task", "custom", "--question-encoder", tiny_encoder]
    with pytest.raises(DataError, match=r"part-00001\.parquet: its bytes have changed"):
        retrieve.run([*argv, "--embeddings", str(copy), "--output", str(tmp_path / "r")])


def test_a_question_encoder_of_another_width_is_refused(embeddings_dir, questions_file, tmp_path):
    from transformers import BertConfig, BertModel, BertTokenizerFast

    narrow = tmp_path / "narrow"
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=5, max_position_embeddings=64, **sizes)).save_pretrained(narrow)
    (narrow / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]")
    BertTokenizerFast(str(narrow / "vocab.txt")).save_pretrained(narrow)
    argv = ["--questions", questions_file, "--task", "custom", "--question-encoder", str(narrow)]
    with pytest.raises(UsageError, match="gives 16 numbers, the passages' vectors have 32"):
        retrieve.run([*argv, "--embeddings", embeddings_dir, "--output", str(tmp_path / "r")])


def test_an_encoder_that_differs_in_pooling_alone_is_refused(
    embeddings_dir, questions_file, tiny_encoder, tmp_path
):
    """Same width and weights, other pooling: scores would be wrong without a sign."""
    other = tmp_path / "other"
    shutil.copytree(tiny_encoder, other)
    for name, text in {
        "modules.json": json.dumps(
            [
                {"type": "x.Transformer", "path": ""},
                {"type": "x.Pooling", "path": "1_Pooling"},
                {"type": "x.Normalize", "path": "2_Normalize"},
            ]
        ),
        "sentence_bert_config.json": '{"max_seq_length": 64, "do_lower_case": true}',
    }.items():
        (other / name).write_text(text)
    (other / "1_Pooling").mkdir()
    (other / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    argv = ["--questions", questions_file, "--task", "custom", "--embeddings", embeddings_dir]
    with pytest.raises(UsageError, match="the passages were embedded by"):
        retrieve.run([*argv, "--question-encoder", str(other), "--output", str(tmp_path / "r")])


def test_k_beyond_the_corpus_gives_what_there_is(embeddings_dir, questions_file, tiny_encoder, tmp_path):
    out = str(tmp_path / "r")
    argv = ["--questions", questions_file, "--task", "custom", "--question-encoder", tiny_encoder]
    assert retrieve.run([*argv, "--embeddings", embeddings_dir, "--top-k", "500", "--output", out]) == 0
    assert {len(r["passage_ids"]) for r in read_table(out).to_pylist()} == {120}


def test_a_flat_index_finds_the_same_and_opens_in_faiss(
    embeddings_dir, questions_file, tiny_encoder, tmp_path
):
    built, out = str(tmp_path / "index"), str(tmp_path / "r")
    assert index.run(["--embeddings", embeddings_dir, "--kind", "flat", "--output", built]) == 0
    opened = faiss.read_index(built + "/index.faiss")
    assert (opened.ntotal, opened.d, opened.metric_type) == (120, 32, faiss.METRIC_INNER_PRODUCT)
    manifest = read_manifest(built)
    assert (manifest["kind"], manifest["metric"], manifest["dim"], manifest["rows"]) == (
        "flat",
        "inner_product",
        32,
        120,
    )
    argv = ["--questions", questions_file, "--task", "custom", "--question-encoder", tiny_encoder]
    assert retrieve.run([*argv, "--index", built, "--top-k", "10", "--output", out]) == 0
    ids, scores, _ = reference(embeddings_dir, questions_file, load_encoder(tiny_encoder), 10)
    rows = read_table(out).to_pylist()
    np.testing.assert_allclose([r["doc_scores"] for r in rows], scores, rtol=1e-4)
    same = [len(set(r["passage_ids"]) & set(i)) for r, i in zip(rows, ids)]
    assert min(same) >= 9 and sum(same) >= 299  # a near tie may swap across the cut
    assert {r["log_partition"] for r in rows} == {None}


def test_bm25(passages_dir, questions_file, tmp_path):
    built, out = str(tmp_path / "bm25"), str(tmp_path / "r")
    assert index.run(["--passages", passages_dir, "--kind", "bm25", "--output", built]) == 0
    argv = ["--questions", questions_file, "--task", "custom", "--index", built, "--output", out]
    assert retrieve.run([*argv, "--top-k", "5"]) == 0
    texts = dict(zip(*(read_table(passages_dir)[c].to_pylist() for c in ("passage_id", "text"))))
    questions = {q.question_id: q.question for q in load_questions(questions_file, "custom").questions}
    for row in read_table(out).to_pylist():
        assert row["doc_scores"] == sorted(row["doc_scores"], reverse=True) and min(row["doc_scores"]) > 0
        asked = set(questions[row["question_id"]].rstrip("?").split())
        assert all(asked & set(texts[i].split()) for i in row["passage_ids"])
    with pytest.raises(UsageError, match="is a BM25 index; it takes no --question-encoder"):
        retrieve.run([*argv, "--question-encoder", "minilm", "--overwrite"])


def test_an_encoder_that_does_not_fit_is_refused(embeddings_dir, questions_file, tiny_encoder, tmp_path):
    import torch
    from transformers import BertModel

    other = tmp_path / "other"
    shutil.copytree(tiny_encoder, other)
    model = BertModel.from_pretrained(other)
    with torch.no_grad():
        model.embeddings.word_embeddings.weight += 0.1
    model.save_pretrained(other)
    argv = ["--questions", questions_file, "--task", "custom", "--embeddings", embeddings_dir]
    with pytest.raises(UsageError, match="the passages were embedded by"):
        retrieve.run([*argv, "--question-encoder", str(other), "--output", str(tmp_path / "r")])


@pytest.mark.parametrize(
    "extra, message",
    [
        ([], "give either --index or --embeddings"),
        (["--embeddings", "e", "--index", "i"], "give either"),
        (["--embeddings", "e"], "needs --question-encoder"),
        (["--embeddings", "e", "--question-encoder", "minilm", "--top-k", "0"], "at least 1"),
    ],
)
def test_options_that_do_not_go_together(questions_file, tmp_path, extra, message):
    with pytest.raises(UsageError, match=message):
        retrieve.run(
            ["--questions", questions_file, "--task", "custom", "--output", str(tmp_path / "r"), *extra]
        )


def test_no_questions_is_bad_data(embeddings_dir, tiny_encoder, tmp_path):
    (tmp_path / "q.jsonl").write_text("")
    argv = ["--questions", str(tmp_path / "q.jsonl"), "--task", "custom", "--question-encoder", tiny_encoder]
    with pytest.raises(DataError, match=r"q\.jsonl"):
        retrieve.run([*argv, "--embeddings", embeddings_dir, "--output", str(tmp_path / "r")])


def test_merging_does_not_depend_on_the_order_of_shards():
    fn = TopKFn(3)
    shards = [
        (0, ([[5.0, 1.0]], [["b", "x"]], [{}]), np.array([0.5])),
        (1, ([[5.0, 2.0]], [["a", "y"]], [{"q": 0.5}]), np.array([1.5])),
        (2, ([[3.0]], [["c"]], [{}]), np.array([-700.0])),
    ]
    results = []
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        accumulators = [fn.add_input(fn.create_accumulator(), shards[i]) for i in order]
        results.append(fn.extract_output(fn.merge_accumulators(accumulators)))
    assert results[0] == results[1] == results[2]
    (scores, ids, given), log_z = results[0]
    assert ids == [["a", "b", "c"]] and scores == [[5.0, 5.0, 3.0]] and given == [{"q": 0.5}]
    np.testing.assert_allclose(log_z, np.log(np.exp(0.5) + np.exp(1.5)))
    with pytest.raises(DataError, match="shard 1 answered twice"):
        fn.merge_accumulators([fn.add_input(fn.create_accumulator(), shards[1])] * 2)


def test_log_sum_exp_of_extremes():
    np.testing.assert_allclose(log_sum_exp([np.array([-1000.0]), np.array([-1000.0])]), [-1000 + np.log(2)])


def test_questions_and_passages_with_one_model(passages_dir, tmp_path, questions_file):
    """The built-in encoder through the whole line: a passage's own words find it first."""
    emb, out = str(tmp_path / "e"), str(tmp_path / "r")
    assert embed.run(["--passages", passages_dir, "--encoder", "minilm", "--output", emb]) == 0
    rows = read_table(passages_dir).to_pylist()[::12]
    asked = [{"question_id": r["passage_id"], "question": r["text"], "answers": ["x"]} for r in rows]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, asked)))
    argv = ["--questions", str(tmp_path / "q.jsonl"), "--task", "custom", "--question-encoder", "minilm"]
    assert retrieve.run([*argv, "--embeddings", emb, "--top-k", "3", "--output", out]) == 0
    found = read_table(out).to_pylist()
    assert sum(r["question_id"] in r["passage_ids"] for r in found) >= 9
    manifest = read_manifest(out)
    assert manifest["encoder_fit"] == "verified" and manifest["scores"]["score_scale"] == 20.0


def test_an_index_built_twice_has_equal_content(embeddings_dir, passages_dir, tmp_path):
    for kind, source in (("flat", ["--embeddings", embeddings_dir]), ("bm25", ["--passages", passages_dir])):
        digests = []
        for n in "ab":
            index.run([*source, "--kind", kind, "--output", str(tmp_path / kind / n)])
            digests.append(read_manifest(str(tmp_path / kind / n))["content_digest"])
        assert digests[0] == digests[1], "measured speeds are no content"


def test_every_step_of_a_search_asks_a_store_again(
    embeddings_dir, questions_file, tiny_encoder, tmp_path, monkeypatch
):
    argv = ["--questions", questions_file, "--task", "custom", "--question-encoder", tiny_encoder]
    argv += ["--embeddings", embeddings_dir, "--top-k", "10", "--output"]
    assert retrieve.run([*argv, str(tmp_path / "whole")]) == 0
    failed, waited = [], []

    def fails_once(name, function):
        def call(*args):
            if name not in failed:
                failed.append(name)
                raise UnreachableError("s3://b/x: cannot be used: 503")
            return function(*args)

        return call

    for name in ("encode", "search"):
        monkeypatch.setattr(ExactSearch, name, fails_once(name, getattr(ExactSearch, name)))
    monkeypatch.setattr(exact_search, "write_part", fails_once("write", exact_search.write_part))
    monkeypatch.setattr(parts.time, "sleep", waited.append)
    assert retrieve.run([*argv, str(tmp_path / "struck")]) == 0
    assert failed == ["encode", "search", "write"] and waited == [1.0] * 3
    one, other = (read_manifest(str(tmp_path / n))["content_digest"] for n in ("whole", "struck"))
    assert one == other
