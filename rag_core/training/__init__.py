"""Training through the marginal: data order, retrieval in the loop, loss, state, monitor."""

from importlib import import_module

_HOMES = {"TrainConfig": "config", "train": "loop"}
__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
