"""`load_encoder`: from a name or place to a `TextEncoder`.

Three layouts of a directory are read: our own (`ragline_encoder.json`), sentence-transformers'
(`modules.json`), and what transformers saves of a DPR or BERT model (`config.json` alone). A RAG
checkpoint serves as its question encoder.
"""

from __future__ import annotations

import os
import re
from typing import Any

from rag_core import files
from rag_core.encoders._quiet import quiet_transformers
from rag_core.encoders.bi_encoder_layout import MODULES_FILE, read_layout
from rag_core.encoders.locate import locate
from rag_core.encoders.text_encoder import METADATA_FILE, EncoderSpec, TextEncoder
from rag_core.errors import DataError, UsageError

COMPUTE = ("fp32", "bf16", "int8")
# DPR cuts passages and questions at 256 tokens, although its BERT has 512 positions.
DPR_MAX_LENGTH = 256
# Tensors that go by these names are part of what makes a vector; heads beside them (pooler, cls) are not.
_BODY = re.compile(r"(^|\.)(encoder\.layer|embeddings|encode_proj)\.")


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
    layout = None
    own_path = os.path.join(directory, METADATA_FILE)
    if not os.path.isfile(own_path) and os.path.isfile(os.path.join(directory, MODULES_FILE)):
        layout = read_layout(directory)
        directory = layout.transformer
    config_path = os.path.join(directory, "config.json")
    if not os.path.isfile(config_path):
        raise DataError(f"{directory}: no config.json; need a model directory saved by transformers")
    config = files.read_object(config_path)
    model_type = config.get("model_type")
    if model_type not in ("bert", "dpr"):
        raise DataError(f"{config_path}: model_type {model_type!r}; encoders are 'bert' or 'dpr'")
    if config.get("is_decoder") or config.get("position_embedding_type", "absolute") != "absolute":
        raise DataError(f"{config_path}: a decoder, or relative positions; need a plain BERT encoder")
    module = _read_module(directory, config)
    size = module.config
    fits = None
    if layout is not None:
        spec = layout.spec
    elif os.path.isfile(own_path):
        spec, fits = _own_spec(own_path)
    else:
        longest = min(DPR_MAX_LENGTH, size.max_position_embeddings)
        spec = EncoderSpec("cls", False, 1.0, longest, pair_token_types=False)
    _check_spec(directory, spec, size)
    tokenizer = _read_tokenizer(directory)
    n_tokens = max(len(tokenizer), 1 + max(tokenizer.get_vocab().values(), default=0))
    if n_tokens > size.vocab_size:
        raise DataError(f"{directory}: tokenizer of {n_tokens} tokens, embeddings of {size.vocab_size}")
    if layout is not None and layout.lower_case and len({str(tokenizer(t)["input_ids"]) for t in "Aa"}) > 1:
        raise DataError(f"{directory}: do_lower_case, but its tokenizer tells capitals apart")
    return TextEncoder(
        name,
        module,
        tokenizer,
        spec,
        dim=getattr(size, "projection_dim", 0) or size.hidden_size,
        fits_passage_encoder=fits,
        # DPR's two halves know nothing of each other; every other encoder serves both sides.
        is_bi_encoder=model_type == "bert",
    )


def _check_spec(directory: str, spec: EncoderSpec, size: Any) -> None:
    """DataError when a model cannot do what the spec says."""
    if spec.max_length > size.max_position_embeddings:
        raise DataError(
            f"{directory}: max_length {spec.max_length} but the model has "
            f"{size.max_position_embeddings} positions"
        )
    if spec.pair_token_types and size.type_vocab_size < 2:
        raise DataError(f"{directory}: a passage's text has token type 1, the model knows only type 0")
    if size.model_type == "dpr" and spec.pooling != "cls":
        raise DataError(f"{directory}: pooling {spec.pooling!r}; DPR's classes give the first token's vector")


def _read_module(directory: str, config: dict[str, Any]) -> Any:
    """The weights in fp32 and eval mode. Refuses missing weights, and layers that the config leaves out."""
    import torch
    import transformers

    options: dict[str, Any] = {
        "local_files_only": True,
        "output_loading_info": True,
        "dtype": torch.float32,
        "ignore_mismatched_sizes": True,  # reported below, by name
    }
    if config["model_type"] == "dpr":
        is_question = any("Question" in a for a in config.get("architectures") or [])
        kind = transformers.DPRQuestionEncoder if is_question else transformers.DPRContextEncoder
    else:
        kind = transformers.BertModel
        options["add_pooling_layer"] = False
    try:
        with quiet_transformers():
            module, report = kind.from_pretrained(directory, **options)
    except Exception as error:  # many kinds, a config's own among them; not all of them name the file
        said = f"{type(error).__name__}: {error}"
        if type(error).__name__ == "UnpicklingError":  # its text advises to switch the protection off
            said = "not a file of plain tensors"
        raise DataError(f"{directory}: cannot read the weights: {said}") from error
    if report["mismatched_keys"]:
        key, stored, expected = sorted(report["mismatched_keys"])[0]
        raise DataError(f"{directory}: {key} is {list(stored)}, config.json makes it {list(expected)}")
    missing = sorted(report["missing_keys"])
    if missing:
        raise DataError(
            f"{directory}: weights lack {len(missing)} tensors of {kind.__name__}, such as {missing[0]}"
        )
    beyond = sorted(
        key for key in report["unexpected_keys"] if _BODY.search(key) and "position_ids" not in key
    )
    if beyond:
        raise DataError(
            f"{directory}: {len(beyond)} tensors that config.json leaves no room for, such as {beyond[0]}"
        )
    return module.eval()


def _read_tokenizer(directory: str) -> Any:
    from transformers import AutoTokenizer

    if not any(os.path.isfile(os.path.join(directory, f)) for f in ("tokenizer.json", "vocab.txt")):
        raise DataError(f"{directory}: no tokenizer.json or vocab.txt; save the tokenizer there too")
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    except Exception as error:  # damaged files raise whatever their first reader raises
        raise DataError(f"{directory}: cannot read the tokenizer: {type(error).__name__}: {error}") from error
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise DataError(f"{directory}: {type(tokenizer).__name__} has no fast form; save a tokenizer.json")
    return tokenizer


def _own_spec(path: str) -> tuple[EncoderSpec, str | None]:
    metadata = files.read_object(path)
    fits = metadata.pop("fits_passage_encoder", None)
    metadata.pop("fingerprint", None)
    try:
        return EncoderSpec(**metadata), fits
    except (TypeError, ValueError) as error:
        raise DataError(f"{path}: {error}") from error
