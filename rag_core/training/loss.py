"""The training loss: the mean over examples of −log p(y|x) (Lewis et al. 2020, section 2.4).

Shapes: B questions, K passages, T labels, S context tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rag_core.models.context import ContextBuilder, pad_rows
from rag_core.models.rag_model import RagModel
from rag_core.training.retrieval import Retrieved


class Batcher:
    """Turns questions, passages and targets into padded tensors; texts are tokenised once."""

    def __init__(self, model: RagModel, max_target_length: int, labels: Sequence[str] = ()):
        self.model = model
        self.builder = ContextBuilder(model.generator.tokenizer, model.context_format)
        self.max_target_length = max_target_length
        self.labels = bool(labels)
        self.n_truncated_targets = 0
        self._rows: dict[str, list[int]] = {}

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

    def labels_BT(self, targets: Sequence[str]) -> torch.Tensor:
        """Labels rows of the target texts, by the checkpoint's layout."""
        layout = self.model.target_layout
        for target in targets:
            if target not in self._rows:
                self._rows[target] = self._row(target)
        return layout.batch([self._rows[t] for t in targets]).to(self.model.device)

    def _row(self, target: str) -> list[int]:
        layout, tokenizer = self.model.target_layout, self.model.generator.tokenizer
        (ids,) = tokenizer.encode([target.strip()])
        if self.labels:
            return layout.row(ids[:1], label=True)
        room = max(self.max_target_length - len(layout.prefix) - 1, 1)
        self.n_truncated_targets += len(ids) > room
        return layout.row(ids[:room])
