"""What a sentence-transformers directory says of its vectors: pooling, normalisation, length.

Two forms are read: flags and `max_seq_length` as its releases up to 5 wrote them, and since then one
`pooling_mode` and the tokenizer's own length. What would give other vectors than its `encode` is refused.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from rag_core import files
from rag_core.encoders.text_encoder import EncoderSpec
from rag_core.errors import DataError

MODULES_FILE = "modules.json"
# The scale under which MiniLM and its kin were trained contrastively; without it a softmax over
# cosines, which lie within ±1, is nearly flat.
NORMALIZED_SCORE_SCALE = 20.0
_POOLING = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
# Its `encode` puts the default prompt before a text, `encode_query` and `encode_document` these.
_PROMPTS = ("query", "document", "passage", "corpus")


@dataclass(frozen=True, slots=True)
class BiEncoderLayout:
    """`spec`, the directory of weights and tokenizer, and whether texts are lower-cased beforehand."""

    spec: EncoderSpec
    transformer: str
    lower_case: bool


def read_layout(directory: str) -> BiEncoderLayout:
    """Raises DataError naming the file for modules, pooling or prompts that this suite does not have."""
    path = os.path.join(directory, MODULES_FILE)
    modules = files.read_json(path)
    try:
        kinds = [module["type"].rsplit(".", 1)[-1] for module in modules]
        places = [os.path.normpath(os.path.join(directory, module["path"])) for module in modules]
    except (TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{path}: not a list of modules with type and path") from error
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise DataError(f"{path}: modules {kinds}; need Transformer, Pooling and perhaps Normalize")
    _refuse_prompts(os.path.join(directory, "config_sentence_transformers.json"))
    settings = _optional(os.path.join(places[0], "sentence_bert_config.json"))
    normalize = "Normalize" in kinds
    spec = EncoderSpec(
        _pooling(os.path.join(places[1], "config.json")),
        normalize,
        NORMALIZED_SCORE_SCALE if normalize else 1.0,
        _max_length(places[0], settings),
        pair_token_types=True,
    )
    return BiEncoderLayout(spec, places[0], bool(settings.get("do_lower_case")))


def _optional(path: str) -> dict[str, Any]:
    return files.read_object(path) if os.path.isfile(path) else {}


def _pooling(path: str) -> str:
    config = files.read_object(path)
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [_POOLING.get(k, k) for k, on in config.items() if k.startswith("pooling_mode_") and on]
    modes = [modes] if isinstance(modes, str) else modes
    if not isinstance(modes, list) or len(modes) != 1 or modes[0] not in _POOLING.values():
        raise DataError(f"{path}: pooling {modes}; known are {sorted(_POOLING.values())}")
    return modes[0]


def _max_length(directory: str, settings: dict[str, Any]) -> int:
    if settings.get("max_seq_length") is not None:
        return settings["max_seq_length"]
    tokenizer = _optional(os.path.join(directory, "tokenizer_config.json"))
    config = _optional(os.path.join(directory, "config.json"))
    lengths = [tokenizer.get("model_max_length"), config.get("max_position_embeddings")]
    return int(min((n for n in lengths if isinstance(n, int | float)), default=512))


def _refuse_prompts(path: str) -> None:
    settings = _optional(path)
    prompts = settings.get("prompts") or {}
    used = [name for name in (settings.get("default_prompt_name"), *_PROMPTS) if name and prompts.get(name)]
    if used:
        raise DataError(
            f"{path}: prompt {prompts[used[0]]!r} for {used[0]!r}; encoders here put nothing before a text. "
            "Take the prompt out of that file if texts are to be read without it"
        )
