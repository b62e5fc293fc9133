"""The generator, its contexts, the two marginals, and the model that joins them.

Names are imported on first use: `import rag_core.models` loads neither torch nor transformers.
"""

from rag_core.lazy import lazy_names

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

__getattr__ = lazy_names(__name__, _HOMES)
