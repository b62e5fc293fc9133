"""Decoding: greedy and beam search over the RAG-Token marginal, thorough and fast for RAG-Sequence."""

from rag_core.lazy import lazy_names

_HOMES = {
    "DecodingConfig": "config",
    "Hypothesis": "hypothesis",
    "Prediction": "hypothesis",
    "answer_questions": "answer",
    "decode": "run",
}
__all__ = sorted(_HOMES)

__getattr__ = lazy_names(__name__, _HOMES)
