"""The reader of real sentences: what it is trained on, and that the split is by article."""

from __future__ import annotations

import gzip
import json
import random

import pytest

from eval.miniature import real_reader
from eval.miniature.real_reader import Asked, read_squad, split_by_article, wilson, window
from rag_core.errors import DataError, UsageError
from rag_core.schemas import Question


def write_squad(root, articles=12, per_article=3):
    """Twelve articles with a passage and three questions each."""
    passages, questions = ["id\ttext\ttitle"], []
    for a in range(articles):
        text = f"The town of Art{a} has a river called Riv{a}. It lies near Hill{a}."
        passages.append(f"{a}\t{text}\tArticle_{a}")
        for q in range(per_article):
            row = {"id": f"{a}-{q}", "question": f"What river number {q} is in Art{a}?"}
            questions.append(json.dumps(row | {"answers": [f"Riv{a}"], "context_id": a}))
    with gzip.open(root / "c.tsv.gz", "wt", encoding="utf-8") as stream:
        stream.write("\n".join(passages) + "\n")
    with gzip.open(root / "q.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.write("\n".join(questions) + "\n")
    return root / "c.tsv.gz", root / "q.jsonl.gz"


def test_no_article_is_in_two_splits(tmp_path):
    asked = read_squad(*write_squad(tmp_path))
    assert asked[0].title == "Article 0" and asked[0].text.startswith("The town of Art0")
    split = split_by_article(asked, seed=0)
    assert {name: len(rows) for name, rows in split.items()} == {"train": 6, "dev": 6, "test": 24}
    titles = [{a.title for a in rows} for rows in split.values()]
    assert not (titles[0] & titles[1] | titles[0] & titles[2] | titles[1] & titles[2])
    assert split_by_article(asked, seed=0) == split != split_by_article(asked, seed=1)
    with pytest.raises(DataError, match="3 articles; 8 are for testing"):
        split_by_article(asked[:9], seed=0)


def test_a_window_holds_the_answer_and_about_as_many_words():
    rng = random.Random(0)
    text = " ".join(f"w{i}" for i in range(200)) + " the Answer (here), end"
    for _ in range(50):
        found = window(text, "the Answer", 20, rng)
        assert "the Answer" in found and found in text
        assert len(found.split()) <= 24
    assert window(text, "absent", 20, rng) is None
    assert window("Only this", "Only this", 5, rng) == "Only this"


def test_a_passage_that_is_missing_is_named(tmp_path):
    contexts, questions = write_squad(tmp_path)
    with gzip.open(questions, "at", encoding="utf-8") as stream:
        stream.write(json.dumps({"id": "x", "question": "?", "answers": ["a"], "context_id": 99}) + "\n")
    with pytest.raises(DataError, match="no passage '99', which question x names"):
        read_squad(contexts, questions)


def test_the_interval_is_wilsons():
    low, high = wilson(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)
    assert wilson(0, 10)[0] == 0.0


def test_the_command_trains_scores_and_returns_at_once_when_done(tmp_path, monkeypatch, capsys):
    contexts, questions = write_squad(tmp_path)
    monkeypatch.setattr(real_reader, "SIZE", real_reader.Size(32, 1, 1, 2, 64, vocabulary=300))
    argv = ["--contexts", str(contexts), "--questions", str(questions), "--output", str(tmp_path / "out")]
    assert real_reader.main([*argv, "--steps", "2"]) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["n"] == 24 and result["questions"] == {"train": 6, "dev": 6, "test": 24}
    assert result["ci_low"] <= result["exact_match"] <= result["ci_high"]
    assert len(result["test_articles"]) == 8
    capsys.readouterr()
    assert real_reader.main([*argv, "--steps", "2"]) == 0
    assert "already complete" in capsys.readouterr().out
    with pytest.raises(UsageError, match="a reader of another recipe"):
        real_reader.main([*argv, "--steps", "3"])
    with pytest.raises(UsageError, match="--steps 0"):
        real_reader.main([*argv, "--steps", "0"])
    for damaged in ("{", "[]", "{}"):
        (tmp_path / "out" / "result.json").write_text(damaged)
        with pytest.raises(DataError, match="out/result.json: "):
            real_reader.main([*argv, "--steps", "2"])
    with pytest.raises(UsageError, match="c.tsv.gz: a file, not a directory"):
        real_reader.main([*argv[:-1], str(contexts), "--steps", "2"])


def test_scores_do_not_depend_on_the_batch(tmp_path):
    question = Question("q", "What is it?", ("x",))
    asked = [Asked(question, "T", "word " * n) for n in (30, 3, 11)]
    generator = real_reader.new_generator(
        real_reader.train_tokenizer(["what is it word"] * 3, 300), real_reader.Size(32, 1, 1, 2, 64, 300), 0
    ).eval()
    assert real_reader.score(generator, asked) == real_reader.score(generator, asked, batch=1) == [False] * 3


def test_a_reader_may_begin_from_another(tmp_path):
    contexts, questions = write_squad(tmp_path)
    argv = ["--contexts", str(contexts), "--questions", str(questions), "--output", str(tmp_path / "out")]
    assert real_reader.main([*argv, "--generator", "mini-bart", "--steps", "1"]) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["recipe"]["generator"] == "mini-bart" and result["parameters"] == 3_295_680
    with pytest.raises(UsageError, match="a reader of another recipe"):
        real_reader.main([*argv, "--steps", "1"])
