"""The data line on real input: SQuAD's questions over its passages; skipped where the data is absent."""

from __future__ import annotations

import pytest

from beam_jobs import embed, index, retrieve, split
from rag_core.datasets import load_questions
from rag_core.stages import read_table


def share_within(retrieved, gold, k):
    """Percent of questions whose gold passage is among the first k."""
    rows = read_table(retrieved).to_pylist()
    assert len(rows) == len(gold) == 10570
    return 100 * sum(bool(gold[r["question_id"]] & set(r["passage_ids"][:k])) for r in rows) / len(rows)


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
    assert retrieve.run([*dense, "--embeddings", at["embeddings"], "--output", at["exact"]]) == 0
    assert retrieve.run([*asked, "--index", at["bm25"], "--output", at["by_bm25"]]) == 0
    questions = load_questions(str(squad / "questions.jsonl.gz"), "squad").questions
    gold = {q.question_id: set(q.gold_passages) for q in questions}
    for k, minilm, bm25 in ((1, 61.3, 74.8), (5, 85.5, 90.6), (20, 94.8, 95.8)):
        assert share_within(at["exact"], gold, k) == pytest.approx(minilm, abs=1.0)
        assert share_within(at["by_bm25"], gold, k) == pytest.approx(bm25, abs=1.0)
    assert min(read_table(at["exact"])["log_partition"].to_pylist()) > 0
