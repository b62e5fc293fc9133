"""The native layout: `checkpoint.json`, `question_encoder/`, `generator/`, each with weights and tokenizer.

`checkpoint.json` is written last: a directory without it is a save that was cut short.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rag_core import files
from rag_core.checkpoints.question_encoders import load_question_encoder
from rag_core.checkpoints.store import MARKER
from rag_core.errors import DataError
from rag_core.models.context import ContextFormat
from rag_core.models.generator import load_generator
from rag_core.models.rag_model import KINDS, RagModel

FORMAT = 1


def save_native(model: RagModel, directory: str) -> None:
    """Write the parts, then the marker."""
    from rag_core.encoders.text_encoder import weights_digest

    model.generator.save(files.join(directory, "generator"))
    encoder = model.question_encoder
    if encoder is not None:
        encoder.save_pretrained(files.join(directory, "question_encoder"))
    files.write_json(
        files.join(directory, MARKER),
        {
            "format": FORMAT,
            "kind": model.kind,
            "n_docs": model.n_docs,
            "target_layout": model.target_layout.to_json(),
            "context_format": asdict(model.context_format),
            "labels": list(model.labels),
            "has_question_encoder": encoder is not None,
            "fingerprints": {
                "generator": weights_digest(model.generator),
                "question_encoder": getattr(encoder, "fingerprint", None),
            },
            "info": model.info,
        },
    )


def load_native(directory: str, kind: str | None = None) -> RagModel:
    """Read a native checkpoint in eval mode; `kind` overrides the recorded one."""
    from rag_core.encoders.locate import locate

    directory = locate(directory)
    marker = files.join(directory, MARKER)
    meta = files.read_object(marker)
    if meta.get("format") != FORMAT:
        raise DataError(f"{directory}: checkpoint format {meta.get('format')!r}; this version reads {FORMAT}")
    try:
        options: dict[str, Any] = {
            "kind": checked_kind(meta["kind"], kind),
            "n_docs": meta["n_docs"],
            "context_format": ContextFormat(**meta["context_format"]),
            "labels": tuple(meta["labels"]),
            "info": meta["info"],
        }
        has_encoder = meta["has_question_encoder"]
    except (KeyError, TypeError) as error:
        raise DataError(f"{marker}: damaged: {type(error).__name__} {error}") from error
    generator = load_generator(files.join(directory, "generator"))
    encoder = load_question_encoder(files.join(directory, "question_encoder")) if has_encoder else None
    return RagModel(generator, encoder, **options).eval()


def checked_kind(recorded: str, asked: str | None) -> str:
    """The kind to use: all three read the same weights, so any may be asked for."""
    if asked is not None and asked not in KINDS:
        raise ValueError(f"kind {asked!r}; right: {', '.join(KINDS)}")
    return asked or recorded
