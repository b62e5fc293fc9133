"""Readings of other forms: true to their passages; their batches point at the words that matter."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
import torch

from eval.miniature.facts import COUNTRIES, SORTS
from eval.miniature.form_batches import FormBatches, choose_labels, form_loss
from eval.miniature.form_readings import (
    CLAIM_SHAPES,
    WHOLE,
    draw_claim,
    draw_clue,
    draw_question,
    draw_sentence,
)
from eval.miniature.forms import DRAW, Source, draw, finished, main, make_recipes, rate
from eval.miniature.guidance import Guide
from eval.miniature.matching import Matcher, find_matches
from eval.miniature.statements import LABELS, PREDICATES, SENTENCE_PREFIX
from rag_core.decoding.labels import label_tokens
from rag_core.errors import run_command
from rag_core.models import load_generator
from rag_core.models.context import ContextBuilder
from rag_core.schemas import Passage

OWN = [s for s in CLAIM_SHAPES if s.beside == 0]


@pytest.fixture(scope="module")
def generator():
    return load_generator("mini-bart")


def drawn(draw_one, shape, n=200, seed=0):
    rng = random.Random(seed)
    return [draw_one(rng, shape) for _ in range(n)]


@pytest.mark.parametrize("shape", OWN)
def test_claims_follow_from_their_passage(shape):
    readings = drawn(draw_claim, shape)
    assert {r.target for r in readings} == set(LABELS)
    for reading in readings:
        stated = reading.claimed in reading.text
        assert stated == (reading.target == LABELS[0])
        assert reading.question.endswith(f"{reading.claimed}.")
        assert all(name in reading.text for name in reading.copied)
        assert (reading.copied == ()) == (reading.target == LABELS[2])
        if reading.target == LABELS[1]:
            assert reading.copied != (reading.claimed,)


def test_claims_word_relations_as_test_claims_do():
    endings = [w.split("{a}")[0] for wordings in PREDICATES.values() for w in wordings]
    for reading in drawn(draw_claim, CLAIM_SHAPES[-1]):
        said = reading.question.removesuffix(f"{reading.claimed}.")
        assert any(said.endswith(ending) for ending in endings)


def test_sentences_hold_name_and_answer_and_are_asked_for():
    for reading in drawn(draw_sentence, WHOLE):
        assert reading.question.startswith(SENTENCE_PREFIX)
        assert reading.target.endswith(".") and all(name in reading.target for name in reading.copied)
    for reading in drawn(draw_question, WHOLE):
        assert not reading.question.startswith(SENTENCE_PREFIX)
        assert reading.copied in ((), (reading.target,))


def test_clues_are_asked_for_by_the_title_and_known_as_far_as_the_passage_goes():
    closed, sizes = {*COUNTRIES.values(), *(sort for sorts in SORTS.values() for sort in sorts)}, set()
    for reading in drawn(draw_clue, WHOLE):
        sizes.add(sum(name not in closed for name in reading.copied))
        assert reading.target.startswith("This ")
        assert all(name in reading.text and name in reading.target for name in reading.copied)
        if reading.copied:
            assert reading.question == reading.title
    assert sizes == {0, 1, 2}


@pytest.mark.parametrize("form", DRAW)
def test_batches_mark_what_is_copied_and_where_to(generator, form):
    batches, tokenizer = FormBatches(generator), generator.tokenizer
    readings = [draw(form, rng) for rng in map(random.Random, range(24))]
    batch = batches.build(readings)
    for n, reading in enumerate(readings):
        begins = batch.marks_NS2[n, :, 1].sum().item()
        assert begins == len(reading.copied)
        copied = [batch.ids_NS[n, s] for s in batch.place_NT[n].tolist() if s >= 0]
        wanted = [batch.labels_NT[n, t + 1] for t, s in enumerate(batch.place_NT[n].tolist()) if s >= 0]
        assert copied == wanted
        if form == "claim":
            (token,) = [t for t in batch.labels_NT[n, 1:].tolist() if t != generator.layout.pad]
            assert token == label_tokens((reading.target,), tokenizer)[0]
        else:
            said = tokenizer.decode(torch.stack(copied).tolist()) if copied else ""
            assert said.split() == " ".join(reading.copied).split()


def test_a_claims_tokens_look_for_themselves_in_the_passage():
    rows = [[0, 7, 8, 9, 5, 8, 9, 2], [0, 7, 5, 6, 2]]
    matches = find_matches(rows, [4, 2], [[8, 9], [6]], [True, False])
    assert matches.asked_NS.int().tolist() == [[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 0, 0, 0]]
    look = [[s.nonzero()[:, 0].tolist() for s in same] for same in matches.same_NSS]
    assert look[0][4:] == [[0], [2], [3], [0]] and look[1][2:5] == [[0], [0], [0]]
    assert matches.claimed_NS.nonzero().tolist() == [[0, 5], [0, 6], [1, 3]]
    with pytest.raises(ValueError, match="row 0: the claim does not hold"):
        find_matches(rows[:1], [4], [[3]], [True])


def test_match_and_agreement_cost_little_when_they_are_right(generator):
    matcher, ones = Matcher(generator), torch.ones(1, 4, dtype=torch.long)
    matches = find_matches([[0, 7, 7, 2]], [2], [[7]], [True])
    states = torch.zeros(1, 4, generator.config.d_model)
    with torch.no_grad():
        matcher.agreement.weight.zero_()
        matcher.agreement.bias.fill_(20.0)
        right = matcher(states, states, ones, matches)
        matcher.agreement.bias.fill_(-20.0)
        wrong = matcher(states, states, ones, matches)
    # Equal states attend evenly: half of -log 1/4 for each of two tokens, and the answer alone differs.
    assert right.item() == pytest.approx(torch.tensor(4.0).log().item(), abs=1e-4)
    assert wrong.item() - right.item() == pytest.approx(20.0, abs=1e-3)


def test_labels_are_the_likeliest_of_three(generator):
    batches = FormBatches(generator)
    readings = drawn(draw_claim, CLAIM_SHAPES[1], 5)
    found = choose_labels(generator, batches, readings)
    tokens = label_tokens(LABELS, generator.tokenizer)
    for reading, label in zip(readings, found):
        passage = Passage("", reading.title, reading.text)
        (row,) = ContextBuilder(generator.tokenizer).build([passage], reading.question)
        ids = torch.tensor([row])
        with torch.no_grad():
            states = generator.encode(ids, torch.ones_like(ids))
            start = torch.tensor([[generator.layout.start]])
            logits = generator.project(generator.decode(states, torch.ones_like(ids), start))[0, 0]
        assert label == LABELS[logits[tokens].argmax()]


def test_a_step_lowers_every_loss(generator):
    guide, matcher, batches = Guide(generator), Matcher(generator), FormBatches(generator)
    parameters = [*generator.parameters(), *guide.parameters(), *matcher.parameters()]
    before = [p.detach().clone() for p in parameters]
    for form in ("claim", "clue"):
        batch = batches.build([draw(form, rng, 1) for rng in map(random.Random, range(8))])
        losses = []
        for _ in range(2):
            loss, guidance = form_loss(generator, batch, guide, matcher)
            losses.append((loss.item(), guidance.item()))
            for p, g in zip(parameters, torch.autograd.grad(loss + guidance, parameters, allow_unused=True)):
                p.data -= 0.01 * (g if g is not None else 0)
        assert losses[1][0] < losses[0][0] and losses[1][1] < losses[0][1]
    for p, old in zip(parameters, before):
        p.data.copy_(old)


def test_batches_are_drawn_by_shares_and_the_same_for_a_seed():
    recipe = replace(make_recipes(100, 0)[0], batch=4, claims=(8, 6, 5, 4))

    def first(seed):
        source = Source(random.Random(seed), recipe)
        return [source.next(recipe.late, 3) for _ in range(12)]

    assert first(1) == first(1) != first(2)
    assert {len({r.claimed is None for r in batch}) for batch in first(1)} == {1}


def test_two_phases_share_the_steps():
    assert [r.steps for r in make_recipes(1200, 1)] == [900, 300]
    assert [r.steps for r in make_recipes(1, 1)] == [1]
    for recipe in make_recipes(1200, 1):
        for shares in (recipe.early, recipe.late):
            assert sum(share for _, share in shares) == pytest.approx(1)
            assert {form for form, _ in shares} <= {*DRAW, "reading"}


def test_the_rate_warms_up_and_falls():
    recipe = replace(make_recipes(100, 0)[0], steps=100, warm_up=10, decay_from=0.5, end_rate=0.1)
    assert [round(rate(recipe, s), 3) for s in (1, 10, 50, 75, 100)] == [0.1, 1.0, 1.0, 0.55, 0.1]


def test_the_command_writes_a_generator_once(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("eval.miniature.forms.final_checks", lambda *_: {"em": 0.0})
    out = tmp_path / "forms"
    argv = ["--output", str(out), "--steps", "1"]
    assert run_command(main, argv) == 0
    assert load_generator(str(out)).tokenizer is not None
    about = json.loads((out / "recipe.json").read_text())
    assert about["generator"] == "mini-bart" and [p["steps"] for p in about["phases"]] == [1]
    assert [json.loads(x)["phase"] for x in (out / "train_log.jsonl").open()] == ["first", "last check"]
    stamp = (out / "model.safetensors").stat().st_mtime_ns
    assert run_command(main, argv) == 0 and "already" in capsys.readouterr().out
    assert (out / "model.safetensors").stat().st_mtime_ns == stamp
    assert not finished(out, {"generator": "other"})
    assert run_command(main, ["--output", str(out), "--steps", "0"]) == 2
    assert run_command(main, ["--output", str(out / "recipe.json")]) == 2
