"""Checksums of index files, taken when they are written and compared when they are opened.

A flipped byte in an index loads silently and answers wrongly; a checksum is the only sign of it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping

from rag_core.errors import DataError


def file_digests(directory: str, names: Iterable[str]) -> dict[str, dict[str, int | str]]:
    """`{name: {"bytes": …, "sha256": …}}` of files in a local directory."""
    return {name: _digest(os.path.join(directory, name)) for name in sorted(names)}


def check_files(directory: str, expected: Mapping[str, Mapping[str, int | str]]) -> None:
    """DataError naming the first file that is missing, cut or changed since `file_digests`."""
    for name, state in expected.items():
        path = os.path.join(directory, name)
        if not os.path.isfile(path):
            raise DataError(f"{path}: missing; build the index again")
        if os.path.getsize(path) != state["bytes"]:
            raise DataError(
                f"{path}: {os.path.getsize(path)} bytes, written with {state['bytes']}; build the index again"
            )
        if _digest(path)["sha256"] != state["sha256"]:
            raise DataError(f"{path}: its bytes have changed since it was written; build the index again")


def _digest(path: str) -> dict[str, int | str]:
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"bytes": os.path.getsize(path), "sha256": digest}
