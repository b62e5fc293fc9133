"""Tiny random encoders saved by transformers, with a tokenizer over a few words."""

from __future__ import annotations

import pytest

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] the of river lake town is in a north south king queen".split()


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory):
    from transformers import BertTokenizerFast

    path = tmp_path_factory.mktemp("tokenizer") / "vocab.txt"
    path.write_text("\n".join(PIECES))
    return BertTokenizerFast(str(path))


def config(kind):
    return kind(
        vocab_size=len(PIECES),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.3,
    )


@pytest.fixture(scope="session")
def dpr_dirs(tokenizer, tmp_path_factory):
    """(context encoder, question encoder) directories."""
    import torch
    from transformers import DPRConfig, DPRContextEncoder, DPRQuestionEncoder

    directories = []
    for seed, kind in enumerate((DPRContextEncoder, DPRQuestionEncoder)):
        torch.manual_seed(seed)
        directory = str(tmp_path_factory.mktemp(kind.__name__))
        kind(config(DPRConfig)).eval().save_pretrained(directory)
        tokenizer.save_pretrained(directory)
        directories.append(directory)
    return tuple(directories)


@pytest.fixture(scope="session")
def bert_dir(tokenizer, tmp_path_factory):
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(2)
    directory = str(tmp_path_factory.mktemp("bert"))
    BertModel(config(BertConfig)).eval().save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory
