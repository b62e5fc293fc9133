"""The Hugging Face RAG layout, both ways: `RagSequenceForGeneration` and `RagTokenForGeneration`.

One directory: `config.json` (a RagConfig with the two parts' configs inside), one weights file, and the
sub-folders `question_encoder_tokenizer/` and `generator_tokenizer/`, which may be absent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import torch

from rag_core import files
from rag_core.checkpoints.native import checked_kind
from rag_core.checkpoints.question_encoders import BareEncoder, dpr_module
from rag_core.errors import DataError
from rag_core.models.context import ContextFormat
from rag_core.models.generator import Generator, read_layout
from rag_core.models.rag_model import RagModel
from rag_core.models.tokenizer import TextTokenizer
from rag_core.models.weights import build_model, load_weights, read_weights, weights_bytes

# The literal key map: their prefix → the part it belongs to. Anything else in a file is an error.
KEY_MAP = {
    "rag.question_encoder.": "question_encoder",
    "rag.generator.": "generator",
}
BARE_KEY_MAP = {key.removeprefix("rag."): part for key, part in KEY_MAP.items()}  # saved from RagModel
# Parts of theirs that the two marginals do not use; only the trainer of an end-to-end variant saves it.
IGNORED = ("rag.ctx_encoder.", "ctx_encoder.")
ARCHITECTURES = {"RagSequenceForGeneration": "sequence", "RagTokenForGeneration": "token"}


def load_huggingface(directory: str, kind: str | None = None) -> RagModel:
    """Load a directory that `transformers` saved (or that is published in its layout). Eval mode.

    The kind is the config's architecture unless given; a config that names neither needs it given.
    """
    from rag_core.encoders.locate import locate

    directory = locate(directory)
    config = files.read_object(files.join(directory, "config.json"))
    recorded = [ARCHITECTURES[a] for a in config.get("architectures") or [] if a in ARCHITECTURES]
    if not recorded and kind is None:
        raise DataError(f"{directory}: its config names no RAG architecture; give kind='sequence' or 'token'")
    generator_config = _part(directory, config, "generator", "bart")
    encoder_config = _part(directory, config, "question_encoder", "dpr")
    parts = split_weights(read_weights(directory), directory)
    model = build_model(generator_config, directory)
    load_weights(model, parts["generator"], directory)
    tokenizer = TextTokenizer.load(files.join(directory, "generator_tokenizer"), generator_config)
    generator = Generator(model, read_layout(directory, generator_config, config), tokenizer)
    return RagModel(
        generator,
        _question_encoder(directory, encoder_config, parts["question_encoder"]),
        kind=checked_kind(recorded[0] if recorded else "sequence", kind),
        n_docs=config.get("n_docs", 5),
        context_format=ContextFormat(
            title_sep=config.get("title_sep", " / "),
            doc_sep=config.get("doc_sep", " // "),
            prefix=generator_config.get("prefix") or config.get("prefix") or "",
            max_length=min(config.get("max_combined_length", 300), generator.max_positions or 300),
            compat=config.get("context_compat"),
        ),
        labels=tuple(config.get("labels") or ()),
        info={"huggingface": {k: v for k, v in config.items() if not isinstance(v, dict)}},
    ).eval()


def _part(directory: str, config: Mapping[str, Any], name: str, default: str) -> dict[str, Any]:
    """The config of one part, its model type as theirs reads it."""
    part = config.get(name)
    if not isinstance(part, dict):
        raise DataError(f"{directory}: its config has no {name!r}")
    return {**part, "model_type": part.get("model_type") or default}


def split_weights(tensors: Mapping[str, torch.Tensor], where: str) -> dict[str, dict[str, torch.Tensor]]:
    """Their weights by part, through the key map. Raises DataError on a key that fits nowhere."""
    key_map = KEY_MAP if any(name.startswith("rag.") for name in tensors) else BARE_KEY_MAP
    parts: dict[str, dict[str, torch.Tensor]] = {part: {} for part in key_map.values()}
    for name, tensor in tensors.items():
        prefix = next((p for p in key_map if name.startswith(p)), None)
        if prefix is not None:
            parts[key_map[prefix]][name.removeprefix(prefix)] = tensor
        elif not name.startswith(IGNORED):
            raise DataError(f"{where}: unexpected weight {name!r}; known prefixes: {', '.join(key_map)}")
    return parts


def _question_encoder(directory: str, config: dict[str, Any], tensors: dict[str, torch.Tensor]) -> Any:
    """A `TextEncoder` where the tokenizer is there, else the bare module."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import AutoModel

    module = AutoModel.from_config(CONFIG_MAPPING[config["model_type"]].from_dict(dict(config))).float()
    wanted = module.state_dict()
    missing = [n for n in wanted if n not in tensors and not n.endswith("position_ids")]
    unknown = [
        n for n in tensors if n not in wanted and not n.endswith("position_ids") and ".pooler." not in n
    ]
    if missing or unknown:
        raise DataError(f"{directory}: question encoder lacks {missing[:2]}, has unexpected {unknown[:2]}")
    module.load_state_dict({n: t.float() for n, t in tensors.items() if n in wanted}, strict=False)
    tokenizer_dir = os.path.join(directory, "question_encoder_tokenizer")
    if not os.path.isdir(tokenizer_dir):
        return BareEncoder(module.eval())
    from transformers import AutoTokenizer

    from rag_core.encoders.text_encoder import EncoderSpec, TextEncoder

    # Published folders name no class: which tokenizer reads them follows from the part's config.
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_dir, config=module.config, local_files_only=True)
    longest = min(256, config.get("max_position_embeddings", 256))
    dim = config.get("projection_dim") or config["hidden_size"]
    spec = EncoderSpec("cls", False, 1.0, longest, pair_token_types=False)
    return TextEncoder(directory, module.eval(), tokenizer, spec, dim=dim, is_bi_encoder=False)


def save_huggingface(model: RagModel, directory: str) -> None:
    """Write the layout that `transformers` loads, with a generation config that is complete.

    Raises ValueError for what the layout cannot hold: a bare generator, or a question encoder that is
    not DPR's form (the first token's state, unscaled); their code would load it and give other numbers.
    """
    if model.kind == "closed_book" or model.question_encoder is None:
        raise ValueError("the Hugging Face RAG layout needs a question encoder and a RAG kind")
    encoder = dpr_module(model.question_encoder)
    architecture = next(a for a, kind in ARCHITECTURES.items() if kind == model.kind)
    layout, form = model.target_layout, model.context_format
    generator_config = model.generator.raw_config()
    config = {
        "model_type": "rag",
        "architectures": [architecture],
        "is_encoder_decoder": True,
        "question_encoder": json.loads(encoder.config.to_json_string(use_diff=False)),
        # Their retriever reads the prefix from here.
        "generator": {
            **generator_config,
            "decoder_start_token_id": layout.start,
            "prefix": form.prefix or None,
        },
        "n_docs": model.n_docs,
        "title_sep": form.title_sep,
        "doc_sep": form.doc_sep,
        "max_combined_length": form.max_length,
        "retrieval_vector_size": encoder.config.projection_dim or encoder.config.hidden_size,
        "target_layout": layout.to_json(),
        "context_compat": form.compat,
        "labels": list(model.labels),
        "decoder_start_token_id": layout.start,
        "eos_token_id": layout.eos,
        "pad_token_id": layout.pad,
    }
    tensors = {
        **{f"rag.question_encoder.{n}": t for n, t in encoder.state_dict().items()},
        **{f"rag.generator.{n}": t for n, t in model.generator.model.state_dict().items()},
    }
    files.write_bytes(files.join(directory, "model.safetensors"), weights_bytes(tensors))
    files.write_json(
        files.join(directory, "generation_config.json"),
        {
            "decoder_start_token_id": layout.start,
            "forced_bos_token_id": layout.bos,
            "eos_token_id": layout.eos,
            "pad_token_id": layout.pad,
            "max_length": 50,
            "num_beams": 1,
            "do_sample": False,
        },
    )
    if model.generator.tokenizer is not None:
        _save_tokenizer(model, files.join(directory, "generator_tokenizer"))
    if getattr(model.question_encoder, "tokenizer", None) is not None:
        model.question_encoder.tokenizer.save_pretrained(files.join(directory, "question_encoder_tokenizer"))
    files.write_json(files.join(directory, "config.json"), config)


def _save_tokenizer(model: RagModel, directory: str) -> None:
    from transformers import PreTrainedTokenizerFast

    layout, backend = model.target_layout, model.generator.tokenizer.backend
    names = {"eos_token": layout.eos, "pad_token": layout.pad}
    special = {name: backend.id_to_token(token) for name, token in names.items()}
    PreTrainedTokenizerFast(tokenizer_object=backend, **special).save_pretrained(directory)
