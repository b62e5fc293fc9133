from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rag_core.retrieval import Bm25Index
from rag_core.schemas import Passage

ROOT = Path(__file__).resolve().parents[3]
CORPUS = [
    Passage("p:2", "Rivers", "The Nile is a long river in Africa, and the Nile floods."),
    Passage("p:1", "Lakes", "Lake Tana is the source of the Blue Nile."),
    Passage("p:0", "Bridges", "A bridge of stone over the water."),
]


def test_finds_by_words_of_title_and_text_and_drops_what_shares_none(tmp_path):
    index = Bm25Index.build(CORPUS, tmp_path / "index")
    scores, ids = index.search(["Where is the Nile?", "bridges", "zebra", "", "the of"], 10)
    assert ids == [["p:2", "p:1"], ["p:0"], [], [], []]
    assert all(score > 0 for row in scores for score in row)
    assert scores[0] == sorted(scores[0], reverse=True)


def test_survives_closing_and_keeps_ids(tmp_path):
    built = Bm25Index.build(CORPUS, tmp_path / "index")
    opened = Bm25Index.open(tmp_path / "index")
    assert len(opened) == 3
    assert opened.search(["nile river"], 5) == built.search(["nile river"], 5)


def test_equal_scores_are_ordered_by_id_also_at_the_cut(tmp_path):
    twins = [Passage(name, "T", "same words here") for name in ("c", "a", "d", "b")]
    index = Bm25Index.build(twins, tmp_path / "index")
    assert index.search(["words"], 3)[1] == [["a", "b", "c"]]
    assert index.search(["words"], 99)[1] == [["a", "b", "c", "d"]]
    assert index.search(["words"], 0)[1] == [[]]


def test_a_term_in_every_passage_still_scores_above_zero(tmp_path):
    common = [Passage(str(i), "", f"common word{i}") for i in range(20)]
    index = Bm25Index.build(common, tmp_path / "index")
    assert len(index.search(["common"], 50)[1][0]) == 20


def test_no_passages_and_passages_without_words(tmp_path):
    assert Bm25Index.build([], tmp_path / "none").search(["x"], 5) == ([[]], [[]])
    empty = Bm25Index.build([Passage("a", "", ""), Passage("b", "!", "?")], tmp_path / "empty")
    assert empty.search(["anything"], 5) == ([[]], [[]])


def test_refusals(tmp_path):
    with pytest.raises(ValueError, match="'a' comes twice"):
        Bm25Index.build([Passage("a", "", "x"), Passage("a", "", "y")], tmp_path / "twice")
    with pytest.raises(ValueError, match="not a finished BM25 index"):
        Bm25Index.open(tmp_path)
    with pytest.raises(ValueError, match="k = -1"):
        Bm25Index.build(CORPUS, tmp_path / "index").search(["nile"], -1)


def test_a_flipped_byte_is_found(tmp_path):
    Bm25Index.build(CORPUS, tmp_path / "index")
    path = tmp_path / "index" / "bm25" / "data.csc.index.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="data.csc.index.npy: its bytes have changed"):
        Bm25Index.open(tmp_path / "index")


def test_the_files_do_not_depend_on_the_process(tmp_path):
    """Sets of strings are ordered by a seed of the process; nothing of that may reach the index."""
    code = (
        "import sys; from rag_core.retrieval import Bm25Index; from rag_core.schemas import Passage;"
        "texts = [f'word{i} word{i * i % 17} town{i % 5}' for i in range(40)];"
        "Bm25Index.build([Passage(str(i), 'title', t) for i, t in enumerate(texts)], sys.argv[1])"
    )
    for seed in "12":
        env = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / seed)], check=True, env=env, cwd=ROOT)
    names = sorted(p.relative_to(tmp_path / "1") for p in (tmp_path / "1").rglob("*") if p.is_file())
    assert len(names) >= 6
    assert [n for n in names if (tmp_path / "1" / n).read_bytes() != (tmp_path / "2" / n).read_bytes()] == []
