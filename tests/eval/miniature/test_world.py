"""The miniature world: the same for a seed, well-formed, with splits that do not touch."""

from __future__ import annotations

import bz2
import hashlib
import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from eval.miniature import demo
from eval.miniature.world import build_world, main, snapshot, write_world
from rag_core.errors import run_command

ARTICLES = 400
NS = "{http://www.mediawiki.org/xml/export-0.11/}"


@pytest.fixture(scope="module")
def world():
    return build_world(ARTICLES, seed=3)


def test_the_same_seed_gives_the_same_bytes(tmp_path, world):
    first = write_world(world, tmp_path / "a")
    second = write_world(build_world(ARTICLES, seed=3), tmp_path / "b")
    assert first["sha256"] == second["sha256"]
    other = write_world(build_world(ARTICLES, seed=4), tmp_path / "c")
    assert not set(first["sha256"].values()) & set(other["sha256"].values())


def test_articles_have_unique_titles_and_page_ids(world):
    titles = [a.title for a in (*world.entities, *world.named_after)]
    assert len(titles) == len(set(titles)) == ARTICLES
    pages = snapshot(world, 2016)
    assert len({p.page_id for p in pages}) == len(pages)
    assert len({(p.namespace, p.title) for p in pages}) == len(pages)


def test_answers_stand_in_their_article_and_in_no_namesakes(world):
    text = {p.page_id: p.wikitext for p in snapshot(world, 2016)}
    group_of = {e.page_id: group for _, group in world.groups for e in group}
    for name in ("train", "dev", "test", "leaders_2016"):
        for row in world.questions[name]:
            (page_id,) = map(int, row["gold_pages"])
            (answer,) = row["answers"]
            assert answer in text[page_id]
            others = [e for e in group_of[page_id] if e.page_id != page_id] + world.named_after
            assert not any(answer in text[e.page_id] for e in others)


def test_splits_share_no_entity_and_no_name(world):
    entity = {e.page_id: e for e in world.entities}

    def asked(name):
        return {entity[int(r["gold_pages"][0])].name for r in world.questions[name]}

    names = {name: asked(name) for name in ("train", "dev", "test", "leaders_2016")}
    assert not names["train"] & (names["dev"] | names["test"] | names["leaders_2016"])
    assert not names["dev"] & names["test"]


def test_every_question_names_the_bearer_and_ids_are_unique(world):
    entity = {e.page_id: e for e in world.entities}
    for name, rows in world.questions.items():
        assert len({r["question_id"] for r in rows}) == len(rows), name
        for row in rows:
            assert entity[int(row["gold_pages"][0])].name in row["question"]
            assert row["question"].endswith("?")


def test_leaders_change_between_the_snapshots_and_nothing_else_does(world):
    before, after = ({r["question_id"]: r for r in world.questions[f"leaders_{y}"]} for y in (2016, 2018))
    assert before.keys() == after.keys() and len(before) > 20
    for question_id, row in before.items():
        assert row["question"] == after[question_id]["question"]
        assert row["answers"] != after[question_id]["answers"]
    pages_2016, pages_2018 = snapshot(world, 2016), snapshot(world, 2018)
    changed = {a.page_id for a, b in zip(pages_2016, pages_2018, strict=True) if a != b}
    assert changed == world.changed.keys()
    text_2018 = {p.page_id: p.wikitext for p in pages_2018}
    assert all(r["answers"][0] in text_2018[int(r["gold_pages"][0])] for r in after.values())


def test_what_is_named_after_an_entity_carries_its_name_and_no_fact(world):
    by_name = {group[0].name: group for _, group in world.groups if group[0].kind != "office"}
    for article in world.named_after:
        name = max((n for n in by_name if n in article.title), key=len)
        assert article.text.count(name) >= len(by_name[name])
        facts = [answer for entity in by_name[name] for answer in entity.facts.values()]
        assert not any(answer in article.text for answer in facts)


def test_namesakes_share_neither_sort_nor_decade_nor_country(world):
    for _, group in world.groups:
        if group[0].kind != "office":
            for cue in ("sort", "decade", "country"):
                assert len({getattr(e, cue) for e in group}) == len(group)


def test_small_worlds_still_ask_500_test_questions():
    questions = build_world(1000).questions
    assert len(questions["test"]) >= 500 and len(questions["leaders_2016"]) >= 100


def test_the_dump_is_mediawiki_xml(tmp_path, world):
    about = write_world(world, tmp_path / "w")
    root = ET.fromstring(bz2.decompress((tmp_path / "w/dump-2018.xml.bz2").read_bytes()))
    assert root.tag == NS + "mediawiki" and root.get("version") == "0.11"
    pages = root.findall(NS + "page")
    assert len(pages) == len(snapshot(world, 2018))
    assert any(p.find(NS + "redirect") is not None for p in pages)
    assert {p.findtext(NS + "ns") for p in pages} == {"0", "1", "10"}
    rows = [json.loads(x) for x in (tmp_path / "w/questions/test.jsonl").read_text().splitlines()]
    assert len(rows) == about["questions"]["test"]
    assert rows[0].keys() == {"question_id", "question", "answers", "answer_kind", "gold_pages"}


def test_the_same_world_again_is_kept_and_another_refused(tmp_path, world):
    about = write_world(world, tmp_path)
    before = (tmp_path / "dump-2016.xml.bz2").stat().st_mtime_ns
    assert write_world(world, tmp_path) == about
    assert (tmp_path / "dump-2016.xml.bz2").stat().st_mtime_ns == before
    with pytest.raises(FileExistsError, match="not empty"):
        write_world(build_world(ARTICLES, seed=4), tmp_path)
    (tmp_path / "world.json").unlink()
    (tmp_path / "dump-2016.xml.bz2").write_bytes(b"half")
    assert write_world(world, tmp_path) == about
    assert (tmp_path / "dump-2016.xml.bz2").read_bytes() != b"half"


def test_another_world_gives_way_when_told_and_nothing_else_does(tmp_path, world, capsys):
    write_world(replace(world, questions={**world.questions, "old": []}), tmp_path)
    other = build_world(ARTICLES, seed=4)
    about = write_world(other, tmp_path, overwrite=True)
    assert json.loads((tmp_path / "world.json").read_text()) == about and about["seed"] == 4
    assert not (tmp_path / "questions/old.jsonl").exists(), "of the world before"
    (tmp_path / "kept.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="not empty"):
        write_world(world, tmp_path, overwrite=True)
    assert json.loads((tmp_path / "world.json").read_text()) == about
    (tmp_path / "world.json").write_text("[")
    assert run_command(main, ["--output", str(tmp_path), "--articles", "200", "--overwrite"]) == 3
    assert "world.json: not valid JSON" in capsys.readouterr().err
    assert (tmp_path / "kept.txt").read_text() == "mine"


def test_refuses_a_directory_with_content_and_tiny_worlds(tmp_path, capsys):
    (tmp_path / "kept.txt").write_text("mine")
    assert run_command(main, ["--output", str(tmp_path), "--articles", "200"]) == 2
    assert "error: " in (said := capsys.readouterr().err) and "not empty" in said
    assert run_command(main, ["--output", str(tmp_path / "new"), "--articles", "20"]) == 2
    assert "at least 200" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert run_command(main, ["--output", str(tmp_path / "file"), "--articles", "200"]) == 2
    assert run_command(main, ["--nope"]) == 2


@pytest.mark.parametrize("options", [["--articles", "60"], ["--steps", "0"]])
def test_the_demo_refuses_before_it_begins(options, tmp_path, capsys):
    assert run_command(demo.main, ["--output", str(tmp_path / "demo"), *options]) == 2
    assert options[0] in capsys.readouterr().err and not (tmp_path / "demo").exists()


def test_what_tasks_add_leaves_the_world_itself_as_it_was(tmp_path):
    """The demo's figures, and mini-bart's, were made on these bytes (2026-11-30)."""
    about = write_world(build_world(200, seed=0), tmp_path)
    digest = hashlib.sha256(json.dumps(about["sha256"], sort_keys=True).encode()).hexdigest()
    assert digest == "ccf59fca1ae0dbafdf5daddbacf631383bedbf5e5a76e7a4691d64c07b4e918c"
