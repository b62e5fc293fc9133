"""Faults at file boundaries: a child process is killed, or its disk is full, at its n-th storage call."""

import errno
import os
import signal
import sys
from collections.abc import Callable

BOUNDARIES = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree"}


def in_child(work: Callable[[], int | None], hook: Callable[[str, tuple], None] | None = None) -> int:
    """Run `work` in a forked child, its output dropped; its exit code, or minus the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            if hook is not None:
                sys.addaudithook(hook)
            code = work() or 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def killed_at(n: int, work: Callable[[], int | None], within: str) -> int:
    """SIGKILL before the n-th storage call that concerns a path below `within`."""
    left = [n]

    def strike(event: str, args: tuple) -> None:
        if event in BOUNDARIES and str(args[0]).startswith(within):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return in_child(work, strike)


def full_from(n: int, work: Callable[[], int | None], within: str) -> int:
    """From the n-th file opened for writing below `within` on, nothing can be written."""
    left = [n]

    def strike(event: str, args: tuple) -> None:
        if event == "open" and str(args[0]).startswith(within) and args[2] & (os.O_WRONLY | os.O_RDWR):
            left[0] -= 1
            if left[0] <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), args[0])

    return in_child(work, strike)
