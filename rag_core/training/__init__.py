"""Training through the marginal: data order, retrieval in the loop, loss, state, monitor."""

from rag_core.lazy import lazy_names

_HOMES = {"TrainConfig": "config", "train": "loop"}
__all__ = sorted(_HOMES)

__getattr__ = lazy_names(__name__, _HOMES)
