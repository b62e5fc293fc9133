"""Retrieval inside training: questions without a passage, uneven numbers of them, scores under autocast."""

import json
import math
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from rag_core.errors import DataError
from rag_core.schemas import Question
from rag_core.training.evaluate import dev_exact_match
from rag_core.training.log import Log
from rag_core.training.loop import train
from rag_core.training.monitor import CollapseMonitor
from rag_core.training.retrieval import Bm25Retriever, DenseRetriever, retrieve
from tests.rag_core.training.test_loop import CONFIG, losses
from tests.reference.tiny_training import ArraySearch, DictStore, TinyEncoder, training_setup, world


class Some:
    """An index that finds `counts[question]` passages, as FAISS and BM25 may find fewer than asked for."""

    def __init__(self, counts):
        self.counts = counts
        self.ids = [p.passage_id for p in world()[0]]

    def search(self, questions, k):
        counts = [min(self.counts.get(str(q), k), k) for q in questions]
        return [[2.0 - i for i in range(n)] for n in counts], [self.ids[:n] for n in counts]


def test_a_question_without_a_passage_adds_nothing_and_stops_nothing(tmp_path, capfd):
    """BM25 finds nothing for a question of unknown words."""
    passages, examples = world()
    alone = examples[2].question
    found = {}
    for name, rows in (("all", examples), ("others", [e for e in examples if e.question != alone])):
        model, _, _ = training_setup()
        retriever = Bm25Retriever(Some({alone: 0}), DictStore(passages))
        config = replace(CONFIG, batch_size=len(rows), micro_batch_size=2)
        log = tmp_path / f"{name}.jsonl"
        train(model, rows, retriever, config, tmp_path / name, steps=3, log=Log(log))
        found[name] = np.array(losses(log))
    np.testing.assert_allclose(found["all"] * 6, found["others"] * 5, rtol=0.05)
    assert found["all"][0] * 6 == pytest.approx(found["others"][0] * 5, rel=1e-5)
    assert "step 1: nothing was found for 'q2': they add nothing to the loss" in capfd.readouterr().err
    records = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert [r["without_passages"] for r in records] == [1, 1, 1]
    assert all(math.isfinite(v) for r in records for v in r.values() if isinstance(v, float))


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_window_without_any_passage_changes_nothing(tmp_path, precision):
    passages, examples = world()
    model, _, _ = training_setup()
    before = {n: t.clone() for n, t in model.state_dict().items()}
    retriever = Bm25Retriever(Some({e.question: 0 for e in examples}), DictStore(passages))
    config = replace(CONFIG, precision=precision)
    train(model, examples, retriever, config, tmp_path, steps=2, log=Log(tmp_path / "l", quiet=True))
    assert all(torch.equal(t, before[n]) for n, t in model.state_dict().items())
    dev = [Question(e.question_id, e.question, (e.target,)) for e in examples]
    assert dev_exact_match(model, retriever, dev, config) == 0.0


def test_a_frozen_encoder_remembers_uneven_numbers_of_passages():
    passages, examples = world()
    encoder = TinyEncoder()
    vectors = TinyEncoder(1).encode_questions([f"{p.title} {p.text}" for p in passages])

    class Uneven(ArraySearch):
        def search(self, queries, k):
            scores, ids = super().search(queries, k)
            keep = [3 if q[0] > 0 else 1 for q in queries]
            return [s[:n] for s, n in zip(scores, keep)], [i[:n] for i, n in zip(ids, keep)]

    ids = [p.passage_id for p in passages]
    retriever = DenseRetriever(encoder, Uneven(ids, vectors), ids, vectors, DictStore(passages), False)
    questions = [e.question for e in examples]
    whole = DenseRetriever(encoder, Uneven(ids, vectors), ids, vectors, DictStore(passages), False)
    expected = retrieve(whole, questions, 3)
    for question in questions:  # one by one: every row is stored with a width of its own
        retrieve(retriever, [question], 3)
    found = retrieve(retriever, questions, 3)
    assert found.passage_ids == expected.passage_ids
    assert {len(i) for i in found.passage_ids} == {1, 3}
    torch.testing.assert_close(found.doc_scores_BK, expected.doc_scores_BK)


def test_doc_scores_are_float32_under_autocast():
    """DPR's inner products lie near 75; bf16 has steps of a half there, more than the prior turns on."""
    passages, examples = world()
    encoder = TinyEncoder()
    ids = [p.passage_id for p in passages]
    vectors = 9 * TinyEncoder(1).encode_questions([f"{p.title} {p.text}" for p in passages])
    retriever = DenseRetriever(encoder, ArraySearch(ids, vectors), ids, vectors, DictStore(passages), True)
    plain = retrieve(retriever, [e.question for e in examples], 3).doc_scores_BK
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = retrieve(retriever, [e.question for e in examples], 3).doc_scores_BK
    assert cast.dtype == torch.float32
    torch.testing.assert_close(cast, plain, atol=1e-4, rtol=1e-6)


def test_the_next_search_goes_on_beside_the_computation_with_the_same_encoder(tmp_path):
    """The search for micro-batch 2 ends before the gradients of micro-batch 1 exist, and no window sees
    an encoder of before its own update."""
    model, examples, retriever = training_setup()
    queries = []
    second_began = threading.Event()

    class Watched(ArraySearch):
        def search(self, asked_QD, k):
            queries.append(asked_QD.copy())
            if len(queries) == 2:
                second_began.set()
            return super().search(asked_QD, k)

    retriever.search = Watched(retriever.search.ids, retriever.search.vectors)
    first_encode, waited = model.encode, []

    def encode(*args):
        if not waited:
            waited.append(second_began.wait(10))
        return first_encode(*args)

    model.encode = encode
    config = replace(CONFIG, micro_batch_size=2, batch_size=4)
    train(model, examples, retriever, config, tmp_path, steps=2, log=Log(tmp_path / "l", quiet=True))
    assert waited == [True]
    assert [len(q) for q in queries] == [2, 2, 2, 2]
    apart, _, plain = training_setup()
    config = replace(CONFIG, batch_size=4)
    train(apart, examples, plain, config, tmp_path / "w", steps=2, log=Log(tmp_path / "m", quiet=True))
    np.testing.assert_allclose(losses(tmp_path / "l"), losses(tmp_path / "m"), rtol=1e-5)


def test_nan_in_the_question_encoder_is_one_clear_error(tmp_path):
    model, examples, retriever = training_setup()
    with torch.no_grad():
        model.question_encoder.module.weight[6] = torch.nan
    with pytest.raises(DataError, match="question encoder gives a vector that is not finite for 'where is "):
        train(model, examples, retriever, CONFIG, tmp_path, steps=2, log=Log(None, quiet=True))


def test_the_monitor_counts_steps_however_they_are_cut(tmp_path):
    figures = []
    for micro in (0, 1, 3):
        model, examples, retriever = training_setup()
        log = tmp_path / f"{micro}.jsonl"
        config = replace(CONFIG, micro_batch_size=micro)
        train(model, examples, retriever, config, tmp_path, steps=3, log=Log(log, quiet=True))
        last = json.loads(log.read_text().splitlines()[-1])
        figures.append([last[k] for k in ("distinct_passages", "distinct_lists", "prior_entropy")])
    np.testing.assert_allclose(figures[1], figures[0], rtol=1e-5)
    np.testing.assert_allclose(figures[2], figures[0], rtol=1e-5)


def test_the_monitor_leaves_out_questions_without_passages():
    monitor = CollapseMonitor()
    monitor.add([[]], torch.full((1, 3), -torch.inf), 0.0)
    assert monitor.figures() == {}
    monitor.add([["a", "b"], []], torch.tensor([[1.0, 1.0], [-torch.inf, -torch.inf]]), 0.5)
    assert monitor.figures()["prior_entropy"] == pytest.approx(math.log(2))


def test_passages_that_are_cut_are_counted_in_the_log(tmp_path):
    model, examples, retriever = training_setup()
    model.context_format = replace(model.context_format, max_length=9)
    log = tmp_path / "l.jsonl"
    train(model, examples, retriever, CONFIG, tmp_path, steps=2, log=Log(log, quiet=True))
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert [r["truncated_passages"] for r in records] == [12, 12]  # 4 questions of 3 passages, all too long
