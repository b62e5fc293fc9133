"""Keep a forked child from waiting for threads that only its parent has.

OpenMP keeps a pool of threads after its first parallel loop. A forked child inherits the belief in
them but not the threads, and its next parallel loop (a FAISS search, a torch product) waits for
ever. So a forked child computes with one thread; processes that are spawned are not concerned.
"""

from __future__ import annotations

import os
import sys

_registered = False


def guard() -> None:
    """From now on, children forked from this process use one thread in torch and FAISS."""
    global _registered
    if not _registered and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_use_one_thread)
        _registered = True


def _use_one_thread() -> None:
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    if "faiss" in sys.modules:
        sys.modules["faiss"].omp_set_num_threads(1)
