"""The generator in the package: loads by its name, and reads what it was never shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rag_core.models
from rag_core.decoding import DecodingConfig, answer_questions
from rag_core.models import RagModel, load_generator
from rag_core.schemas import Passage, Question

HOME = Path(rag_core.models.__file__).parent / "mini_bart"
TEXT = "{name}, born in 1904, was a painter of Ilmeria. He was born in {town}. In 1936 he married {spouse}."


@pytest.fixture(scope="module")
def model() -> RagModel:
    return RagModel(load_generator("mini-bart"), kind="token").eval()


PEOPLE = [
    ("Corin Maddow", "Tatgarth", "Pisan Bundane"),
    ("Belis Turrock", "Stormvik", "Nisa Buver"),
    ("Ferun Caldick", "Mormihaven", "Thurine Manday"),
    ("Oskan Dremel", "Brirford", "Gendus Fandick"),
]


def test_it_reads_names_never_seen(model):
    """Greedy exact match was 96.9 on fresh entities when it was trained; here 6 of 8 are asked for."""
    right = 0
    for name, town, spouse in PEOPLE:
        text = TEXT.format(name=name, town=town, spouse=spouse)
        passages = [Passage("1:0", f"{name} (born 1904)", text)]
        asked = [
            Question("q1", f"Where was {name} born?", (town,)),
            Question("q2", f"Who was the spouse of {name}?", (spouse,)),
        ]
        config = DecodingConfig(max_length=24)
        found = answer_questions(model, asked, [passages, passages], [[1.0], [1.0]], config)
        right += sum(p.prediction == q.answers[0] for p, q in zip(found, asked))
    assert right >= 6


def test_it_is_as_small_as_promised_and_says_how_it_was_made(model):
    assert sum(p.numel() for p in model.generator.parameters()) <= 6_000_000
    assert sum(f.stat().st_size for f in HOME.iterdir()) <= 15_000_000
    recipe = json.loads((HOME / "recipe.json").read_text())
    assert recipe["recipe"]["seed"] == 1 and recipe["parameters"] <= 6_000_000
    assert len((HOME / "train_log.jsonl").read_text().splitlines()) > 10
