"""`RagModel`: a question encoder, a generator, and one of the two marginals over their passages.

Shapes: B questions, K passages per question, S context tokens, T labels, N passages that exist (≤ B·K),
D width. A passage with doc_scores −inf was not found: it is not encoded and takes part in nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from rag_core.models import marginals
from rag_core.models.context import ContextFormat
from rag_core.models.generator import Generator
from rag_core.models.target_layout import TargetLayout

if TYPE_CHECKING:
    from rag_core.decoding import DecodingConfig, Hypothesis
    from rag_core.encoders import TextEncoder

KINDS = ("sequence", "token", "closed_book")


@dataclass(frozen=True, slots=True)
class EncodedContexts:
    """Passages after the generator's encoder: states of the N that exist, and where they belong."""

    states_NSD: torch.Tensor
    mask_NS: torch.Tensor
    prior_BK: torch.Tensor  # log p(z|x), -inf where there is no passage
    present_BK: torch.Tensor  # bool; the N rows are its True cells in row-major order

    @property
    def question_N(self) -> torch.Tensor:
        """The question that each encoded passage belongs to."""
        return self.present_BK.nonzero()[:, 0]


class RagModel(nn.Module):
    """RAG-Sequence, RAG-Token, or the bare generator (`closed_book`, one context and no retrieval).

    `question_encoder` may be absent: BM25 retrieval and closed-book generation need none. `labels`:
    the answers of a classification task, for which exactly one token is scored.
    """

    def __init__(
        self,
        generator: Generator,
        question_encoder: TextEncoder | None = None,
        *,
        kind: str = "sequence",
        n_docs: int = 5,
        context_format: ContextFormat | None = None,
        labels: tuple[str, ...] = (),
        info: Mapping[str, Any] | None = None,
    ):
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"kind {kind!r}; right: {', '.join(KINDS)}")
        self.generator = generator
        self.question_encoder = question_encoder
        if question_encoder is not None:
            self.question_encoder_module = question_encoder.module
        self.kind = kind
        self.n_docs = n_docs
        self.context_format = context_format or ContextFormat(
            max_length=min(300, generator.max_positions or 300)
        )
        self.labels = tuple(labels)
        self.info = dict(info or {})

    @property
    def target_layout(self) -> TargetLayout:
        return self.generator.layout

    @property
    def device(self) -> torch.device:
        return self.generator.device

    # -- scoring ---------------------------------------------------------------------------------

    def nll(
        self,
        input_ids_BKS: torch.Tensor,
        attention_mask_BKS: torch.Tensor,
        doc_scores_BK: torch.Tensor,
        labels_BT: torch.Tensor,
    ) -> torch.Tensor:
        """−log p(y|x) of each question [B], by this model's marginal, in float32.

        `labels` is the decoder's input row: its first token is conditioned on and not scored, every
        later non-pad token is. Differentiable in the generator and in `doc_scores`. No questions, no
        values. Raises ValueError naming what does not fit.
        """
        if not len(doc_scores_BK):
            return doc_scores_BK.new_zeros(0, dtype=torch.float32)
        contexts = self.encode(input_ids_BKS, attention_mask_BKS, doc_scores_BK)
        return -self.log_likelihood(contexts, labels_BT)

    def log_likelihood(self, contexts: EncodedContexts, labels_BT: torch.Tensor) -> torch.Tensor:
        """log p(y|x) per question [B] from contexts that are already encoded."""
        log_probs_BKT, scored_BT = self.target_log_probs(contexts, labels_BT)
        marginal = (
            marginals.token_log_likelihood if self.kind == "token" else marginals.sequence_log_likelihood
        )
        return marginal(log_probs_BKT, contexts.prior_BK, scored_BT)

    def posterior(self, contexts: EncodedContexts, labels_BT: torch.Tensor) -> torch.Tensor:
        """p(z|x,y): [B, K], or for RAG-Token per scored position [B, T - 1, K]."""
        log_probs_BKT, scored_BT = self.target_log_probs(contexts, labels_BT)
        posterior = marginals.token_posterior if self.kind == "token" else marginals.sequence_posterior
        return posterior(log_probs_BKT, contexts.prior_BK, scored_BT)

    def encode(
        self,
        input_ids_BKS: torch.Tensor,
        attention_mask_BKS: torch.Tensor,
        doc_scores_BK: torch.Tensor,
    ) -> EncodedContexts:
        """Run the generator's encoder over the passages that exist; padding columns are cut off.

        Raises ValueError on left padding (BART counts positions from the left edge, so it would
        change the answer) and on contexts without a token.
        """
        shapes = [list(t.shape) for t in (input_ids_BKS, attention_mask_BKS, doc_scores_BK)]
        if len(shapes[0]) != 3 or shapes[0] != shapes[1] or shapes[0][:2] != shapes[2]:
            raise ValueError(
                f"input_ids {shapes[0]}, attention_mask {shapes[1]} and doc_scores {shapes[2]} "
                "do not agree; right: [B, K, S], [B, K, S] and [B, K]"
            )
        prior_BK = marginals.doc_log_prior(doc_scores_BK)
        present_BK = ~torch.isneginf(prior_BK)
        ids_NS, mask_NS = input_ids_BKS[present_BK], (attention_mask_BKS[present_BK] != 0).long()
        if (mask_NS[:, 1:] > mask_NS[:, :-1]).any():
            raise ValueError("contexts must be padded on the right; this batch has padding before tokens")
        lengths_N = mask_NS.sum(dim=1)
        if (lengths_N == 0).any():
            raise ValueError("a context has no token although its doc_score is finite")
        width = int(lengths_N.max())
        ids_NS, mask_NS = ids_NS[:, :width], mask_NS[:, :width]
        states_NSD = self.generator.encode(ids_NS, mask_NS)
        return EncodedContexts(states_NSD, mask_NS, prior_BK, present_BK)

    def target_log_probs(
        self, contexts: EncodedContexts, labels_BT: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """log p(labels[i+1] | x, z, labels[..i]) as [B, K, T - 1], and which positions are scored [B, T - 1].

        Zero where a position is not scored or a passage is absent. Only scored positions go through
        the vocabulary projection.
        """
        B, K = contexts.prior_BK.shape
        labels_BT = self._checked_labels(labels_BT, B)
        inputs_BT, targets_BT = labels_BT[:, :-1], labels_BT[:, 1:]
        scored_BT = targets_BT != self.target_layout.pad
        log_probs_BKT = contexts.prior_BK.new_zeros((B, K, targets_BT.shape[1]))
        if not scored_BT.any():
            return log_probs_BKT, scored_BT
        question_N = contexts.question_N
        hidden_NTD = self.generator.decode(contexts.states_NSD, contexts.mask_NS, inputs_BT[question_N])
        scored_NT = scored_BT[question_N]
        logits_MV = self.generator.project(hidden_NTD[scored_NT]).float()
        targets_M = targets_BT[question_N][scored_NT]
        log_probs_M = -nn.functional.cross_entropy(logits_MV, targets_M, reduction="none")
        cells_BKT = contexts.present_BK[:, :, None] & scored_BT[:, None, :]
        return log_probs_BKT.masked_scatter(cells_BKT, log_probs_M), scored_BT

    def _checked_labels(self, labels_BT: torch.Tensor, B: int) -> torch.Tensor:
        if labels_BT.dim() != 2 or len(labels_BT) != B or labels_BT.is_floating_point():
            raise ValueError(
                f"labels {list(labels_BT.shape)} of {labels_BT.dtype} for {B} questions; right: ids [B, T]"
            )
        vocabulary = self.generator.config.vocab_size
        if labels_BT.numel() and not 0 <= int(labels_BT.min()) <= int(labels_BT.max()) < vocabulary:
            beyond = labels_BT[(labels_BT < 0) | (labels_BT >= vocabulary)][0]
            raise ValueError(
                f"labels hold the token id {int(beyond)}; the vocabulary has {vocabulary}, "
                f"and padding is {self.target_layout.pad}"
            )
        return labels_BT.long()

    # -- decoding --------------------------------------------------------------------------------

    def decode(
        self,
        input_ids_BKS: torch.Tensor,
        attention_mask_BKS: torch.Tensor,
        doc_scores_BK: torch.Tensor,
        config: DecodingConfig,
    ) -> list[list[Hypothesis]]:
        """The n best answers of each question, best first; see `rag_core.decoding`."""
        from rag_core.decoding import decode

        return decode(self, input_ids_BKS, attention_mask_BKS, doc_scores_BK, config)

    # -- checkpoints -----------------------------------------------------------------------------

    @classmethod
    def from_pretrained(cls, path: str, kind: str | None = None) -> RagModel:
        """Load a checkpoint of ours or a Hugging Face RAG directory, in eval mode.

        `kind` (sequence, token) overrides the checkpoint's: both marginals use the same weights.
        """
        from rag_core.checkpoints import load_model

        return load_model(str(path), kind)

    def save_pretrained(self, path: str, layout: str = "native") -> None:
        """Write a checkpoint that `from_pretrained` (or, for "huggingface", `transformers`) loads."""
        from rag_core.checkpoints import save_model

        save_model(self, str(path), layout)
