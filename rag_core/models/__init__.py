"""The generator, its contexts, the two marginals, and the model that joins them.

Names are imported on first use: `import rag_core.models` loads neither torch nor transformers.
"""

from importlib import import_module

_HOMES = {
    "ContextBuilder": "context",
    "ContextFormat": "context",
    "build_contexts": "context",
    "Generator": "generator",
    "TextTokenizer": "tokenizer",
    "load_generator": "generator",
    "RagModel": "rag_model",
    "TargetLayout": "target_layout",
    "doc_log_prior": "marginals",
    "sequence_log_likelihood": "marginals",
    "sequence_posterior": "marginals",
    "token_log_likelihood": "marginals",
    "token_posterior": "marginals",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
