"""Which layout a directory has, and how one is written whole or not at all."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rag_core import files
from rag_core.encoders.locate import is_hub_id, locate
from rag_core.errors import DataError, UsageError

if TYPE_CHECKING:
    from rag_core.models.rag_model import RagModel

MARKER = "checkpoint.json"


def load_model(path: str, kind: str | None = None) -> RagModel:
    """Load a native or Hugging Face RAG directory; see `RagModel.from_pretrained`."""
    if files.exists(files.join(path, MARKER)):
        from rag_core.checkpoints.native import load_native

        return load_native(path, kind)
    config_file = files.join(path, "config.json")
    if files.exists(config_file) and files.read_object(config_file).get("model_type") == "rag":
        from rag_core.checkpoints.huggingface import load_huggingface

        return load_huggingface(path, kind)
    if not files.list_tree(path):
        if is_hub_id(path):
            return load_model(locate(path), kind)
        raise UsageError(f"{path}: no checkpoint there (no such directory, or an empty one)")
    raise DataError(
        f"{path}: not a RAG checkpoint; expected {MARKER} (ours; written last, so a save that was cut "
        "short has none) or a config.json of model_type 'rag'"
    )


def save_model(model: RagModel, path: str, layout: str = "native") -> None:
    """Write a checkpoint in one of the two layouts; an old one stays until the new one is whole."""
    if layout not in ("native", "huggingface"):
        raise ValueError(f"layout {layout!r}; right: 'native' or 'huggingface'")
    if layout == "native":
        from rag_core.checkpoints.native import save_native as save
    else:
        from rag_core.checkpoints.huggingface import save_huggingface as save
    with replaced_directory(path) as attempt:
        save(model, attempt)


@contextmanager
def replaced_directory(path: str) -> Iterator[str]:
    """A new directory to write into; it takes `path`'s place only when the block ends without error.

    On other stores than a local disk there is no rename: files are uploaded one by one, the marker
    last, so that it tells a whole checkpoint from a part of one.
    """
    if not files.is_local(path):
        with tempfile.TemporaryDirectory(prefix="ragline-") as attempt:
            yield attempt
            written = [f.url for f in files.list_tree(attempt)]
            for source in sorted(written, key=lambda url: files.base_name(url) == MARKER):
                files.upload_file(source, files.join(path, os.path.relpath(source, attempt)))
        return
    path = path.rstrip("/")
    attempt = f"{path}.new-{os.getpid()}"
    shutil.rmtree(attempt, ignore_errors=True)
    os.makedirs(attempt)
    try:
        yield attempt
    except BaseException:
        shutil.rmtree(attempt, ignore_errors=True)
        raise
    for found in files.list_tree(attempt):
        _sync(found.url)
    _put_in_place(attempt, path)
    _sync(os.path.dirname(os.path.abspath(path)))


def _put_in_place(attempt: str, path: str) -> None:
    """Give a directory its name. What had the name goes afterwards: at any moment it is whole."""
    if not os.path.isdir(path):
        os.rename(attempt, path)
    elif _exchange(attempt, path):
        shutil.rmtree(attempt, ignore_errors=True)
    else:
        old = f"{path}.old-{os.getpid()}"
        os.rename(path, old)
        os.rename(attempt, path)
        shutil.rmtree(old, ignore_errors=True)


def _exchange(one: str, other: str) -> bool:
    """Swap two directories in one step; False where the file system cannot (then: two renames)."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    at_cwd, exchange = -100, 2
    return rename is not None and rename(at_cwd, os.fsencode(one), at_cwd, os.fsencode(other), exchange) == 0


def _sync(path: str) -> None:
    """Have a file, or the names in a directory, on the disk before anything relies on it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
