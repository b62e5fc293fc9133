"""`python -m eval._warm MODULE …`: commands without the seconds that each would spend on imports.

Imports the modules named (and those only warn that are missing); then every line of standard input is a
command, `{"argv": ["beam_jobs.split", …], "log": PATH}`: a copy of this process (fork) becomes it, with its
output in the log, and its exit code is the line that answers. A copy shares nothing with the next one: what
it imports, sets or breaks ends with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import random
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PRELOADED = (
    "beam_jobs.handlers", "beam_jobs.transforms.stage", "beam_jobs.transforms.generate_answers",
    "beam_jobs.transforms.exact_search", "eval._score", "rag_core.decoding", "rag_core.encoders",
    "rag_core.models", "rag_core.training", "torch", "transformers.models.bart.modeling_bart",
)  # fmt: skip
"""What most commands import. Never a command itself, which would then be run a second time as __main__."""


_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """In a step's process: the kernel ends it when the thread that started it, and waits for it, is gone.

    A step that outlived a killed run would hold its directory against the run that is started next.
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Warm:
    """One such process; `run` is for one thread."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "eval._warm", *PRELOADED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            preexec_fn=end_with_parent,
        )

    def run(self, argv: Sequence[str], log: Path) -> int:
        """The exit code of `python -m ARGV`; minus the signal where one ended it, or this process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        log.write_bytes(b"")
        answer = b""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps({"argv": list(argv), "log": str(log)}).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        return int(answer) if answer else self._process.wait() or 1

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


def preload(modules: Sequence[str]) -> None:
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError as error:  # the command that needs it will say so
            print(f"not preloaded: {name} ({error})", file=sys.stderr)


def become(argv: Sequence[str], log: str) -> None:
    """In the copy: be `python -m ARGV` with its output in `log`. Ends as the command would end."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed()  # else every copy would draw the same
    for stream, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        opened = os.open(path, flags, 0o666)
        os.dup2(opened, stream)
        os.close(opened)
    os.dup2(1, 2)
    sys.argv = list(argv)
    runpy.run_module(argv[0], run_name="__main__", alter_sys=True)


def requests() -> Iterator[dict[str, Any]]:
    while line := sys.stdin.buffer.readline():
        yield json.loads(line)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asked decides; the copy takes it as ever
    preload(sys.argv[1:])
    gc.collect()
    gc.freeze()  # what a copy's collector does not touch is not copied: its end takes 0.4 s, not 1.8
    for request in requests():
        pid = os.fork()
        if pid == 0:
            become(request["argv"], request["log"])
            return
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
