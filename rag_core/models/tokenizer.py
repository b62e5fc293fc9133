"""A generator's tokenizer: plain ids in, text out, special tokens kept apart.

It wraps the `tokenizers` backend of a `tokenizer.json`, so that contexts are built from pieces whose
lengths are known and nothing is added, cut or padded behind our back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tokenizers

from rag_core import files
from rag_core.errors import DataError


class TextTokenizer:
    """Text ↔ token ids. `before` and `after` are the special ids put around an encoder input."""

    def __init__(self, backend: tokenizers.Tokenizer):
        backend.no_truncation()
        backend.no_padding()
        self.backend = backend
        plain = backend.encode("a", add_special_tokens=False).ids
        whole = backend.encode("a", add_special_tokens=True).ids
        at = next(i for i in range(len(whole) + 1) if whole[i : i + len(plain)] == plain)
        self.before, self.after = whole[:at], whole[at + len(plain) :]

    @classmethod
    def load(cls, directory: str, config: Mapping[str, Any] | None = None) -> TextTokenizer | None:
        """Read `tokenizer.json`, or a local directory's older vocabulary files; None when there is none.

        `config`: the raw config of the model it belongs to, for folders that name no tokenizer class.
        Raises DataError naming a file or folder that no tokenizer can be made of.
        """
        path = files.join(directory, "tokenizer.json")
        if files.exists(path):
            try:
                return cls(tokenizers.Tokenizer.from_str(files.read_bytes(path).decode()))
            except Exception as error:  # the library raises nothing narrower
                raise DataError(f"{path}: no tokenizer: {error}") from error
        old = ("vocab.json", "spiece.model", "vocab.txt", "sentencepiece.bpe.model")
        if files.is_local(directory) and any(files.exists(files.join(directory, n)) for n in old):
            return cls(_old_backend(directory, config))
        return None

    def save(self, directory: str) -> None:
        files.write_bytes(files.join(directory, "tokenizer.json"), self.backend.to_str(pretty=False).encode())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without special tokens."""
        encoded = self.backend.encode_batch(list(texts), add_special_tokens=False)
        return [e.ids for e in encoded]

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of the ids, special tokens left out, outer white space stripped."""
        return self.backend.decode(list(token_ids), skip_special_tokens=True).strip()

    def tokens(self, token_ids: Sequence[int]) -> list[str]:
        """The text of each token by itself, special tokens by their names (`</s>`)."""
        return [self.backend.decode([int(t)], skip_special_tokens=False) for t in token_ids]


def _old_backend(directory: str, config: Mapping[str, Any] | None) -> tokenizers.Tokenizer:
    from transformers import AutoTokenizer
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = CONFIG_MAPPING[config["model_type"]].from_dict(dict(config)) if config else None
    try:
        loaded = AutoTokenizer.from_pretrained(directory, config=kind, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().split("\n")[0]
        raise DataError(f"{directory}: no tokenizer can be made of its files: {reason}") from error
    return loaded.backend_tokenizer
