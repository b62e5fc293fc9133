"""The data line on real input: SQuAD's questions over its passages; skipped where the data is absent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from beam_jobs import embed, index, retrieve, split
from rag_core import read_embeddings
from rag_core.datasets import load_questions
from rag_core.run_dir import read_manifest
from rag_core.stages import read_table


def share_within(retrieved, gold, k):
    """Percent of questions whose gold passage is among the first k."""
    rows = read_table(retrieved).to_pylist()
    assert len(rows) == len(gold) == 10570
    return 100 * sum(bool(gold[r["question_id"]] & set(r["passage_ids"][:k])) for r in rows) / len(rows)


def assert_same_as_float64(retrieved, embeddings):
    """Every id of every question, with equal scores ordered by id; and the log-partitions."""
    ids, vectors_ND = read_embeddings(embeddings)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    names, vectors_ND = np.array([ids[i] for i in order]), vectors_ND[order].astype(np.float64)
    saved = sorted((Path(retrieved) / "_work").glob("queries-*.npy"))
    queries_QD = np.concatenate([np.load(path) for path in saved]).astype(np.float64)
    rows = read_table(retrieved).to_pylist()
    scale = read_manifest(retrieved)["scores"]["score_scale"]
    for row, query_D in zip(rows, queries_QD, strict=True):
        scores_N = vectors_ND @ query_D
        # Ids ascend, so a stable sort settles equal scores by id.
        assert row["passage_ids"] == names[np.argsort(-scores_N, kind="stable")[:100]].tolist()
        high = scale * scores_N.max()
        log_z = high + np.log(np.exp(scale * scores_N - high).sum())
        assert row["log_partition"] == pytest.approx(log_z, abs=1e-4)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_squad_through_every_kind_of_search(shared_data, tmp_path):
    """Measured elsewhere with the same weights: MiniLM 61.3/85.5/94.8, BM25 74.8/90.6/95.8 (top 1/5/20)."""
    squad = shared_data / "squad"
    at = {
        name: str(tmp_path / name)
        for name in ("passages", "embeddings", "flat", "bm25", "exact", "by_flat", "by_bm25")
    }
    assert (
        split.run(
            ["--input", str(squad / "contexts.tsv.gz"), "--input-format", "tsv", "--output", at["passages"]]
        )
        == 0
    )
    assert embed.run(["--passages", at["passages"], "--encoder", "minilm", "--output", at["embeddings"]]) == 0
    assert index.run(["--embeddings", at["embeddings"], "--kind", "flat", "--output", at["flat"]]) == 0
    assert index.run(["--passages", at["passages"], "--kind", "bm25", "--output", at["bm25"]]) == 0
    asked = ["--questions", str(squad / "questions.jsonl.gz"), "--task", "squad", "--top-k", "20"]
    dense = [*asked, "--question-encoder", "minilm"]
    exact = [*dense, "--top-k", "100", "--embeddings", at["embeddings"], "--output", at["exact"]]
    assert retrieve.run(exact) == 0
    assert_same_as_float64(at["exact"], at["embeddings"])
    assert retrieve.run([*asked, "--index", at["bm25"], "--output", at["by_bm25"]]) == 0
    questions = load_questions(str(squad / "questions.jsonl.gz"), "squad").questions
    gold = {q.question_id: set(q.gold_passages) for q in questions}
    for k, minilm, bm25 in ((1, 61.3, 74.8), (5, 85.5, 90.6), (20, 94.8, 95.8)):
        assert share_within(at["exact"], gold, k) == pytest.approx(minilm, abs=1.0)
        assert share_within(at["by_bm25"], gold, k) == pytest.approx(bm25, abs=1.0)
    assert min(read_table(at["exact"])["log_partition"].to_pylist()) > 0
