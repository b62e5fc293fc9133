"""From questions and their passages to predictions: the pure function behind `beam_jobs.generate`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from rag_core.decoding.config import DecodingConfig
from rag_core.decoding.hypothesis import Hypothesis, Prediction
from rag_core.decoding.labels import label_tokens, wants_label
from rag_core.models.context import ContextBuilder, pad_rows
from rag_core.models.rag_model import RagModel
from rag_core.schemas import Passage, Question

TOKENS_PER_BATCH = 24_000  # context tokens decoded at once; larger batches only leave the CPU's caches


def answer_questions(
    model: RagModel,
    questions: Sequence[Question],
    passages_per_question: Sequence[Sequence[Passage]],
    doc_scores: Sequence[Sequence[float]],
    config: DecodingConfig,
    builder: ContextBuilder | None = None,
) -> list[Prediction]:
    """Predictions in the questions' order. Questions may have any number of passages, none included.

    A question without passages gets status `no_passages` (closed-book models need none and ignore
    passages). A checkpoint that was trained on labels answers with one of them (`wants_label`), unless
    the config says which answers are allowed. Give the same `builder` to every call: it keeps the
    passages' tokens.
    """
    if not len(questions) == len(passages_per_question) == len(doc_scores):
        raise ValueError(
            f"{len(questions)} questions, {len(passages_per_question)} lists of passages and "
            f"{len(doc_scores)} lists of scores; right: one of each per question"
        )
    if builder is None:
        if model.generator.tokenizer is None:
            raise ValueError("the generator has no tokenizer; answering text needs one")
        builder = ContextBuilder(model.generator.tokenizer, model.context_format)
    closed = model.kind == "closed_book"
    predictions: list[Prediction | None] = [None] * len(questions)
    work: list[tuple[int, list[list[int]]]] = []
    for i, (question, passages, scores) in enumerate(zip(questions, passages_per_question, doc_scores)):
        if len(passages) != len(scores):
            raise ValueError(
                f"question {question.question_id!r}: {len(passages)} passages but {len(scores)} scores"
            )
        if any(math.isnan(s) or s == math.inf for s in scores):
            raise ValueError(f"question {question.question_id!r}: scores {list(scores)}; right: finite ones")
        if closed:
            work.append((i, [builder.closed_book(question.question)]))
        elif any(s != -math.inf for s in scores):
            work.append((i, builder.build(passages, question.question)))
        else:
            predictions[i] = Prediction(question.question_id, "no_passages")
    asked_for_labels, others = [], []
    for item in work:
        by_label = config.allowed_answers is None and wants_label(model, questions[item[0]])
        (asked_for_labels if by_label else others).append(item)
    labels = replace(config, allowed_answers=model.labels, decoding=None) if asked_for_labels else config
    for way, own in ((labels, asked_for_labels), (config, others)):
        for batch in _batches(own):
            scores = [[0.0] if closed else doc_scores[i] for i, _ in batch]
            hypotheses = model.decode(*_tensors(batch, scores, model), way)
            for (i, _), found, prior in zip(batch, hypotheses, scores):
                passages = [] if closed else passages_per_question[i]
                predictions[i] = _prediction(model, questions[i], passages, prior, found, way)
    return predictions  # type: ignore[return-value]


def _batches(work: list[tuple[int, list[list[int]]]]) -> list[list[tuple[int, list[list[int]]]]]:
    """Questions of similar length together, each batch under the token budget."""
    order = sorted(work, key=lambda w: (max(map(len, w[1])), w[0]))
    batches: list[list[tuple[int, list[list[int]]]]] = []
    rows = 0
    for item in order:
        rows += len(item[1])
        if not batches or rows * max(map(len, item[1])) > TOKENS_PER_BATCH:
            batches.append([])
            rows = len(item[1])
        batches[-1].append(item)
    return batches


def _tensors(batch, scores, model: RagModel) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    B, K = len(batch), max(len(rows) for _, rows in batch)
    ids_NS, mask_NS = pad_rows([r for _, rows in batch for r in rows], model.target_layout.pad)
    S = ids_NS.shape[1]
    ids_BKS = torch.full((B, K, S), model.target_layout.pad, dtype=torch.long)
    mask_BKS = torch.zeros((B, K, S), dtype=torch.long)
    scores_BK = torch.full((B, K), -torch.inf)
    at = 0
    for b, (_, rows) in enumerate(batch):
        ids_BKS[b, : len(rows)] = ids_NS[at : at + len(rows)]
        mask_BKS[b, : len(rows)] = mask_NS[at : at + len(rows)]
        scores_BK[b, : len(rows)] = torch.tensor(scores[b], dtype=torch.float32)
        at += len(rows)
    device = model.device
    return ids_BKS.to(device), mask_BKS.to(device), scores_BK.to(device)


def _prediction(
    model: RagModel,
    question: Question,
    passages: Sequence[Passage],
    scores: Sequence[float],
    found: list[Hypothesis],
    config: DecodingConfig,
) -> Prediction:
    tokenizer, layout = model.generator.tokenizer, model.target_layout
    labels = config.allowed_answers or ()
    label_of = dict(zip(label_tokens(labels, tokenizer), labels))

    def text(hypothesis: Hypothesis) -> str:
        label = label_of.get(hypothesis.token_ids[-1])
        return label if isinstance(label, str) else tokenizer.decode(layout.text_ids(hypothesis.token_ids))

    best = found[0]
    prior = torch.log_softmax(torch.tensor(scores, dtype=torch.float32), dim=0).exp()
    posterior, per_token = best.doc_posterior[..., : len(passages)], None
    text_ids = layout.text_ids(best.token_ids)
    if model.kind == "token":
        posterior = posterior[[i - 1 for i in layout.text_positions(best.token_ids)]]
        per_token = tuple(tuple(p) for p in posterior.tolist())
        # For the whole answer: the mean over its tokens of the per-token posterior.
        posterior = posterior.mean(dim=0) if text_ids else prior
    return Prediction(
        question_id=question.question_id,
        status="ok",
        prediction=text(best),
        log_prob=best.log_prob,
        candidates=tuple((text(h), h.log_prob) for h in found),
        passage_ids=tuple(p.passage_id for p in passages),
        doc_prior=tuple(prior.tolist()) if passages else (),
        doc_posterior=tuple(posterior.tolist()) if passages else (),
        tokens=tuple(tokenizer.tokens(text_ids)),
        token_posterior=per_token,
    )
