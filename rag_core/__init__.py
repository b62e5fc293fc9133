"""The library: everything about RAG that does not need Beam. Heavy packages load when first used."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "DecodingConfig": "rag_core.decoding",
    "Hypothesis": "rag_core.decoding",
    "RagModel": "rag_core.models",
    "read_embeddings": "rag_core.stages",
    "read_manifest": "rag_core.run_dir",
    "read_table": "rag_core.stages",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'rag_core' has no attribute {name!r}")
