"""Decoding: greedy and beam search over the RAG-Token marginal, thorough and fast for RAG-Sequence."""

from importlib import import_module

_HOMES = {
    "DecodingConfig": "config",
    "Hypothesis": "hypothesis",
    "Prediction": "hypothesis",
    "answer_questions": "answer",
    "decode": "run",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
