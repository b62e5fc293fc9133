"""Retrieval inside the training loop.

The question encoder of *this* step searches; the passages' vectors are frozen. Search gives only ids:
the scores p(z|x) is made of are computed again, differentiably, as score_scale × (question vector ·
passage vector), so that the gradient reaches the question encoder and never the vectors.

Shapes: B questions, K passages, D numbers of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from rag_core.errors import DataError
from rag_core.schemas import Passage


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a batch of questions rests on: ids, passages, and logits [B, K] (−inf: not found)."""

    passage_ids: list[list[str]]
    passages: list[list[Passage]]
    doc_scores_BK: torch.Tensor


Pending = Callable[[], Retrieved]


class Retriever(Protocol):
    """Finds the passages of a batch of questions during training and evaluation."""

    def start(self, questions: Sequence[str], n_docs: int) -> Pending:
        """Begin a search with the encoder as it is now; the result waits for it.

        The search goes on in a thread beside the caller's computation. Random numbers (dropout) are
        drawn before this returns, so their order does not depend on the thread.
        """
        ...


def retrieve(retriever: Retriever, questions: Sequence[str], n_docs: int) -> Retrieved:
    """Search and wait."""
    return retriever.start(questions, n_docs)()


def _beside(search: Callable[..., Any], *args: Any) -> Future[Any]:
    """A search in a thread of its own, which ends with it."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="search")
    future = pool.submit(search, *args)
    pool.shutdown(wait=False)
    return future


class DenseRetriever:
    """Searches the whole corpus with the question encoder as it is now, exactly or through an index.

    `search(queries_QD, k) -> (scores, ids)` is any index of `rag_core.retrieval`; `vectors_ND` are
    the passages' vectors and `ids` their names. `trained=False` (a frozen question encoder) computes
    and keeps each question's vector and passages once.
    """

    def __init__(
        self, encoder: Any, search: Any, ids: Sequence[str], vectors_ND: np.ndarray, store: Any, trained: bool
    ):
        if vectors_ND.shape[1] != encoder.dim:
            raise DataError(
                f"passage vectors of {vectors_ND.shape[1]} numbers, question vectors of {encoder.dim}"
            )
        self.encoder, self.search, self.store, self.trained = encoder, search, store, trained
        self.vectors_ND = vectors_ND
        self.row_of = {passage_id: row for row, passage_id in enumerate(ids)}
        self._known: dict[tuple[str, int], tuple[list[str], torch.Tensor]] = {}

    def start(self, questions: Sequence[str], n_docs: int) -> Pending:
        if not self.trained:
            return lambda: self._frozen(questions, n_docs)
        tensors = [t.to(self.encoder.device) for t in self.encoder.tokenize_questions(questions)]
        vectors_BD = self.encoder.embed(*tensors)
        bad = (~torch.isfinite(vectors_BD).all(dim=1)).nonzero()[:, 0].tolist()
        if bad:
            raise DataError(
                f"the question encoder gives a vector that is not finite for {questions[bad[0]]!r} "
                f"({len(bad)} of {len(questions)}); nothing was saved from this step"
            )
        queries_BD = vectors_BD.detach().float().cpu().numpy()
        found = _beside(self.search.search, queries_BD, n_docs)
        return lambda: self._scored(vectors_BD, found.result()[1], n_docs)

    def _scored(self, vectors_BD: torch.Tensor, found: list[list[str]], n_docs: int) -> Retrieved:
        width = max((len(ids) for ids in found), default=0) or n_docs
        rows_BK = np.array([[self.row_of[i] for i in ids] + [0] * (width - len(ids)) for ids in found])
        docs_BKD = torch.from_numpy(np.asarray(self.vectors_ND[rows_BK], dtype=np.float32))
        docs_BKD = docs_BKD.to(vectors_BD.device)
        # Products and a sum, not a matrix product: autocast would round that to bf16, and an inner
        # product of 75, as DPR's are, to half a nat.
        scores_BK = self.encoder.score_scale * (vectors_BD.float()[:, None] * docs_BKD).sum(dim=2)
        counts_B1 = torch.tensor([[len(ids)] for ids in found], device=scores_BK.device)
        absent_BK = torch.arange(width, device=scores_BK.device) >= counts_B1
        return Retrieved(
            found, [self.store.get(ids) for ids in found], scores_BK.masked_fill(absent_BK, -torch.inf)
        )

    @torch.no_grad()
    def _frozen(self, questions: Sequence[str], n_docs: int) -> Retrieved:
        new = sorted({q for q in questions if (q, n_docs) not in self._known})
        if new:
            vectors_QD = self.encoder.encode_questions(new)
            _, found = self.search.search(vectors_QD, n_docs)
            scored = self._scored(torch.from_numpy(vectors_QD), found, n_docs)
            for question, ids, scores_K in zip(new, found, scored.doc_scores_BK):
                self._known[question, n_docs] = (ids, scores_K)
        found = [self._known[q, n_docs][0] for q in questions]
        scores_BK = pad_sequence(
            [self._known[q, n_docs][1] for q in questions], batch_first=True, padding_value=-torch.inf
        )
        width = max(len(ids) for ids in found)
        return Retrieved(found, [self.store.get(ids) for ids in found], scores_BK[:, :width])


class Bm25Retriever:
    """BM25 passages with their BM25 scores as logits; nothing in it is trained."""

    def __init__(self, index: Any, store: Any):
        self.index, self.store = index, store

    def start(self, questions: Sequence[str], n_docs: int) -> Pending:
        found = _beside(self.index.search, list(questions), n_docs)
        return lambda: self._scored(*found.result(), n_docs)

    def _scored(self, scores: list[Any], found: list[list[str]], n_docs: int) -> Retrieved:
        scores_BK = torch.full((len(found), n_docs), -torch.inf)
        for b, row in enumerate(scores):
            scores_BK[b, : len(row)] = torch.as_tensor(np.asarray(row, dtype=np.float32))
        return Retrieved(found, [self.store.get(ids) for ids in found], scores_BK)
