"""The test sets of the paper's tasks: what they say is true, and only the article tells."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from eval.miniature.facts import RELATIONS
from eval.miniature.statements import LABELS, PREDICATES, SENTENCE_PREFIX
from eval.miniature.tasks import with_tasks
from eval.miniature.tasks.articles import claimable, withheld
from eval.miniature.tasks.qa import FLAVOURS
from eval.miniature.world import build_world, main, snapshot
from rag_core.answers import has_answer
from rag_core.errors import run_command
from rag_core.passages import split_words
from rag_core.training.targets import expand_regex
from rag_core.wiki import clean_wikitext

ARTICLES = 600
KEYS = {"question_id", "question", "answers", "answer_kind", "gold_pages"}


@pytest.fixture(scope="module")
def plain():
    return build_world(ARTICLES, seed=5)


@pytest.fixture(scope="module")
def world(plain):
    return with_tasks(plain)


@pytest.fixture(scope="module")
def passages(world):
    """page id → its passages, as the split job cuts them."""
    return {p.page_id: split_words(p.title, clean_wikitext(p.wikitext)) for p in snapshot(world, 2016)}


def sets(world):
    return {name: rows for name, rows in world.questions.items() if name.startswith("tasks/")}


def page(row):
    (page_id,) = row["gold_pages"]
    return int(page_id)


def test_rows_are_custom_questions_about_real_pages_with_ids_of_their_own(world):
    pages = {e.page_id for e in world.entities}
    for name, rows in sets(world).items():
        assert rows, name
        assert len({r["question_id"] for r in rows}) == len(rows), name
        for row in rows:
            assert row.keys() >= KEYS and page(row) in pages
            assert row["question"].strip() and all(a.strip() for a in row["answers"])
    assert len({frozenset(r) for r in world.questions["tasks/train"]}) == 1


def test_the_same_seed_gives_the_same_sets_and_another_seed_others(plain, world):
    assert with_tasks(plain) == world
    other = with_tasks(build_world(ARTICLES, seed=6))
    for name, rows in sets(world).items():
        assert rows != other.questions[name]


def test_no_page_of_the_train_split_is_asked_about_elsewhere(world):
    split_of = {e.page_id: split for split, group in world.groups for e in group}
    name_of = {e.page_id: e.name for e in world.entities}
    trained = {page(row) for row in world.questions["tasks/train"]}
    assert {split_of[i] for i in trained} == {"train"}
    assert {split_of[page(row)] for row in world.questions["tasks/dev"]} == {"dev"}
    for name, rows in sets(world).items():
        if name.endswith(".test"):
            assert {split_of[page(r)] for r in rows} <= {"test", "leaders"}
            assert not {name_of[page(r)] for r in rows} & {name_of[i] for i in trained}


def test_nothing_that_is_tested_was_trained_or_tuned_on(world):
    """Questions, claims, answers and the names in them: of the test sets none is in train or dev."""
    split_of = {e.page_id: split for split, group in world.groups for e in group}
    asked, said, facts = set(), set(), set()
    for name in ("train", "dev"):
        for row in world.questions[f"tasks/{name}"]:
            asked.add(row["question"])
            said |= set(row["answers"]) - set(LABELS)
    for entity in world.entities:
        if split_of[entity.page_id] in ("train", "dev"):
            facts |= {entity.name, *entity.facts.values()}
    tested = {
        n: rows for n, rows in world.questions.items() if n.endswith(".test") or n.startswith("leaders")
    }
    assert len(tested) == 7
    for name, rows in tested.items():
        for row in rows:
            assert row["question"] not in asked, name
            assert not set(row["answers"]) & said, name
            assert not any(fact in row["question"] for fact in facts), name


def test_four_flavours_of_questions_are_equally_many_and_never_ask_the_same(world, passages):
    rows = world.questions["tasks/qa.test"]
    sizes = Counter(row["set"] for row in rows)
    assert set(sizes) == set(FLAVOURS) and max(sizes.values()) - min(sizes.values()) <= 1
    assert len({(page(r), r["relation"]) for r in rows}) == len(rows)
    for row in rows:
        text = " ".join(passages[page(row)])
        assert (row["answer_kind"] == "regex") == (row["set"] == "regex")
        if row["set"] == "regex":
            assert all(re.compile(p) for p in row["answers"])
            assert has_answer(text, row["answers"], "regex")
            assert expand_regex(row["answers"][0])
        else:
            assert has_answer(text, row["answers"][:1])
        assert (len(row["answers"]) > 1) >= (row["set"] == "aliases")


def test_patterns_match_the_answer_from_its_start_to_its_end(world):
    facts = {e.page_id: e.facts for e in world.entities}
    for row in world.questions["tasks/qa.test"]:
        answer = facts[page(row)][row["relation"]]
        if row["set"] == "regex":
            assert any(re.fullmatch(p, answer) for p in row["answers"])
            others = [f[row["relation"]] for i, f in facts.items() if i != page(row) and row["relation"] in f]
            assert not any(re.match(p, other) for p in row["answers"] for other in others)
        else:
            assert row["answers"][0] == answer


def test_short_questions_are_shorter(world):
    words = {name: [] for name in FLAVOURS}
    for row in world.questions["tasks/qa.test"]:
        words[row["set"]].append(len(row["question"].split()))
    mean = {name: sum(found) / len(found) for name, found in words.items()}
    assert mean["short"] < min(mean[name] for name in FLAVOURS if name != "short") - 2


def test_abstract_answers_are_sentences_that_hold_the_fact(world):
    facts = {e.page_id: e.facts for e in world.entities}
    for row in world.questions["tasks/abstract.test"]:
        assert row["question"].startswith(SENTENCE_PREFIX) and row["question"].endswith("?")
        assert len(set(row["answers"])) == 2
        for answer in row["answers"]:
            assert answer.endswith(".") and facts[page(row)][row["relation"]] in answer


def test_clues_hold_two_facts_never_the_name_and_passages_say_where_the_facts_stand(world, passages):
    entity_of = {e.page_id: e for e in world.entities}
    rows = world.questions["tasks/clue.test"]
    n_two = sum(row["passages"] == "two" for row in rows)
    assert 0.35 * len(rows) < n_two < 0.7 * len(rows)
    assert len({row["question"] for row in rows}) == len(rows)
    for row in rows:
        entity = entity_of[page(row)]
        first, second = list(entity.facts.values())[:2]
        assert row["question"] == entity.title
        assert all(first in clue and second in clue and entity.name not in clue for clue in row["answers"])
        where = [
            {i for i, text in enumerate(passages[entity.page_id]) if fact in text} for fact in (first, second)
        ]
        assert all(len(places) == 1 for places in where), row
        assert (where[0] != where[1]) == (row["passages"] == "two"), row


def test_all_stated_facts_stand_whole_in_one_passage_and_withheld_ones_nowhere(plain, world, passages):
    before = {e.page_id: e for e in plain.entities}
    for entity in world.entities:
        texts = passages[entity.page_id]
        for relation, answer in before[entity.page_id].facts.items():
            found = [i for i, text in enumerate(texts) if answer in text]
            if relation not in entity.facts:
                assert not found
            elif entity.later:
                assert found == [int(relation in entity.later)], (entity, relation)
        assert len(withheld(entity)) == (not entity.later)


def test_claims_are_balanced_and_true_false_or_open_by_the_article_alone(world, passages):
    entity_of = {e.page_id: e for e in world.entities}
    rows = world.questions["tasks/fever3.test"]
    assert len(set(Counter(r["answers"][0] for r in rows).values())) == 1
    by_label = {label: Counter() for label in LABELS}
    for row in rows:
        entity, (label,) = entity_of[page(row)], row["answers"]
        assert row["answer_kind"] == "label" and entity.name in row["question"]
        text = " ".join(passages[entity.page_id])
        by_label[label][row["relation"]] += 1
        claimed = claimed_name(row)
        if label == LABELS[0]:
            assert claimed == entity.facts[row["relation"]] and claimed in text
        elif label == LABELS[1]:
            assert row["relation"] in entity.facts and entity.facts[row["relation"]] != claimed
            assert claimed not in text
        else:
            assert row["relation"] not in entity.facts and claimed not in text
    assert all(counts.keys() <= set(PREDICATES) - {"holder"} for counts in by_label.values())


def claimed_name(row):
    """The name that a claim gives: what fills the predicate's slot at its end."""
    for wording in PREDICATES[row["relation"]]:
        if match := re.search(
            re.escape(wording).replace(r"\{a\}", r"([A-Z][\w ]*)") + r"\.$", row["question"]
        ):
            return match[1]
    raise AssertionError(row)


def test_claims_say_what_some_article_says_so_that_a_name_alone_tells_nothing(world):
    answers = {relation: set() for relation in PREDICATES}
    for split, group in world.groups:
        if split == "test":
            for entity in group:
                for relation, answer in entity.facts.items():
                    answers[relation].add(answer)
    for row in world.questions["tasks/fever3.test"]:
        assert claimed_name(row) in answers[row["relation"]]


def test_two_way_claims_are_the_three_way_ones_that_are_decided(world):
    three, two = world.questions["tasks/fever3.test"], world.questions["tasks/fever2.test"]
    assert two == [row for row in three if row["answers"] != ["NOT ENOUGH INFO"]]


def test_the_mixture_holds_every_form_and_labels_for_claims_alone(world):
    for name in ("train", "dev"):
        rows = world.questions[f"tasks/{name}"]
        assert {row["form"] for row in rows} == {"qa", "abstract", "clue", "claim"}
        for row in rows:
            assert (row["answer_kind"] == "label") == (row["form"] == "claim")
            assert (row["answers"][0] in LABELS) == (row["form"] == "claim")
            assert (row["form"] == "abstract") == row["question"].startswith(SENTENCE_PREFIX)


def test_withholding_leaves_no_question_without_its_answer(plain, world, passages):
    for name in ("train", "dev", "test", "leaders_2016"):
        assert {r["question_id"] for r in world.questions[name]} <= {
            r["question_id"] for r in plain.questions[name]
        }
        for row in world.questions[name]:
            assert has_answer(" ".join(passages[page(row)]), row["answers"])
    assert world.questions["leaders_2018"] == plain.questions["leaders_2018"]
    for page_id, office in world.changed.items():
        assert office.facts["holder"] == plain.changed[page_id].facts["holder"]


def test_the_world_itself_is_untouched(plain, world):
    assert all(len(e.facts) == len(RELATIONS[e.kind]) and not e.later for e in plain.entities)
    assert [len(claimable(e)) > 1 for e in world.entities] == [True] * len(world.entities)


def test_five_thousand_articles_give_five_hundred_of_everything():
    questions = with_tasks(build_world(5000, seed=0)).questions
    qa, clue = questions["tasks/qa.test"], questions["tasks/clue.test"]
    assert min(Counter(row["set"] for row in qa).values()) >= 500
    assert min(Counter(row["passages"] for row in clue).values()) >= 500
    for name in ("tasks/abstract.test", "tasks/fever3.test", "tasks/fever2.test", "leaders_2016"):
        assert len(questions[name]) >= 500


def test_the_command_writes_them_only_when_asked(tmp_path):
    assert run_command(main, ["--output", str(tmp_path / "a"), "--articles", "300", "--tasks"]) == 0
    assert run_command(main, ["--output", str(tmp_path / "b"), "--articles", "300"]) == 0
    names = {p.name for p in (tmp_path / "a/questions/tasks").iterdir()}
    wanted = {"qa.test", "abstract.test", "clue.test", "fever3.test", "fever2.test", "train", "dev"}
    assert names == {f"{name}.jsonl" for name in wanted}
    assert not (tmp_path / "b/questions/tasks").exists()
    about = json.loads((tmp_path / "a/world.json").read_text())
    assert about["questions"]["tasks/fever3.test"] > 0
