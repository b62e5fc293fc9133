"""A world of a few words, an encoder of one matrix and a tiny BART: enough to train through the marginal."""

import numpy as np
import tokenizers
import torch
from tokenizers import models, pre_tokenizers, processors
from torch import nn

from rag_core.models.generator import Generator
from rag_core.models.rag_model import RagModel
from rag_core.models.target_layout import TargetLayout
from rag_core.models.tokenizer import TextTokenizer
from rag_core.schemas import Passage
from rag_core.training.examples import Example
from rag_core.training.retrieval import DenseRetriever
from tests.reference.tiny_models import tiny_bart

NAMES = ["ada", "bea", "cyd", "dot", "eve", "fay"]
TOWNS = ["oslo", "rome", "bonn", "kiev", "lima", "nice"]
WORDS = ["<s>", "<pad>", "</s>", "<unk>", "/", "//", "where", "is", "lives", "in", *NAMES, *TOWNS]


def word_tokenizer() -> TextTokenizer:
    backend = tokenizers.Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return TextTokenizer(backend)


class TinyEncoder:
    """Bag of words through one matrix, with what training uses of `TextEncoder`."""

    dim, score_scale, fits_passage_encoder = 8, 2.0, None

    def __init__(self, seed: int = 0):
        torch.manual_seed(seed)
        self.module = nn.Embedding(len(WORDS), self.dim)
        self.device = torch.device("cpu")
        self.tokenizer = word_tokenizer()

    def tokenize_questions(self, questions):
        rows = self.tokenizer.encode(questions)
        ids = torch.ones((len(rows), max(map(len, rows))), dtype=torch.long)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = torch.tensor(row)
        return ids, (ids != 1).long()

    def embed(self, input_ids_BS, attention_mask_BS):
        vectors = self.module(input_ids_BS) * attention_mask_BS[:, :, None]
        return nn.functional.normalize(vectors.sum(dim=1), dim=-1)

    @torch.no_grad()
    def encode_questions(self, questions):
        return self.embed(*self.tokenize_questions(questions)).numpy()


class ArraySearch:
    """Exact search by NumPy."""

    def __init__(self, ids, vectors):
        self.ids, self.vectors = ids, vectors

    def search(self, queries, k):
        scores = queries @ self.vectors.T
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(scores, order, axis=1).tolist(), [
            [self.ids[i] for i in row] for row in order
        ]


class DictStore:
    def __init__(self, passages):
        self.passages = {p.passage_id: p for p in passages}

    def get(self, ids):
        return [self.passages[i] for i in ids]


def world():
    passages = [Passage(f"p{i}", n, f"{n} lives in {t}") for i, (n, t) in enumerate(zip(NAMES, TOWNS))]
    examples = [Example(f"q{i}", f"where is {n}", t) for i, (n, t) in enumerate(zip(NAMES, TOWNS))]
    return passages, examples


def training_setup(kind: str = "token", seed: int = 0, trained: bool = True):
    """model, examples, retriever: ready for `train`."""
    passages, examples = world()
    layout = TargetLayout(start=2, bos=None, eos=2, pad=1)
    bart = tiny_bart(vocab_size=len(WORDS), seed=seed, std=0.2)
    encoder = TinyEncoder(seed)
    if not trained:
        encoder.module.requires_grad_(False)
    model = RagModel(Generator(bart, layout, word_tokenizer()), encoder, kind=kind, n_docs=3)
    ids = [p.passage_id for p in passages]
    vectors = TinyEncoder(seed + 1).encode_questions([f"{p.title} {p.text}" for p in passages])
    retriever = DenseRetriever(encoder, ArraySearch(ids, vectors), ids, vectors, DictStore(passages), trained)
    return model, examples, retriever
