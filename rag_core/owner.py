"""Who writes a run directory, and whether that process still lives."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable
from typing import Any

from rag_core import files

HEARTBEAT_SECONDS = 20
DEAD_AFTER_SECONDS = 120


def new_owner() -> dict[str, Any]:
    """This process, so that another can tell whether it still lives."""
    pid = os.getpid()
    return {
        "host": socket.gethostname(),
        "pid": pid,
        "pid_start": process_start(pid),
        "token": secrets.token_hex(8),
        "released": False,
    }


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

    On the same host by pid and start time; from another host by a heartbeat newer than 120 s by the
    store's own clock (the file's time against that of a file written now).
    """
    if owner.get("released"):
        return False
    if owner["host"] == socket.gethostname():
        return owner["pid"] != os.getpid() and process_start(owner["pid"]) == owner["pid_start"] is not None
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
