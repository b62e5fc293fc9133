"""Dev exact match through the real decoder, with the question encoder as it is now."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rag_core.answers import exact_match
from rag_core.decoding import DecodingConfig, answer_questions
from rag_core.models.rag_model import RagModel
from rag_core.schemas import Question
from rag_core.training.config import TrainConfig
from rag_core.training.distributed import Group
from rag_core.training.retrieval import Retriever, retrieve


def dev_exact_match(
    model: RagModel,
    retriever: Retriever | None,
    dev: Sequence[Question],
    config: TrainConfig,
    group: Group | None = None,
) -> float:
    """Share of dev questions whose greedy answer matches exactly. Leaves the training mode as it was.

    Every process of a group answers its own questions; none is counted twice.
    """
    group = group or Group()
    total, dev = len(dev), group.share(dev)
    was_training = model.training
    model.eval()
    passages, scores = [], []
    with torch.no_grad():
        for at in range(0, len(dev), 64):
            part = [q.question for q in dev[at : at + 64]]
            if retriever is None:
                passages += [[] for _ in part]
                scores += [[] for _ in part]
                continue
            retrieved = retrieve(retriever, part, config.n_docs)
            passages += retrieved.passages
            scores += [s[: len(p)] for s, p in zip(retrieved.doc_scores_BK.tolist(), retrieved.passages)]
    decoding = DecodingConfig(max_length=config.max_target_length)
    predictions = answer_questions(model, dev, passages, scores, decoding)
    model.train(was_training)
    (right,) = group.sum(sum(exact_match(p.prediction or "", q.answers) for p, q in zip(predictions, dev)))
    return right / total
