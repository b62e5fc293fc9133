"""Question encoders as checkpoints meet them: without a tokenizer, and in DPR's form."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn

from rag_core.errors import DataError


class BareEncoder:
    """A question encoder whose tokenizer was not saved: it keeps its weights and embeds token ids."""

    score_scale = 1.0
    tokenizer = None
    fits_passage_encoder = None

    def __init__(self, module: nn.Module):
        self.module = module

    def embed(self, input_ids_BS: torch.Tensor, attention_mask_BS: torch.Tensor) -> torch.Tensor:
        """Question vectors [B, D] as DPR pools them."""
        return self.module(input_ids=input_ids_BS, attention_mask=attention_mask_BS).pooler_output

    def save_pretrained(self, directory: str | os.PathLike[str]) -> None:
        self.module.save_pretrained(directory)


def dpr_module(encoder: Any) -> nn.Module:
    """The encoder as `transformers`' DPRQuestionEncoder: its own module, or a CLS-pooled BERT put into one.

    Raises ValueError where DPR's form gives other vectors: mean pooling, normalisation, a score scale.
    """
    module, spec = encoder.module, getattr(encoder, "spec", None)
    if spec is not None and (spec.pooling != "cls" or spec.normalize or spec.score_scale != 1.0):
        raise ValueError(
            f"question encoder {encoder.name!r} pools by {spec.pooling}, normalize={spec.normalize}, "
            f"score_scale={spec.score_scale}; the Hugging Face RAG layout holds only plain CLS vectors; "
            "save with layout='native'"
        )
    if module.config.model_type == "dpr":
        return module
    from transformers import DPRConfig, DPRQuestionEncoder

    values = {k: v for k, v in module.config.to_dict().items() if k not in ("model_type", "architectures")}
    made = DPRQuestionEncoder(DPRConfig(**values, projection_dim=0))
    made.question_encoder.bert_model.load_state_dict(module.state_dict(), strict=False)
    return made.eval()


def load_question_encoder(directory: str) -> Any:
    """The question encoder of a native checkpoint, with its tokenizer or bare."""
    from rag_core.encoders import load_encoder
    from rag_core.models.weights import read_weights

    names = ("tokenizer.json", "vocab.txt")
    if any(os.path.isfile(os.path.join(directory, n)) for n in names):
        return load_encoder(directory)
    if not os.path.isfile(os.path.join(directory, "config.json")):
        raise DataError(
            f"{directory}: no config.json; the checkpoint was copied without its question encoder"
        )
    from transformers import DPRQuestionEncoder

    read_weights(directory)  # names a damaged file, which their loader does not
    return BareEncoder(DPRQuestionEncoder.from_pretrained(directory, local_files_only=True).eval())
