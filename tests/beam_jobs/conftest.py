"""A small corpus and a tiny encoder, made once a session."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

WORDS = "river bridge castle painter winter harbour copper meadow engine lantern".split()


def write_corpus(directory: Path, files: int, rows: int, seed: int = 0) -> Path:
    """`files` TSV files of `rows` passages each, in DPR's layout."""
    rng = random.Random(seed)
    directory.mkdir(parents=True, exist_ok=True)
    for f in range(files):
        lines = [f"{f}-{r}\t{' '.join(rng.choices(WORDS, k=12))} {f} {r}\tTitle {f}" for r in range(rows)]
        (directory / f"corpus-{f:02d}.tsv").write_text("\n".join(["id\ttext\ttitle", *lines]) + "\n")
    return directory


def split_options(directory: Path, output: Path | str) -> list[str]:
    """What split is told to make `output` of the corpus that `write_corpus` wrote."""
    return ["--input", str(directory / "*.tsv"), "--input-format", "tsv", "--output", str(output)]


def write_questions(path: Path, n: int, seed: int = 1) -> Path:
    """`n` questions of the task `custom`."""
    rng = random.Random(seed)
    rows = [
        {
            "question_id": f"q{i}",
            "question": " ".join(rng.choices(WORDS, k=4)) + "?",
            "answers": [WORDS[i % 10]],
        }
        for i in range(n)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory) -> str:
    return make_tiny_encoder(tmp_path_factory.mktemp("tiny-encoder"))


def make_tiny_encoder(directory: Path) -> str:
    """A random BERT of 32 dimensions with a word-piece tokenizer over the corpus' words."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    directory.mkdir(exist_ok=True)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "title", "?", *map(str, range(200))]
    (directory / "vocab.txt").write_text("\n".join(pieces))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.3,
    )
    BertModel(config).save_pretrained(directory)
    BertTokenizerFast(str(directory / "vocab.txt")).save_pretrained(directory)
    return str(directory)


@pytest.fixture(scope="session")
def passages_dir(tmp_path_factory) -> str:
    """A finished passages run: 3 parts of 40 rows."""
    from beam_jobs import split

    root = tmp_path_factory.mktemp("corpus")
    write_corpus(root / "tsv", files=3, rows=40)
    output = str(root / "passages")
    assert split.run(split_options(root / "tsv", output)) == 0
    return output


@pytest.fixture(scope="session")
def embeddings_dir(passages_dir, tiny_encoder, tmp_path_factory) -> str:
    """The passages, embedded by the tiny encoder."""
    from beam_jobs import embed

    output = str(tmp_path_factory.mktemp("embeddings") / "run")
    assert embed.run(["--passages", passages_dir, "--encoder", tiny_encoder, "--output", output]) == 0
    return output


@pytest.fixture(scope="session")
def questions_file(tmp_path_factory) -> str:
    return str(write_questions(tmp_path_factory.mktemp("questions") / "q.jsonl", 30))
