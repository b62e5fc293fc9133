"""`load_encoder`: from a name or place to a `TextEncoder`.

Three layouts of a directory are read: our own (`ragline_encoder.json`), sentence-transformers'
(`modules.json`), and what transformers saves of a DPR or BERT model (`config.json` alone). A RAG
checkpoint serves as its question encoder.
"""

from __future__ import annotations

import os
from typing import Any

from rag_core import files
from rag_core.encoders._quiet import quiet_transformers
from rag_core.encoders.locate import locate
from rag_core.encoders.text_encoder import METADATA_FILE, EncoderSpec, TextEncoder
from rag_core.errors import DataError, UsageError

COMPUTE = ("fp32", "bf16", "int8")
# DPR cuts passages and questions at 256 tokens, although its BERT has 512 positions.
DPR_MAX_LENGTH = 256
# The scale under which MiniLM and its kin were trained contrastively; without it a softmax over
# cosines, which lie within ±1, is nearly flat.
NORMALIZED_SCORE_SCALE = 20.0


def load_encoder(
    name_or_dir: str | os.PathLike[str], compute: str = "fp32", *, device: str | None = None
) -> TextEncoder:
    """Load an encoder in eval mode.

    name_or_dir: "minilm", a local directory, a `gs://` or `s3://` directory, or a hub id `org/name`.
    compute: "fp32"; "bf16" or "int8" for encoding only (not for training). device: default CUDA
    where there is one. Raises UnknownModelError (no such model) or ValueError (unusable directory).
    """
    if compute not in COMPUTE:
        raise UsageError(f"compute {compute!r}; known are {', '.join(COMPUTE)}")
    name = os.fspath(name_or_dir)
    directory = locate(name)
    inner = os.path.join(directory, "question_encoder")
    if os.path.isfile(os.path.join(directory, "checkpoint.json")) and os.path.isdir(inner):
        directory = inner
    encoder = _read_directory(name, directory)
    import torch

    encoder.module.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if compute != "fp32":
        from rag_core.encoders.compute import lower_precision

        lower_precision(encoder, compute)
    return encoder


def _read_directory(name: str, directory: str) -> TextEncoder:
    config_path = os.path.join(directory, "config.json")
    if not os.path.isfile(config_path):
        raise DataError(f"{directory}: no config.json; need a model directory saved by transformers")
    config = files.read_json(config_path)
    model_type = config.get("model_type")
    if model_type not in ("bert", "dpr"):
        raise DataError(f"{config_path}: model_type {model_type!r}; encoders are 'bert' or 'dpr'")
    # DPR's two halves know nothing of each other; every other encoder serves both sides.
    is_bi_encoder = model_type == "bert"
    fits = None
    if os.path.isfile(os.path.join(directory, METADATA_FILE)):
        spec, fits = _own_spec(os.path.join(directory, METADATA_FILE))
    elif os.path.isfile(os.path.join(directory, "modules.json")):
        spec = _sentence_transformers_spec(directory)
    else:
        longest = min(DPR_MAX_LENGTH, config.get("max_position_embeddings", DPR_MAX_LENGTH))
        spec = EncoderSpec("cls", False, 1.0, longest, pair_token_types=False)
    if spec.max_length > config.get("max_position_embeddings", 512):
        raise DataError(
            f"{directory}: max_length {spec.max_length} but the model has "
            f"{config['max_position_embeddings']} positions"
        )
    module, dim = _read_module(directory, config)
    tokenizer = _read_tokenizer(directory)
    if len(tokenizer) > config["vocab_size"]:
        raise DataError(
            f"{directory}: tokenizer of {len(tokenizer)} tokens, embeddings of {config['vocab_size']}"
        )
    return TextEncoder(
        name,
        module,
        tokenizer,
        spec,
        dim=dim,
        fits_passage_encoder=fits,
        is_bi_encoder=is_bi_encoder,
    )


def _read_module(directory: str, config: dict[str, Any]) -> tuple[Any, int]:
    """The weights in fp32 and eval mode, and the size of a vector. Refuses missing weights."""
    import torch
    import transformers
    from safetensors import SafetensorError

    options: dict[str, Any] = {
        "local_files_only": True,
        "output_loading_info": True,
        "dtype": torch.float32,
    }
    if config["model_type"] == "dpr":
        is_question = any("Question" in a for a in config.get("architectures") or [])
        kind = transformers.DPRQuestionEncoder if is_question else transformers.DPRContextEncoder
        dim = config.get("projection_dim") or config["hidden_size"]
    else:
        kind = transformers.BertModel
        options["add_pooling_layer"] = False
        dim = config["hidden_size"]
    try:
        with quiet_transformers():
            module, report = kind.from_pretrained(directory, **options)
    except (OSError, RuntimeError, ValueError, SafetensorError) as error:
        raise DataError(f"{directory}: cannot read the weights: {error}") from error
    missing = sorted(report["missing_keys"])
    if missing:
        raise DataError(
            f"{directory}: weights lack {len(missing)} tensors of {kind.__name__}, such as {missing[0]}"
        )
    return module.eval(), dim


def _read_tokenizer(directory: str) -> Any:
    from transformers import AutoTokenizer

    if not any(os.path.isfile(os.path.join(directory, f)) for f in ("tokenizer.json", "vocab.txt")):
        raise DataError(f"{directory}: no tokenizer.json or vocab.txt; save the tokenizer there too")
    return AutoTokenizer.from_pretrained(directory, local_files_only=True)


def _own_spec(path: str) -> tuple[EncoderSpec, str | None]:
    metadata = files.read_json(path)
    fits = metadata.pop("fits_passage_encoder", None)
    metadata.pop("fingerprint", None)
    try:
        return EncoderSpec(**metadata), fits
    except (TypeError, ValueError) as error:
        raise DataError(f"{path}: {error}") from error


def _sentence_transformers_spec(directory: str) -> EncoderSpec:
    """Pooling, normalisation and length of a sentence-transformers directory; refuses other modules."""
    path = os.path.join(directory, "modules.json")
    kinds = [module["type"].rsplit(".", 1)[-1] for module in files.read_json(path)]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise DataError(f"{path}: modules {kinds}; need Transformer, Pooling and perhaps Normalize")
    pooling_path = os.path.join(directory, "1_Pooling", "config.json")
    pooling = files.read_json(pooling_path)
    modes = [key for key, on in pooling.items() if key.startswith("pooling_mode_") and on]
    names = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
    if len(modes) != 1 or modes[0] not in names:
        raise DataError(f"{pooling_path}: pooling {modes}; known are {sorted(names)}")
    normalize = "Normalize" in kinds
    return EncoderSpec(
        names[modes[0]],
        normalize,
        NORMALIZED_SCORE_SCALE if normalize else 1.0,
        files.read_json(os.path.join(directory, "sentence_bert_config.json"))["max_seq_length"],
        pair_token_types=True,
    )
