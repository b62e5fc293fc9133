"""Models and indexes that a worker process keeps: loaded once, shared by its threads."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from rag_core import files
from rag_core.digest import digest_of
from rag_core.errors import DataError
from rag_core.stages import stage_manifest

MODEL_MARKERS = ("checkpoint.json", "config.json", "modules.json")
_lock = threading.RLock()


def once_per_process(load: Callable[..., Any]) -> Callable[..., Any]:
    """Call `load` once for each set of arguments in this process, whatever the number of threads.

    Arguments that are paths or URLs (or tuples of them) are watched: when what lies there was replaced
    since, it is loaded anew. On a store that costs one request a call for a file, three to six for a run or a
    model: call it once a part, not once a record.
    """
    kept: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    @functools.wraps(load)
    def shared(*args: Any) -> Any:
        state = [_state_of(arg) for arg in args]
        with _lock:
            if args not in kept or kept[args][0] != state:
                kept.pop(args, None)  # the old one and the new one need not be held at once
                kept[args] = (state, load(*args))
            return kept[args][1]

    return shared


def _state_of(arg: Any) -> Any:
    """Size, time and inode of a file, a run's manifest, or every file of a model; None for other things.

    A checkpoint is a run and a model: its weights may be replaced where its manifest stays.
    """
    if isinstance(arg, tuple):
        return [_state_of(each) for each in arg]
    if not isinstance(arg, str | os.PathLike) or (files.is_local(os.fspath(arg)) and not os.path.exists(arg)):
        return None
    url = os.fspath(arg)
    if (found := files.info(url)) is not None:
        return found
    manifest = files.info(files.join(url, "_manifest.json"))
    markers = MODEL_MARKERS[:1] if manifest else MODEL_MARKERS
    if not any(files.exists(files.join(url, marker)) for marker in markers):
        return manifest
    return [f for f in files.list_tree(url) if not f.url[len(url) :].lstrip("/").startswith(("_", "."))]


def check_unchanged(name: str, found: str, expected: str) -> None:
    """DataError when a model is not the one that the run was planned with.

    Workers load a model for themselves, and again when its files change: what they find may have been
    replaced since the run recorded its fingerprint.
    """
    if expected and found != expected:
        raise DataError(
            f"{name}: replaced while the job ran (fingerprint {found[:12]}…, the run has {expected[:12]}…); "
            "put it back and start the same command again, or start it with a new output"
        )


@once_per_process
def shared_encoder(name: str, compute: str = "fp32") -> Any:
    from rag_core.encoders import load_encoder

    return load_encoder(name, compute=compute)


@once_per_process
def shared_index(directory: str) -> Any:
    """The index in a run directory, whatever its kind."""
    from rag_core.retrieval import Bm25Index, FaissIndex

    kind = stage_manifest(directory, "index")["kind"]
    return (Bm25Index if kind == "bm25" else FaissIndex).open(directory)


@once_per_process
def shared_passages(directory: str) -> Any:
    from rag_core.retrieval import PassageStore

    return PassageStore.open(directory)


@once_per_process
def shared_model(checkpoint: str, kind: str | None, compute: str = "fp32") -> Any:
    """A RAG checkpoint, or a bare generator (a built-in name or its directory) put to use as `kind`.

    On the GPU where there is one. A bare generator has no question encoder; it answers from passages
    that were retrieved without it. `fingerprint`: all of it that decides an answer to given passages.
    """
    import torch

    from rag_core.models import RagModel, load_generator
    from rag_core.models.compute import lower_precision
    from rag_core.models.generator import BUILT_IN

    if checkpoint in BUILT_IN or _is_bare_generator(checkpoint):
        model = RagModel(load_generator(checkpoint), kind=kind or "sequence").eval()
    else:
        model = RagModel.from_pretrained(checkpoint, kind=kind)
    model.fingerprint = generator_fingerprint(model)
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    lower_precision(model.generator, compute)
    return model


def _is_bare_generator(directory: str) -> bool:
    config = files.join(directory, "config.json")
    if files.exists(files.join(directory, "checkpoint.json")) or not files.exists(config):
        return False
    return files.read_json(config).get("model_type") != "rag"


def generator_fingerprint(model: Any) -> str:
    """All of a model that decides an answer to given passages: weights, tokens, layout, contexts, labels."""
    from rag_core.encoders.text_encoder import weights_digest

    tokenizer = model.generator.tokenizer
    return digest_of(
        {
            "weights": weights_digest(model.generator),
            "tokenizer": tokenizer.backend.to_str() if tokenizer else None,
            "target_layout": model.target_layout.to_json(),
            "context_format": asdict(model.context_format),
            "labels": [list(model.labels), bool(model.info.get("text_answers"))],
        }
    )
