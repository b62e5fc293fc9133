"""`decode`: the four ways, from padded contexts to hypotheses.

Shapes: B questions, K passages, S context tokens, T tokens of a row, N passages that exist.
"""

from __future__ import annotations

import math

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

    Fewer than `num_return_sequences` come back where fewer distinct ones were found. Raises ValueError
    where a probability is NaN, as a model that overflows has it.
    """
    if model.training:
        raise ValueError("decode wants a model in eval mode; call .eval() first")
    if not len(doc_scores_BK):
        return []
    config = config.resolved(model.kind, model.target_layout)
    config.check_tokens(model.generator.config.vocab_size)
    contexts = model.encode(input_ids_BKS, attention_mask_BKS, doc_scores_BK)
    if config.allowed_answers is not None:
        way = decode_labels
    else:
        way = decode_sequence if model.kind == "sequence" else decode_token
    found = way(model, contexts, config)
    for b, hypotheses in enumerate(found):
        if not all(math.isfinite(h.log_prob) for h in hypotheses):
            raise ValueError(f"question {b} of the batch: the generator's probabilities are not finite")
    return found
