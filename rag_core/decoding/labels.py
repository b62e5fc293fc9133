"""Answers from a closed list of labels: one scored token, no EOS (FEVER, section 3.4 of the paper).

With a single scored token RAG-Sequence and RAG-Token are the same distribution.
"""

from __future__ import annotations

import torch

from rag_core.decoding.config import DecodingConfig
from rag_core.decoding.hypothesis import Hypothesis
from rag_core.models import marginals
from rag_core.models.rag_model import EncodedContexts, RagModel
from rag_core.models.tokenizer import TextTokenizer
from rag_core.schemas import Question


def label_tokens(labels: tuple[str | int, ...], tokenizer: TextTokenizer | None) -> list[int]:
    """The one token that stands for each label: the first token of its text.

    Raises ValueError when two labels begin with the same token, or text comes without a tokenizer.
    """
    if any(isinstance(label, str) for label in labels) and tokenizer is None:
        raise ValueError("labels given as text need the generator's tokenizer; give token ids instead")
    tokens = [label if isinstance(label, int) else _first_token(label, tokenizer) for label in labels]
    if len(set(tokens)) < len(tokens):
        raise ValueError(f"labels {labels} begin with the same token under this tokenizer: {tokens}")
    return tokens


def wants_label(model: RagModel, question: Question) -> bool:
    """Whether the model answers the question with one of its labels.

    A checkpoint that was trained on labels alone always does; one trained on a mixture of labels and
    texts (`info["text_answers"]`) where the question's `answer_kind` is label.
    """
    mixed = bool(model.info.get("text_answers"))
    return bool(model.labels) and (question.answer_kind == "label" or not mixed)


def _first_token(label: str, tokenizer: TextTokenizer) -> int:
    (ids,) = tokenizer.encode([label])
    if not ids:
        raise ValueError(f"label {label!r} has no token")
    return ids[0]


def decode_labels(
    model: RagModel, contexts: EncodedContexts, config: DecodingConfig
) -> list[list[Hypothesis]]:
    """All labels of each question ranked by their marginal probability; the n best are returned."""
    tokens = torch.tensor(label_tokens(config.allowed_answers, model.generator.tokenizer))
    tokens = tokens.to(contexts.mask_NS.device)
    start_N1 = torch.full((len(contexts.mask_NS), 1), config.decoder_start_token_id, device=tokens.device)
    hidden_N1D = model.generator.decode(contexts.states_NSD, contexts.mask_NS, start_N1)
    log_probs_NV = torch.log_softmax(model.generator.project(hidden_N1D[:, 0]).float(), dim=-1)
    B, K = contexts.prior_BK.shape
    log_probs_BKA = log_probs_NV.new_zeros((B, K, len(tokens)))
    log_probs_BKA[contexts.present_BK] = log_probs_NV[:, tokens]
    # Each label is a target of one position, so labels can stand where positions do.
    scored_BA = torch.ones((B, len(tokens)), dtype=torch.bool, device=tokens.device)
    joint_BKA = contexts.prior_BK[:, :, None] + log_probs_BKA
    log_prob_BA = torch.logsumexp(joint_BKA, dim=1)
    posterior_BAK = marginals.token_posterior(log_probs_BKA, contexts.prior_BK, scored_BA)
    answers = []
    for b in range(B):
        order = log_prob_BA[b].argsort(descending=True, stable=True)[: config.num_return_sequences]
        answers.append([_label(model, config, tokens, a, log_prob_BA[b], posterior_BAK[b]) for a in order])
    return answers


def _label(model, config, tokens, a, log_prob_A, posterior_AK) -> Hypothesis:
    log_prob = float(log_prob_A[a])
    posterior = posterior_AK[a][None] if model.kind == "token" else posterior_AK[a]
    return Hypothesis([config.decoder_start_token_id, int(tokens[a])], log_prob, log_prob, posterior)
