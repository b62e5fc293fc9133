"""Checkpoints: the native layout and Hugging Face's RAG layout, both ways."""

from rag_core.lazy import lazy_names

_HOMES = {
    "load_model": "store",
    "save_model": "store",
    "load_native": "native",
    "save_native": "native",
}
__all__ = sorted(_HOMES)

__getattr__ = lazy_names(__name__, _HOMES)
