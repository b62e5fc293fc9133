"""`decode`: the four ways, from padded contexts to hypotheses.

Shapes: B questions, K passages, S context tokens, T tokens of a row, N passages that exist.
"""

from __future__ import annotations

import torch

from rag_core.decoding.config import DecodingConfig
from rag_core.decoding.hypothesis import Hypothesis
from rag_core.decoding.labels import decode_labels
from rag_core.decoding.rag_sequence import decode_sequence
from rag_core.decoding.rag_token import decode_token
from rag_core.models.rag_model import RagModel


@torch.inference_mode()
def decode(
    model: RagModel,
    input_ids_BKS: torch.Tensor,
    attention_mask_BKS: torch.Tensor,
    doc_scores_BK: torch.Tensor,
    config: DecodingConfig,
) -> list[list[Hypothesis]]:
    """The n best hypotheses of each question, best first, by the model's kind and the config's way.

    Fewer than `num_return_sequences` come back where fewer distinct ones were found.
    """
    if model.training:
        raise ValueError("decode wants a model in eval mode; call .eval() first")
    config = config.resolved(model.kind, model.target_layout)
    contexts = model.encode(input_ids_BKS, attention_mask_BKS, doc_scores_BK)
    if config.allowed_answers is not None:
        return decode_labels(model, contexts, config)
    if model.kind == "sequence":
        return decode_sequence(model, contexts, config)
    return decode_token(model, contexts, config)
