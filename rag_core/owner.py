"""Who writes a run directory, whether that process still lives, and the lock under which one takes it."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from rag_core import files
from rag_core.outputs import CLAIM

HEARTBEAT_SECONDS = 20
DEAD_AFTER_SECONDS = 120


def new_owner() -> dict[str, Any]:
    """This process, so that another can tell whether it still lives."""
    pid = os.getpid()
    return {
        "host": socket.gethostname(),
        "pid_namespace": _pid_namespace(),
        "pid": pid,
        "pid_start": process_start(pid),
        "token": secrets.token_hex(8),
        "released": False,
    }


def is_owner(value: Any) -> bool:
    """Whether a value read from a `_run.json` has the shape of `new_owner`."""
    kinds = {"host": str, "pid": int, "token": str}
    return isinstance(value, dict) and all(isinstance(value.get(k), kind) for k, kind in kinds.items())


def _pid_namespace() -> str | None:
    """Where a pid means something: containers that share a host's name have pids of their own."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def process_start(pid: int) -> str | None:
    """When a process of this host started (ticks since boot, with the boot id); None when it is gone.

    The pid alone would take a stranger with a recycled number for the owner.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat, open("/proc/sys/kernel/random/boot_id") as boot:
            fields = stat.read().rpartition(b")")[2].split()
            if fields[0] in (b"Z", b"X"):
                return None
            return f"{boot.read().strip()}:{fields[19].decode()}"
    except OSError:
        pass
    if os.path.isdir("/proc/self"):
        return None
    try:  # a system without /proc: the pid is all there is
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return "alive"
    return "alive"


def descendants(pid: int) -> list[int]:
    """The processes below a process of this host, children first; none where there is no /proc."""
    parent_of: dict[int, int] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else []:
        try:
            with open(f"/proc/{name}/stat", "rb") as stat:
                parent_of[int(name)] = int(stat.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError):
            continue  # not a process, or gone since
    found = [pid]
    for known in found:
        found += [child for child, parent in parent_of.items() if parent == known]
    return found[1:]


def is_live(run_url: str, owner: dict[str, Any], now: Callable[[str], float] | None = None) -> bool:
    """Whether the owner named in a `_run.json` (at `run_url`) still writes there.

    On the same host by pid and start time; from another host (or container) by a heartbeat newer than
    120 s by the store's own clock (the file's time against that of a file written now).
    """
    if owner.get("released"):
        return False
    here = owner["host"] == socket.gethostname()
    if here and owner.get("pid_namespace", _pid_namespace()) == _pid_namespace():
        started = owner.get("pid_start")
        return owner["pid"] != os.getpid() and started is not None and process_start(owner["pid"]) == started
    beat = files.info(run_url)
    return beat is not None and (now or _store_time)(run_url) - beat.modified < DEAD_AFTER_SECONDS


def _store_time(run_url: str) -> float:
    """The store's own clock: the time it gives to a file written now, beside the heartbeat."""
    url = f"{run_url}.{files.ATTEMPT}clock-{secrets.token_hex(4)}"
    files.write_bytes(url, b"now\n")
    found = files.info(url)
    files.delete([url])
    return found.modified if found else time.time()


def describe(owner: dict[str, Any]) -> str:
    return f"process {owner['pid']} on {owner['host']}"


@contextlib.contextmanager
def claim_lock(output: str) -> Iterator[None]:
    """Let one process at a time look at a local directory and take it.

    Object stores have no such lock; there a second claim is found by the token at the next heartbeat.
    """
    if not files.is_local(output):
        yield
        return
    import fcntl

    path = os.path.join(output, CLAIM)
    while True:
        with open(path, "a+b") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            if not _is_file(path, stream):
                continue  # who held it has removed it: others already wait for the next one
            try:
                yield
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(path)
            return


def _is_file(path: str, stream: BinaryIO) -> bool:
    """Whether the name still leads to the file that is open."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return False
