"""Commands with their prerequisites, run as processes: what demo, nightly run and experiments are made of."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from eval._warm import Warm, end_with_parent
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
    warm: bool = False,
) -> dict[str, float]:
    """Run all steps, up to `at_once` together, each with its `threads`; returns seconds by name.

    A step's output goes to `logs/NAME.log`; `ended` is told of each that ended well, and its seconds.
    Every command keeps what it has finished, so a run that was stopped is started again in the same way.
    `warm`: steps of one thread are forked from processes that have imported already (Linux alone; 2 to 4
    seconds a step).
    Raises StepError at the first failure, ValueError on an unknown prerequisite or a circle.
    """
    _check(steps)
    logs.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    seconds: dict[str, float] = {}
    waiting = list(steps)
    running: dict[Future[float], Step] = {}
    with Starter(warm and sys.platform == "linux") as starter, ThreadPoolExecutor(at_once) as pool:
        while waiting or running:
            ready = [s for s in waiting if all(need in seconds for need in s.needs)]
            for step in ready[: at_once - len(running)]:
                waiting.remove(step)
                running[pool.submit(_run, step, logs, starter)] = step
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


class Starter:
    """Starts commands: each in a Python of its own or, `warm`, as a copy of one that its slot keeps."""

    def __init__(self, warm: bool) -> None:
        self._warm = warm
        self._idle: list[Warm] = []

    def __enter__(self) -> Starter:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._idle:
            process.close()

    def run(self, argv: Sequence[str], log: Path, threads: int) -> int:
        """The exit code of `python -m ARGV`, whose output goes to `log`."""
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(threads),
            "OMP_WAIT_POLICY": "passive",  # steps share the cores: a thread that waits must not spin
            "TOKENIZERS_PARALLELISM": "false",
        }
        if self._warm and threads == 1:
            process = self._idle.pop() if self._idle else Warm(environment)
            code = process.run(argv, log)
            self._idle.append(process)
            return code
        with open(log, "wb") as stream:
            return subprocess.run(
                [sys.executable, "-m", *argv],
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=environment,
                preexec_fn=end_with_parent,
            ).returncode


def _run(step: Step, logs: Path, starter: Starter) -> float:
    started = time.monotonic()
    log = logs / f"{step.name}.log"
    code = starter.run(step.argv, log, step.threads)
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
