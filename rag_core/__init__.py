"""The library: everything about RAG that does not need Beam. Heavy packages load when first used."""

from __future__ import annotations

from rag_core.lazy import lazy_names

_HOMES = {
    "DecodingConfig": "decoding",
    "Hypothesis": "decoding",
    "RagModel": "models",
    "read_embeddings": "stages",
    "read_manifest": "run_dir",
    "read_table": "stages",
}
__all__ = sorted(_HOMES)

__getattr__ = lazy_names(__name__, _HOMES)
