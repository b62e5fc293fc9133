"""Models and indexes that a worker process keeps: loaded once, shared by its threads."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

_lock = threading.Lock()


def once_per_process(load: Callable[..., Any]) -> Callable[..., Any]:
    """Call `load` once for each set of arguments in this process, whatever the number of threads."""
    cached = functools.cache(load)

    @functools.wraps(load)
    def locked(*args: Any) -> Any:
        with _lock:
            return cached(*args)

    return locked


@once_per_process
def shared_encoder(name: str, compute: str = "fp32") -> Any:
    from rag_core.encoders import load_encoder

    return load_encoder(name, compute=compute)


@once_per_process
def shared_index(directory: str) -> Any:
    """The index in a run directory, whatever its kind."""
    from rag_core.retrieval import open_index

    return open_index(directory)


@once_per_process
def shared_passages(directory: str) -> Any:
    from rag_core.retrieval import PassageStore

    return PassageStore.open(directory)


@once_per_process
def shared_model(checkpoint: str, kind: str | None) -> Any:
    from rag_core.models import RagModel

    return RagModel.from_pretrained(checkpoint, kind=kind)
