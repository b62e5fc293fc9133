"""Storage: everything `rag_core` reads or writes goes through this module.

Plain paths are served by the standard library. Other schemes (`gs://`, `s3://`) are served by a
backend that somebody registers: `beam_jobs.options` registers Beam's `FileSystems`, so that the
library itself never imports Beam.

Writing is put-when-complete: a file appears under its name only once all of it is there.
"""

from __future__ import annotations

import contextlib
import glob
import io
import json
import os
import re
import secrets
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from rag_core.errors import DataError, UsageError

ATTEMPT = "_attempt-"
"""How the name of a file that is still being written starts."""

_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]+)://")


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A stored file: its URL or path, its size in bytes, and its last change in seconds since 1970.

    `inode` tells two local files apart that have the size and the time of each other.
    """

    url: str
    size: int
    modified: float
    inode: int = 0


class Backend(Protocol):
    """What another store must offer to be registered for its scheme."""

    def open_input(self, url: str) -> BinaryIO: ...

    def upload(self, local_path: str, url: str) -> None:
        """Store a whole local file as `url`; the object must appear atomically."""

    def match(self, pattern: str) -> list[FileInfo]:
        """The files that match a glob pattern (`**` included), in any order."""

    def delete(self, urls: list[str]) -> None: ...


_backends: dict[str, Backend] = {}


def register_backend(scheme: str, backend: Backend) -> None:
    """Serve URLs of `scheme` (without `://`) by `backend` from now on, in this process."""
    _backends[scheme] = backend


def scheme_of(url: str) -> str | None:
    """`gs` for `gs://…`; None for a plain path."""
    match = _SCHEME.match(url)
    return match.group(1).lower() if match else None


def is_local(url: str) -> bool:
    return scheme_of(url) is None


def _backend(url: str) -> Backend:
    scheme = scheme_of(url)
    assert scheme is not None
    if scheme not in _backends:
        known = ", ".join(sorted(_backends)) or "none"
        raise UsageError(f"{url}: no backend for {scheme}:// in this process (registered: {known})")
    return _backends[scheme]


def join(url: str, *names: str) -> str:
    """`join("gs://b/d", "part.parquet")`; the same for plain paths."""
    return "/".join([url.rstrip("/") or url, *names])


def base_name(url: str) -> str:
    return url.rstrip("/").rsplit("/", 1)[-1]


def open_input(url: str) -> BinaryIO:
    """Open for reading, seekable. Raises FileNotFoundError naming the URL."""
    return open(url, "rb") if is_local(url) else _backend(url).open_input(url)


def read_bytes(url: str) -> bytes:
    with open_input(url) as stream:
        return stream.read()


def read_json(url: str) -> Any:
    """Parse a JSON file; `DataError` with file and place when it is not JSON."""
    try:
        return json.loads(read_bytes(url))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{url}: not valid JSON: {error}") from error


def read_object(url: str) -> dict[str, Any]:
    """A JSON file that holds one object. Raises DataError naming the file."""
    value = read_json(url)
    if not isinstance(value, dict):
        raise DataError(f"{url}: expected a JSON object, found {type(value).__name__}")
    return value


def read_toml(url: str) -> dict[str, Any]:
    """Parse a TOML file, which people write: UsageError naming the file when it is none."""
    try:
        return tomllib.loads(read_bytes(url).decode("utf-8"))
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, nested without end
        raise UsageError(f"{url}: not valid TOML: {error}") from error


def list_files(pattern_or_dir: str) -> list[FileInfo]:
    """Files matching a glob pattern, or directly inside a directory; sorted by URL.

    A path that exists is taken literally even when it holds glob characters. Empty when nothing matches.
    """
    if not is_local(pattern_or_dir):
        store, prefix = _backend(pattern_or_dir), pattern_or_dir.rstrip("/") + "/"
        found = store.match(pattern_or_dir)
        if not found and glob.has_magic(pattern_or_dir):
            found = store.match(glob.escape(pattern_or_dir))
        if not found:
            inside = store.match(glob.escape(prefix) + "*")
            found = [f for f in inside if "/" not in f.url[len(prefix) :]]
        return sorted(found, key=lambda f: f.url)
    if os.path.isdir(pattern_or_dir):
        paths = [entry.path for entry in os.scandir(pattern_or_dir) if entry.is_file()]
    elif os.path.exists(pattern_or_dir):
        paths = [pattern_or_dir]
    else:
        paths = [p for p in glob.glob(pattern_or_dir, recursive=True) if os.path.isfile(p)]
    return sorted((_local_info(p) for p in paths), key=lambda f: f.url)


def entries(directory: str) -> list[str]:
    """Names directly inside a directory, files and directories; none when there is no such directory."""
    if is_local(directory):
        return sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    prefix = directory.rstrip("/") + "/"
    return sorted({f.url[len(prefix) :].partition("/")[0] for f in list_tree(directory)})


def list_tree(directory: str) -> list[FileInfo]:
    """All files below a directory, at any depth; sorted by URL."""
    if is_local(directory):
        walked = (os.path.join(d, name) for d, _, names in os.walk(directory) for name in names)
        return sorted((_local_info(p) for p in walked if os.path.isfile(p)), key=lambda f: f.url)
    return sorted(_backend(directory).match(join(glob.escape(directory), "**")), key=lambda f: f.url)


def _local_info(path: str) -> FileInfo:
    status = os.stat(path)
    return FileInfo(path, status.st_size, status.st_mtime, status.st_ino)


def info(url: str) -> FileInfo | None:
    """Size and time of one file, or None when there is no such file."""
    if is_local(url):
        return _local_info(url) if os.path.isfile(url) else None
    exact = [f for f in _backend(url).match(glob.escape(url)) if f.url == url]
    return exact[0] if exact else None


def exists(url: str) -> bool:
    """Whether a file of this name exists (a directory is no file)."""
    return info(url) is not None


def size(url: str) -> int:
    """Bytes of one file. Raises FileNotFoundError."""
    found = info(url)
    if found is None:
        raise FileNotFoundError(2, "No such file", url)
    return found.size


@contextlib.contextmanager
def put(url: str, work_dir: str | None = None) -> Iterator[BinaryIO]:
    """Write a file that appears under its name only when the block ends without an error.

    `work_dir` is where a local attempt is written first (default: beside the target); it must be on
    the same file system. Other stores get the finished file in one upload. A failed attempt leaves
    nothing under the name and its own bytes are removed.
    """
    if is_local(url):
        directory = work_dir or os.path.dirname(url) or "."
        os.makedirs(directory, exist_ok=True)
        os.makedirs(os.path.dirname(url) or ".", exist_ok=True)
        attempt = os.path.join(directory, f"{ATTEMPT}{secrets.token_hex(6)}-{os.path.basename(url)}")
    else:
        directory = tempfile.mkdtemp(prefix="ragline-")
        attempt = os.path.join(directory, "upload")
    try:
        with open(attempt, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if is_local(url):
            os.replace(attempt, url)
        else:
            _backend(url).upload(attempt, url)
    finally:
        if os.path.exists(attempt):
            os.remove(attempt)
        if not is_local(url):
            os.rmdir(directory)


def write_bytes(url: str, data: bytes) -> None:
    with put(url) as stream:
        stream.write(data)


def write_json(url: str, value: Any) -> None:
    """Write indented JSON with sorted keys, put-when-complete.

    A file's name may hold what UTF-8 cannot; then all that is not ASCII is spelt out.
    """
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()
    write_bytes(url, data)


def upload_file(local_path: str, url: str) -> None:
    """Copy a finished local file to `url`, put-when-complete, without reading it into memory."""
    with open(local_path, "rb") as source, put(url) as target:
        shutil.copyfileobj(source, target, 1 << 22)


def delete(urls: list[str]) -> None:
    """Remove files; names that are already gone are fine."""
    for url in urls:
        if is_local(url):
            with contextlib.suppress(FileNotFoundError):
                os.remove(url)
    by_scheme = [url for url in urls if not is_local(url)]
    if by_scheme:
        _backend(by_scheme[0]).delete(by_scheme)


@contextlib.contextmanager
def local_copy(url: str) -> Iterator[str]:
    """A local path with the file's content: the path itself, or a temporary download."""
    if is_local(url):
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="ragline-") as directory:
        path = os.path.join(directory, base_name(url))
        with open_input(url) as source, open(path, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 22)
        yield path


def open_text(url: str) -> io.TextIOWrapper:
    """Open as UTF-8 text whose lines end at `\\n` only (never at U+2028, U+0085 or 0x1C)."""
    return io.TextIOWrapper(open_input(url), encoding="utf-8", newline="\n")
