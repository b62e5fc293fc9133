"""The generator: a sequence-to-sequence model (BART or T5) as the parts that RAG needs.

Shapes: N inputs, S input tokens, T decoder tokens, D width, V vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from rag_core import files
from rag_core.errors import DataError
from rag_core.models.packed_decoder import decode_packed
from rag_core.models.packed_encoder import encode_packed
from rag_core.models.target_layout import TargetLayout
from rag_core.models.tokenizer import TextTokenizer
from rag_core.models.weights import (
    FAMILIES,
    build_model,
    load_weights,
    read_weights,
    weights_bytes,
)

BUILT_IN = {"mini-bart": str(Path(__file__).parent / "mini_bart")}


class Generator(nn.Module):
    """A BART or T5 with its tokenizer and target layout.

    `model` is the `transformers` module; its weights are used, its `generate` never is.
    """

    def __init__(self, model: nn.Module, layout: TargetLayout, tokenizer: TextTokenizer | None = None):
        super().__init__()
        family = model.config.model_type
        if family not in FAMILIES:
            raise ValueError(f"generator of type {family!r}; supported: {', '.join(FAMILIES)}")
        self.model = model
        self.family = family
        self.layout = layout
        self.tokenizer = tokenizer

    @property
    def config(self) -> Any:
        return self.model.config

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def max_positions(self) -> int | None:
        """The longest input the position table holds; None for T5's relative positions."""
        return getattr(self.config, "max_position_embeddings", None) if self.family == "bart" else None

    def encode(self, input_ids_NS: torch.Tensor, attention_mask_NS: torch.Tensor) -> torch.Tensor:
        """Encoder states [N, S, D]; zero at padding, which must stand on the right."""
        limit = self.max_positions
        if limit is not None and input_ids_NS.shape[1] > limit:
            raise ValueError(f"inputs of {input_ids_NS.shape[1]} tokens; the generator holds {limit}")
        return encode_packed(self.model.get_encoder(), input_ids_NS, attention_mask_NS)

    def decode(
        self,
        states_NSD: torch.Tensor,
        attention_mask_NS: torch.Tensor,
        decoder_input_ids_NT: torch.Tensor,
    ) -> torch.Tensor:
        """Decoder states [N, T, D] after each position of the decoder's input (teacher forcing)."""
        return decode_packed(self.model.get_decoder(), states_NSD, attention_mask_NS, decoder_input_ids_NT)

    def project(self, hidden: torch.Tensor) -> torch.Tensor:
        """Decoder states [..., D] to logits [..., V]."""
        if self.family == "t5":
            if self.config.scale_decoder_outputs:
                hidden = hidden * self.config.d_model**-0.5
            return self.model.lm_head(hidden)
        return nn.functional.linear(hidden, self.model.lm_head.weight, self.model.final_logits_bias[0])

    def raw_config(self) -> dict[str, Any]:
        """The config as JSON values, true of the weights that are saved with it."""
        raw = json.loads(self.config.to_json_string(use_diff=False))
        decoder = self.model.get_decoder().embed_tokens.weight
        if self.family == "bart" and decoder is self.model.get_input_embeddings().weight:
            # Stored once: with False their loader would leave the decoder's embedding as drawn. An output
            # matrix of its own stays untied there, because it is stored with other values.
            raw["tie_word_embeddings"] = True
        return raw

    def save(self, directory: str) -> None:
        """Write config, safetensors weights and tokenizer; tied weights are stored once."""
        config = {**self.raw_config(), "target_layout": self.layout.to_json()}
        files.write_json(files.join(directory, "config.json"), config)
        files.write_bytes(files.join(directory, "model.safetensors"), weights_bytes(self.model.state_dict()))
        if self.tokenizer is not None:
            self.tokenizer.save(directory)


def load_generator(name: str) -> Generator:
    """Load a generator: `mini-bart`, a directory or URL, or a hub id `org/name`. Eval mode, float32.

    Raises UnknownModelError for any other name, and DataError for a directory whose files are damaged or
    do not fit together.
    """
    from rag_core.encoders.locate import locate

    directory = BUILT_IN.get(name) or locate(name)
    if files.exists(files.join(directory, "checkpoint.json")):
        directory = files.join(directory, "generator")
    config_file = files.join(directory, "config.json")
    if not files.exists(config_file):
        raise DataError(f"{directory}: no config.json; a generator is a directory with config and weights")
    raw = files.read_object(config_file)
    model = build_model(raw, config_file)
    load_weights(model, read_weights(directory), directory)
    return Generator(model, read_layout(directory, raw), TextTokenizer.load(directory)).eval()


def read_layout(
    directory: str, config: Mapping[str, Any], outer: Mapping[str, Any] = MappingProxyType({})
) -> TargetLayout:
    """The recorded layout where there is one, else what the raw configs of a directory say.

    `outer` is a RAG config around the generator's: its values hold where the generator's are silent.
    """
    recorded = outer.get("target_layout") or config.get("target_layout")
    try:
        if recorded is not None:
            layout = TargetLayout(**recorded)
        else:
            generation_file = files.join(directory, "generation_config.json")
            generation = files.read_object(generation_file) if files.exists(generation_file) else {}
            own = {k: v for k, v in outer.items() if k != "model_type" and not isinstance(v, dict)}
            layout = TargetLayout.from_config({**own, **given(config)}, generation)
    except (TypeError, ValueError) as error:
        raise DataError(f"{directory}: no target layout: {error}") from error
    vocabulary = config.get("vocab_size")
    beyond = {n: i for n, i in layout.to_json().items() if i is not None and i >= (vocabulary or i + 1)}
    if beyond:
        raise DataError(f"{directory}: token ids {beyond} lie beyond the vocabulary of {vocabulary}")
    return layout


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are not null."""
    return {k: v for k, v in values.items() if v is not None}
