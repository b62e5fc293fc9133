"""The generator: a sequence-to-sequence model (BART or T5) as the parts that RAG needs.

Shapes: N inputs, S input tokens, T decoder tokens, D width, V vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rag_core import files
from rag_core.errors import DataError
from rag_core.models.packed_decoder import decode_packed
from rag_core.models.packed_encoder import encode_packed
from rag_core.models.target_layout import TargetLayout
from rag_core.models.tokenizer import TextTokenizer

BUILT_IN = {"mini-bart": str(Path(__file__).parent / "mini_bart")}
FAMILIES = ("bart", "t5")


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

    def save(self, directory: str) -> None:
        """Write config, safetensors weights and tokenizer; tied weights are stored once."""
        config = {**json.loads(self.config.to_json_string(use_diff=False))}
        config["target_layout"] = self.layout.to_json()
        files.write_json(files.join(directory, "config.json"), config)
        files.write_bytes(files.join(directory, "model.safetensors"), weights_bytes(self.model))
        if self.tokenizer is not None:
            self.tokenizer.save(directory)


def weights_bytes(model: nn.Module) -> bytes:
    """The state dict as safetensors; tensors that share memory are stored under their first name."""
    from safetensors.torch import save

    tied = getattr(model, "_tied_weights_keys", None) or {}
    state = model.state_dict()
    seen: dict[int, str] = {}
    for name in sorted(state, key=lambda n: (any(n.endswith(t) for t in tied), n)):
        seen.setdefault(state[name].data_ptr(), name)
    kept = {name: state[name].contiguous() for name in sorted(seen.values())}
    return save(kept, metadata={"format": "pt"})


def load_generator(name: str) -> Generator:
    """Load a generator: `mini-bart`, a directory or URL, or a hub id `org/name`. Eval mode, float32.

    Raises UnknownModelError for any other name, and DataError for a directory whose weights do not
    match its config.
    """
    from rag_core.encoders.locate import locate

    directory = BUILT_IN.get(name) or locate(name)
    if files.exists(files.join(directory, "checkpoint.json")):
        directory = files.join(directory, "generator")
    config_file = files.join(directory, "config.json")
    if not files.exists(config_file):
        raise DataError(f"{directory}: no config.json; a generator is a directory with config and weights")
    raw = files.read_json(config_file)
    generation_file = files.join(directory, "generation_config.json")
    generation = files.read_json(generation_file) if files.exists(generation_file) else {}
    layout = read_layout(raw, generation)
    return Generator(_load_model(directory, raw), layout, TextTokenizer.load(directory)).eval()


def read_layout(config: Mapping[str, Any], generation: Mapping[str, Any]) -> TargetLayout:
    """The recorded layout where there is one, else what the raw configs say."""
    if "target_layout" in config:
        return TargetLayout(**config["target_layout"])
    return TargetLayout.from_config(config, generation)


def build_model(config: Mapping[str, Any]) -> nn.Module:
    """The `transformers` module for a raw config, with fresh weights."""
    from transformers import AutoModelForSeq2SeqLM
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    family = config.get("model_type")
    if family not in FAMILIES:
        raise DataError(f"generator of type {family!r}; supported: {', '.join(FAMILIES)}")
    kept = {k: v for k, v in config.items() if k not in ("target_layout", "architectures")}
    return AutoModelForSeq2SeqLM.from_config(CONFIG_MAPPING[family].from_dict(kept)).float()


def _load_model(directory: str, config: Mapping[str, Any]) -> nn.Module:
    model = build_model(config)
    load_weights(model, read_weights(directory), directory)
    return model


def read_weights(directory: str) -> dict[str, torch.Tensor]:
    """All tensors of a model directory: safetensors (one file or shards), else `pytorch_model.bin`."""
    from safetensors.torch import load

    names = sorted(files.base_name(f.url) for f in files.list_files(directory))
    tensors: dict[str, torch.Tensor] = {}
    for name in (n for n in names if n.endswith(".safetensors")):
        tensors.update(load(files.read_bytes(files.join(directory, name))))
    if tensors:
        return tensors
    for name in (n for n in names if n.startswith("pytorch_model") and n.endswith(".bin")):
        with files.open_input(files.join(directory, name)) as stream:
            tensors.update(torch.load(stream, map_location="cpu", weights_only=True))
    if not tensors:
        raise DataError(f"{directory}: no *.safetensors and no pytorch_model*.bin")
    return tensors


def load_weights(model: nn.Module, tensors: Mapping[str, torch.Tensor], source: str) -> None:
    """Copy tensors into a model; every name must fit, and only tied or computed ones may be missing."""
    wanted = model.state_dict()
    optional = ("embed_tokens.weight", "lm_head.weight", "final_logits_bias", "shared.weight")
    missing = sorted(n for n in wanted if n not in tensors and not n.endswith(optional))
    unknown = sorted(n for n in tensors if n not in wanted and not _ignorable(n))
    if missing or unknown:
        raise DataError(
            f"{source}: weights do not fit the config; missing {missing[:3]} ({len(missing)}), "
            f"unexpected {unknown[:3]} ({len(unknown)})"
        )
    given = {n: t.to(wanted[n].dtype) for n, t in tensors.items() if n in wanted}
    wrong = [n for n, t in given.items() if t.shape != wanted[n].shape]
    if wrong:
        n = wrong[0]
        raise DataError(
            f"{source}: {n} has shape {list(given[n].shape)}, the config says {list(wanted[n].shape)}"
        )
    shared = _shared_name(model)
    if shared not in given:
        alias = next((n for n in given if n.endswith(("embed_tokens.weight", "lm_head.weight"))), None)
        if alias is None:
            raise DataError(f"{source}: no token embedding ({shared} or one tied to it)")
        given[shared] = given[alias]
    head = given.pop("lm_head.weight", None)
    model.load_state_dict(given, strict=False)
    model.tie_weights()
    if head is not None and not torch.equal(head, given[shared]):
        model.lm_head.weight = nn.Parameter(head.clone())  # a T5 1.1 has an output matrix of its own


def _shared_name(model: nn.Module) -> str:
    return "model.shared.weight" if model.config.model_type == "bart" else "shared.weight"


def _ignorable(name: str) -> bool:
    """Buffers of old checkpoints that newer `transformers` no longer keep."""
    return name.endswith(
        ("encoder.version", "decoder.version", "EncDecAttention.relative_attention_bias.weight")
    )
