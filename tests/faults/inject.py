"""Faults of storage, process and clock, put into a child process at a chosen storage call.

Everything a job reads or writes goes through `rag_core.files`; its functions are wrapped, calls are
counted, and the fault strikes at call number `at`. Nothing of the product knows of this.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rag_core import files

KINDS = (
    "kill",  # SIGKILL, before the call
    "kill_after",  # SIGKILL, when a file has just appeared under its name
    "error_once",  # the call fails, later ones do not
    "retry_after_write",  # a file is in place, and its writer is told that it failed
    "disk_full",  # from here on nothing can be written
    "short_reads",  # reads give a few bytes less than asked, as a stream may
    "clock",  # the clock jumps a day, back or ahead
)


@dataclass(frozen=True)
class Fault:
    """`kind` strikes at storage call number `at`; `size` is the kind's own (bytes, direction)."""

    kind: str
    at: int
    size: int = 1


class Calls:
    """The wrapped `rag_core.files` of this process, and the fault that waits in it."""

    def __init__(self, fault: Fault | None) -> None:
        self.fault, self.count, self.struck = fault, 0, False
        self._put, self._open = files.put, files.open_input
        files.put, files.open_input = self.put, self.open_input  # type: ignore[assignment]
        for name in ("info", "delete", "list_tree", "list_files"):
            setattr(files, name, self._counted(getattr(files, name)))

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._tick("other")
            return function(*args, **kwargs)

        return call

    def open_input(self, url: str) -> Any:
        self._tick("read")
        stream = self._open(url)
        fault = self.fault
        if fault and fault.kind == "short_reads" and self.struck and files.is_local(url):
            return io.BufferedReader(_ShortReads(stream, fault.size))
        return stream

    @contextlib.contextmanager
    def put(self, url: str, work_dir: str | None = None) -> Any:
        self._tick("write")
        with self._put(url, work_dir) as stream:
            if self.struck and self.fault and self.fault.kind == "disk_full":
                raise OSError(errno.ENOSPC, "No space left on device", url)
            yield stream
        if self._due("kill_after"):
            os.kill(os.getpid(), signal.SIGKILL)
        if self._due("retry_after_write"):
            raise OSError(errno.EIO, "Input/output error", url)

    def _due(self, kind: str) -> bool:
        """Whether the fault is of this kind and has not struck yet though its call has come."""
        due = self.fault is not None and self.fault.kind == kind and self.count >= self.fault.at
        due = due and not self.struck
        self.struck = self.struck or due
        return due

    def _tick(self, what: str) -> None:
        self.count += 1
        if self._due("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        if what != "other" and self._due("error_once"):
            raise OSError(errno.EIO, "Input/output error")
        self._due("disk_full")
        self._due("short_reads")
        if self._due("clock"):
            now, jump = time.time, 86_400 * (1 if self.fault and self.fault.size % 2 else -1)
            time.time = lambda: now() + jump


class _ShortReads(io.RawIOBase):
    """A file whose reads give at most `most` bytes."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream, self._most = stream, max(1, most)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = 0) -> int:
        return int(self._stream.seek(place, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(min(len(buffer), self._most))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()
