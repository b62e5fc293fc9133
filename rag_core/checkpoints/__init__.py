"""Checkpoints: the native layout and Hugging Face's RAG layout, both ways."""

from importlib import import_module

_HOMES = {
    "load_model": "store",
    "save_model": "store",
    "load_native": "native",
    "save_native": "native",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
