"""Commands with their prerequisites, run as processes: what demo, nightly run and experiments are made of."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from rag_core.errors import EXIT_STAGE_FAILED


@dataclass(frozen=True)
class Step:
    """One command: `python -m MODULE …`, started once every step in `needs` has ended well."""

    name: str
    argv: tuple[str, ...]
    needs: tuple[str, ...] = ()
    threads: int = 1


class StepError(RuntimeError):
    """A step failed; its output is in the log named in the message."""

    exit_code = EXIT_STAGE_FAILED


def run_steps(
    steps: Sequence[Step],
    logs: Path,
    at_once: int = 2,
    quiet: bool = False,
    ended: Callable[[Step, float], None] | None = None,
) -> dict[str, float]:
    """Run all steps, up to `at_once` together, each with its `threads`; returns seconds by name.

    A step's output goes to `logs/NAME.log`; `ended` is told of each that ended well, and its seconds.
    Every command keeps what it has finished, so a run that was stopped is started again in the same way.
    Raises StepError at the first failure, ValueError on an unknown prerequisite or a circle.
    """
    _check(steps)
    logs.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    seconds: dict[str, float] = {}
    waiting = list(steps)
    running: dict[Future[float], Step] = {}
    with ThreadPoolExecutor(at_once) as pool:
        while waiting or running:
            ready = [s for s in waiting if all(need in seconds for need in s.needs)]
            for step in ready[: at_once - len(running)]:
                waiting.remove(step)
                running[pool.submit(_run, step, logs)] = step
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                step = running.pop(future)
                seconds[step.name] = future.result()
                if ended is not None:
                    ended(step, seconds[step.name])
                if not quiet:
                    now = time.monotonic() - started
                    print(f"[{now:6.1f} s] {step.name:<24} {seconds[step.name]:6.1f} s", flush=True)
    return seconds


_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """In the step's process: the kernel ends it when the thread that started it, and waits for it, is gone.

    A step that outlived a killed run would hold its directory against the run that is started next.
    """
    assert _LIBC is not None
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _run(step: Step, logs: Path) -> float:
    started = time.monotonic()
    log = logs / f"{step.name}.log"
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(step.threads),
        "OMP_WAIT_POLICY": "passive",  # steps share the cores: a thread that waits must not spin
        "TOKENIZERS_PARALLELISM": "false",
    }
    with open(log, "wb") as stream:
        code = subprocess.run(
            [sys.executable, "-m", *step.argv],
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
            preexec_fn=_LIBC and _end_with_parent,
        ).returncode
    if code:
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        raise StepError(f"step {step.name} ended with code {code}: {''.join(last)} (see {log})")
    return time.monotonic() - started


def _check(steps: Sequence[Step]) -> None:
    known: set[str] = set()
    for step in steps:
        missing = [need for need in step.needs if need not in known]
        if missing:
            raise ValueError(f"step {step.name} needs {missing[0]!r}, which does not come before it")
        if step.name in known:
            raise ValueError(f"two steps are called {step.name!r}")
        known.add(step.name)
