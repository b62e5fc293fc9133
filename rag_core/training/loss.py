"""The training loss: the mean over examples of −log p(y|x) (Lewis et al. 2020, section 2.4).

Shapes: B questions, K passages, T labels, S context tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rag_core.decoding.labels import label_tokens
from rag_core.models.context import ContextBuilder, pad_rows
from rag_core.models.rag_model import EncodedContexts, RagModel
from rag_core.training.examples import Example
from rag_core.training.retrieval import Retrieved


class Batcher:
    """Turns questions, passages and targets into padded tensors; texts are tokenised once."""

    def __init__(self, model: RagModel, max_target_length: int, labels: Sequence[str] = ()):
        self.model = model
        self.builder = ContextBuilder(model.generator.tokenizer, model.context_format)
        self.max_target_length = max_target_length
        self.labels = dict(zip(labels, label_tokens(tuple(labels), model.generator.tokenizer)))
        self._rows: dict[tuple[str, bool], list[int]] = {}

    def contexts(
        self, questions: Sequence[str], retrieved: Retrieved | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """input_ids_BKS, attention_mask_BKS, doc_scores_BK; closed book: K = 1 and a score of 0."""
        pad, device = self.model.target_layout.pad, self.model.device
        if retrieved is None:
            rows = [[self.builder.closed_book(q)] for q in questions]
            scores_BK = torch.zeros((len(questions), 1), device=device)
        else:
            rows = [self.builder.build(p, q) for p, q in zip(retrieved.passages, questions)]
            scores_BK = retrieved.doc_scores_BK.to(device)
        B, K = scores_BK.shape
        flat = [row for found in rows for row in [*found, *[[]] * (K - len(found))]]
        ids_NS, mask_NS = pad_rows(flat, pad)
        S = ids_NS.shape[1]
        return ids_NS.view(B, K, S).to(device), mask_NS.view(B, K, S).to(device), scores_BK

    def labels_BT(self, targets: Sequence[str], is_label: Sequence[bool] | None = None) -> torch.Tensor:
        """Labels rows of the target texts, by the checkpoint's layout.

        `is_label` says which targets are labels, of which one token is scored; None: all, if there are
        labels.
        """
        layout = self.model.target_layout
        keys = list(zip(targets, is_label or [bool(self.labels)] * len(targets), strict=True))
        for key in keys:
            if key not in self._rows:
                self._rows[key] = self._row(*key)
        return layout.batch([self._rows[key] for key in keys]).to(self.model.device)

    def _row(self, target: str, is_label: bool) -> list[int]:
        layout, tokenizer = self.model.target_layout, self.model.generator.tokenizer
        if is_label:
            return layout.row([self.labels[target]], label=True)
        (ids,) = tokenizer.encode([target.strip()])
        return layout.row(ids[: self._target_room])

    @property
    def _target_room(self) -> int:
        return max(self.max_target_length - len(self.model.target_layout.prefix) - 1, 1)

    def count_cut(self, examples: Sequence[Example]) -> dict[str, int]:
        """How many pairs have a target, and how many a question, that is cut to fit."""
        tokenizer, form = self.builder.tokenizer, self.builder.format
        texts = [e.target.strip() for e in examples if not e.is_label]
        lead = form.prefix if self.model.kind == "closed_book" else form.doc_sep
        room = form.max_length - len(tokenizer.before) - len(tokenizer.after)
        asked = tokenizer.encode([lead + e.question for e in examples])
        return {
            "targets": sum(len(ids) > self._target_room for ids in tokenizer.encode(texts)),
            "questions": sum(len(ids) > room for ids in asked),
        }


def window_loss(
    model: RagModel,
    contexts: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    labels_BT: torch.Tensor,
    smoothing: float = 0.0,
) -> torch.Tensor:
    """−log p(y|x) of each question [B]; with smoothing ε, (1−ε) of it plus ε of a uniform target's cost.

    The smoothed distribution is the *marginal's* next-token distribution p(y_i | x, y_<i): for
    RAG-Token the mixture by the prior, for RAG-Sequence the mixture by p(z | x, y_<i). Smoothing each
    passage's own distribution, as `transformers` does, is another quantity. Ranking never sees it.
    """
    if not smoothing:
        return model.nll(*contexts, labels_BT)
    encoded = model.encode(*contexts)
    log_probs_BKTV = full_log_probs(model, encoded, labels_BT)
    targets_BT = labels_BT[:, 1:]
    scored_BT = targets_BT != model.target_layout.pad
    index_BKT1 = targets_BT[:, None, :, None].expand(-1, log_probs_BKTV.shape[1], -1, 1)
    own_BKT = log_probs_BKTV.gather(3, index_BKT1)[..., 0].masked_fill(~scored_BT[:, None], 0.0)
    weights_BKT = encoded.prior_BK[:, :, None].expand_as(own_BKT)
    if model.kind != "token":
        before_BKT = own_BKT.cumsum(dim=2) - own_BKT  # log p(y_<i | x, z)
        weights_BKT = torch.log_softmax(weights_BKT + before_BKT, dim=1)
    next_BTV = torch.logsumexp(weights_BKT[..., None] + log_probs_BKTV, dim=1)
    nll_BT = -next_BTV.gather(2, targets_BT[:, :, None])[..., 0]
    loss_BT = (1 - smoothing) * nll_BT - smoothing * next_BTV.mean(dim=2)
    return loss_BT.masked_fill(~scored_BT, 0.0).sum(dim=1)


def full_log_probs(model: RagModel, encoded: EncodedContexts, labels_BT: torch.Tensor) -> torch.Tensor:
    """log p(· | x, z, y_<i) over the whole vocabulary [B, K, T - 1, V]; zero for absent passages."""
    inputs_NT = labels_BT[:, :-1][encoded.question_N]
    hidden_NTD = model.generator.decode(encoded.states_NSD, encoded.mask_NS, inputs_NT)
    log_probs_NTV = torch.log_softmax(model.generator.project(hidden_NTD).float(), dim=-1)
    out_BKTV = log_probs_NTV.new_zeros((*encoded.prior_BK.shape, *log_probs_NTV.shape[1:]))
    out_BKTV[encoded.present_BK] = log_probs_NTV
    return out_BKTV
