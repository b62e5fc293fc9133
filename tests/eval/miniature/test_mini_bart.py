"""mini-bart's tokenizer, start, examples and a few steps of its training."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import torch

from eval.miniature.mini_bart import BOS, EOS, MASK, PAD, Size, new_generator, sinusoids, train_tokenizer
from eval.miniature.pretrain import Batches, Recipe, greedy, main, pretrain, rate
from eval.miniature.reading import CURRICULUM, draw_crowd, draw_denoising, draw_reading, sample_texts
from rag_core.errors import UsageError
from rag_core.models.generator import load_generator

TINY = Size(width=32, encoder_layers=2, decoder_layers=1, heads=2, feed_forward=32, positions=256)


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(sample_texts(0, 200), 900)


@pytest.fixture(scope="module")
def generator(tokenizer):
    return new_generator(tokenizer, TINY, seed=0).eval()


def test_a_name_is_the_same_tokens_at_a_start_and_inside_and_digits_stand_alone(tokenizer):
    alone, inside = tokenizer.encode(["Tarvik", "from Tarvik"])
    assert inside[-len(alone) :] == alone
    (year,) = tokenizer.encode(["1871"])
    assert len(year) == 4
    assert tokenizer.decode(tokenizer.encode(["Élan (1871–1934), ß / 東 // ok?"])[0]) == (
        "Élan (1871–1934), ß / 東 // ok?"
    )
    assert (tokenizer.before, tokenizer.after) == ([BOS], [EOS])


def test_the_start_is_scaled_by_width_and_positions_are_sinusoids(generator):
    weight = generator.model.model.encoder.layers[0].fc1.weight
    assert weight.std().item() == pytest.approx(32**-0.5, rel=0.1)
    positions = generator.model.model.encoder.embed_positions.weight
    assert np.allclose(positions.detach().numpy(), sinusoids(*positions.shape))
    assert positions.requires_grad
    assert generator.model.lm_head.weight is generator.model.model.shared.weight


def test_readings_hold_the_answer_unless_they_are_beside_the_mark():
    rng = random.Random(0)
    readings = [draw_reading(rng, CURRICULUM[-1]) for _ in range(400)]
    assert all(r.answer in r.text for r in readings if r.holds)
    assert not any(r.answer in r.text for r in readings if not r.holds)
    assert 0.5 < np.mean([r.holds for r in readings]) < 0.7
    assert any(r.title.endswith((" Prize", " Museum")) for r in readings)


def test_a_crowd_asks_one_question_over_namesakes():
    crowd = draw_crowd(random.Random(1), CURRICULUM[-1], 5)
    assert [r.holds for r in crowd] == [True] + [False] * (len(crowd) - 1)
    assert len({r.question for r in crowd}) == 1 and len({r.title for r in crowd}) == len(crowd)
    assert crowd[0].answer in crowd[0].text


def test_denoising_masks_spans_of_the_target(generator):
    noised, whole = draw_denoising(random.Random(4), CURRICULUM[1])
    kept = [w for w in noised.split() if w != "<mask>"]
    assert "<mask>" in noised and set(kept) <= set(whole.split())
    ids_NS, mask_NS, labels_NT = Batches(generator).denoising([(noised, whole)])
    assert (ids_NS == MASK).sum() == noised.count("<mask>")
    assert mask_NS.all() and labels_NT[0, 0] == BOS and labels_NT[0, -1] == EOS


def test_a_crowd_of_one_votes_like_plain_greedy(generator):
    readings = [draw_reading(random.Random(i), CURRICULUM[0]) for i in range(3)]
    ids_NS, mask_NS, *_ = Batches(generator).reading(readings)
    alone = greedy(generator, ids_NS, mask_NS, most=5)
    crowds = greedy(
        generator, ids_NS.repeat_interleave(2, 0), mask_NS.repeat_interleave(2, 0), crowd=2, most=5
    )
    assert alone == crowds


def test_the_rate_warms_up_and_falls_to_a_tenth():
    recipe = Recipe(steps=1000, warm_up=100, decay_from=0.5)
    assert rate(recipe, 50) == pytest.approx(0.5)
    assert rate(recipe, 300) == 1.0
    assert rate(recipe, 1000) == pytest.approx(0.1)


@pytest.mark.slow
def test_the_same_seed_trains_the_same_weights():
    recipe = Recipe(steps=3, batch=2, warm_up=2, tokenizer_texts=50, vocabulary=400, check_every=3)
    first, second = (pretrain(recipe, TINY, lambda row, generator: None) for _ in range(2))
    for (name, a), b in zip(first.model.state_dict().items(), second.model.state_dict().values()):
        assert torch.equal(a, b), name


@pytest.mark.parametrize("options", [["--steps", "0"], ["--batch", "0"]])
def test_nothing_to_train_is_refused(options, tmp_path):
    with pytest.raises(UsageError, match="at least 1"):
        main(["--output", str(tmp_path / "new"), *options])
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_the_command_writes_a_generator_that_loads(tmp_path):
    assert main(["--output", str(tmp_path), "--steps", "2", "--batch", "2"]) == 0
    written = {p.name for p in tmp_path.iterdir()}
    assert written >= {"config.json", "model.safetensors", "tokenizer.json", "recipe.json", "train_log.jsonl"}
    about = json.loads((tmp_path / "recipe.json").read_text())
    assert about["parameters"] <= 6_000_000
    assert (tmp_path / "model.safetensors").stat().st_size <= 15_000_000
    loaded = load_generator(str(tmp_path))
    assert loaded.layout.start == BOS and loaded.layout.bos is None and loaded.layout.pad == PAD
