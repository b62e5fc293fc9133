"""A generator's weights and config: read from directories that others saved, written so that they load there.

Public checkpoints come in many forms: one file or shards, safetensors or pickled tensors, half precision,
with or without the head's prefix (`facebook/bart-large` is a bare `BartModel`), tied weights stored once,
twice or under any of their names. All of them give one model here, in float32; what is damaged is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from rag_core import files
from rag_core.errors import DataError

FAMILIES = ("bart", "t5")
SINGLE_FILES = ("model.safetensors", "pytorch_model.bin")
# Names that may be missing: the shared embedding has several, and the bias is zero where it is not stored.
ALIASES = ("embed_tokens.weight", "lm_head.weight", "shared.weight")
OPTIONAL = (*ALIASES, "final_logits_bias")
# Buffers of old checkpoints that newer `transformers` no longer keep.
IGNORED = ("encoder.version", "decoder.version", "EncDecAttention.relative_attention_bias.weight")


def build_model(config: Mapping[str, Any], source: str) -> nn.Module:
    """The `transformers` module for a raw config, with fresh weights, in float32."""
    from transformers import AutoModelForSeq2SeqLM
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    family = config.get("model_type")
    if family not in FAMILIES:
        raise DataError(f"{source}: generator of type {family!r}; supported: {', '.join(FAMILIES)}")
    kept = {k: v for k, v in config.items() if k not in ("target_layout", "architectures")}
    try:
        return AutoModelForSeq2SeqLM.from_config(CONFIG_MAPPING[family].from_dict(kept)).float()
    except Exception as error:  # their checks raise many kinds, none of which names the file
        raise DataError(f"{source}: its config makes no {family} model: {error}") from error


def read_weights(directory: str) -> dict[str, torch.Tensor]:
    """All tensors of a model directory: one file, else the shards that its index names.

    safetensors before pickled tensors (read with `weights_only`); without a file of a usual name, every
    `*.safetensors`. Raises DataError naming a file that is missing, cut short, or holds more than tensors.
    """
    for name in SINGLE_FILES:
        url = files.join(directory, name)
        if files.exists(url):
            return _read_tensors(url)
        if files.exists(index := f"{url}.index.json"):
            return _read_shards(directory, index)
    names = [files.base_name(f.url) for f in files.list_files(directory)]
    found = sorted(n for n in names if n.endswith(".safetensors"))
    if not found:
        raise DataError(f"{directory}: no *.safetensors and no pytorch_model*.bin")
    return {k: t for name in found for k, t in _read_tensors(files.join(directory, name)).items()}


def _read_shards(directory: str, index: str) -> dict[str, torch.Tensor]:
    wanted = files.read_object(index).get("weight_map")
    if not isinstance(wanted, dict):
        raise DataError(f"{index}: no `weight_map`; it is not the index of a sharded checkpoint")
    tensors: dict[str, torch.Tensor] = {}
    for name in sorted(set(wanted.values())):
        url = files.join(directory, name)
        if not files.exists(url):
            raise DataError(f"{url}: missing, though {files.base_name(index)} names it")
        tensors |= _read_tensors(url)
    lost = sorted(set(wanted) - set(tensors))
    if lost:
        raise DataError(f"{index}: {len(lost)} tensors are in no shard, such as {lost[0]}")
    return tensors


def _read_tensors(url: str) -> dict[str, torch.Tensor]:
    from safetensors.torch import load

    try:
        if url.endswith(".safetensors"):
            return load(files.read_bytes(url))
        with files.open_input(url) as stream:
            found = torch.load(stream, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise
    except Exception as error:  # five libraries' worth of kinds, none of which names the file
        if type(error).__name__ == "UnpicklingError":
            raise DataError(f"{url}: holds more than tensors, or is damaged; it was not opened") from error
        reason = str(error).strip().split("\n")[0]
        raise DataError(f"{url}: cannot be read, perhaps cut short: {reason}") from error
    if not isinstance(found, dict) or not all(isinstance(t, torch.Tensor) for t in found.values()):
        raise DataError(f"{url}: expected tensors by name")
    return found


def load_weights(model: nn.Module, tensors: Mapping[str, torch.Tensor], source: str) -> None:
    """Copy tensors into a model; every name must fit, and only tied or computed ones may be missing."""
    wanted = model.state_dict()
    tensors = _with_prefix(model, tensors)
    missing = sorted(n for n in wanted if n not in tensors and not n.endswith(OPTIONAL))
    unknown = sorted(n for n in tensors if n not in wanted and not n.endswith(IGNORED))
    if missing or unknown:
        raise DataError(
            f"{source}: weights do not fit the config; missing {missing[:3]} ({len(missing)}), "
            f"unexpected {unknown[:3]} ({len(unknown)})"
        )
    given = {n: t.to(wanted[n].dtype) for n, t in tensors.items() if n in wanted}
    for name, tensor in given.items():
        if tensor.shape != wanted[name].shape:
            raise DataError(
                f"{source}: {name} has shape {list(tensor.shape)}, the config says {list(wanted[name].shape)}"
            )
        if torch.isnan(tensor).any():
            raise DataError(f"{source}: {name} holds NaN")
    _fill_and_tie(model, given, source)


def _with_prefix(model: nn.Module, tensors: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
    """Names of a bare `BartModel` or `T5Model` as the model with a head has them."""
    prefix = {"bart": "model."}.get(model.config.model_type)
    if prefix is None or any(n.startswith(prefix) for n in tensors):
        return tensors
    bare = ("lm_head.weight", "final_logits_bias")
    return {n if n in bare else prefix + n: t for n, t in tensors.items()}


def _fill_and_tie(model: nn.Module, given: dict[str, torch.Tensor], source: str) -> None:
    """Load, giving every name of the shared embedding its values, and memory of its own where they differ."""
    shared = next(n for n in model.state_dict() if n.endswith("shared.weight"))
    names = [n for n in model.state_dict() if n.endswith(ALIASES)]
    if shared not in given:
        alias = next((n for n in names if n in given), None)
        if alias is None:
            raise DataError(f"{source}: no token embedding ({shared} or one tied to it)")
        given[shared] = given[alias]
    model.load_state_dict({n: t for n, t in given.items() if n not in names}, strict=False)
    embedding = nn.Parameter(given[shared].clone())
    for name in names:
        own = name in given and not torch.equal(given[name], given[shared])
        module, _, attribute = name.rpartition(".")
        weight = nn.Parameter(given[name].clone()) if own else embedding
        setattr(model.get_submodule(module), attribute, weight)


def weights_bytes(tensors: Mapping[str, torch.Tensor]) -> bytes:
    """Safetensors with every piece of memory once; of tied names the shared embedding's own is kept."""
    from safetensors.torch import save

    seen: dict[tuple[int, torch.Size], str] = {}
    for name in sorted(tensors, key=lambda n: (not n.endswith("shared.weight"), n)):
        seen.setdefault((tensors[name].data_ptr(), tensors[name].shape), name)
    return save({n: tensors[n].contiguous() for n in sorted(seen.values())}, metadata={"format": "pt"})
