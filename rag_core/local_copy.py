"""Directories of an object store that must be mapped or read by others' code: copied once per machine.

A copy's name is made of the URL and of every file's size and time, so that what is replaced at its URL is
copied anew. Copies lie in `~/.cache/ragline/ROOM` (`XDG_CACHE_HOME` moves it) and may be deleted at any time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence

from rag_core import files
from rag_core.errors import DataError


def cache_room(room: str) -> str:
    """This machine's directory for copies of a kind; made if it is not there."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.path.join(root, "ragline", room)
    os.makedirs(path, exist_ok=True)
    return path


def relative_name(url: str, directory: str) -> str:
    """A stored file's path below its directory. DataError when the name would lead out of a local copy."""
    name = url.removeprefix(directory.rstrip("/") + "/")
    if name == url or os.path.isabs(name) or "\\" in name or {"", ".", ".."} & set(name.split("/")):
        raise DataError(f"{url!r}: not a name below {directory}")
    return name


def local_directory(url: str, room: str, found: Sequence[files.FileInfo]) -> str:
    """A local directory with the files `found` below `url`; DataError when one arrives cut."""
    names = {f.url: relative_name(f.url, url) for f in found}
    state = "\n".join([url, *(f"{f.url} {f.size} {f.modified}" for f in found)])
    cache = cache_room(room)
    target = os.path.join(cache, hashlib.sha256(state.encode()).hexdigest()[:24])
    with open(target + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(target):
            return target
        attempt = tempfile.mkdtemp(dir=cache)
        try:
            for source in found:
                path = os.path.join(attempt, names[source.url])
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with files.open_input(source.url) as reader, open(path, "wb") as writer:
                    shutil.copyfileobj(reader, writer, 1 << 22)
                if os.path.getsize(path) != source.size:
                    raise DataError(f"{source.url}: {source.size} bytes, got {os.path.getsize(path)}")
            os.rename(attempt, target)
        finally:
            shutil.rmtree(attempt, ignore_errors=True)
    return target


def local_index(url: str, kind: str, settings_file: str) -> str:
    """The directory of an index: itself when it is local, else its copy (state files left behind).

    DataError when `settings_file`, which is written last, is not there.
    """
    if files.is_local(url):
        found = os.path.isfile(os.path.join(url, settings_file))
    else:
        found = files.exists(files.join(url, settings_file))
    if not found:
        raise DataError(f"{files.join(url, settings_file)}: missing; {url} is not a finished {kind} index")
    if files.is_local(url):
        return url
    inside = [f for f in files.list_tree(url) if not relative_name(f.url, url).startswith("_")]
    return local_directory(url, "indexes", inside)
