"""What of a run is finished: `steps.json`, a record for every command that ended well.

A command that ended is not started again while it reads the same, its output is there, and so it is with
everything it needs. (Every command would find out by itself; finding out takes seconds of starting each.)
Without `steps.json` every command is asked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eval._steps import Step, run_steps
from eval.miniature._expand import output_of
from rag_core import files
from rag_core.errors import DataError

LEDGER = "steps.json"
WORTH_WARMING = 6
"""So many steps, and what they import is imported once for all: that takes as long as some three starts."""
OVERWRITERS = ("eval.run", "rag_core.train", "eval.miniature.world")


@dataclass(frozen=True)
class Ran:
    """A command that ended well: its words, the seconds it took, when it ended (Unix time)."""

    argv: list[str]
    seconds: float
    ended: float
    threads: int = 1


def read_ledger(output: Path) -> dict[str, Ran]:
    """The records by step. DataError where the file is none of ours."""
    path = output / LEDGER
    if not path.exists():
        return {}
    try:
        return {name: _ran(row) for name, row in json.loads(path.read_text("utf-8")).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not a record of steps ({error}); delete it to ask every command") from None


def _ran(row: dict[str, Any]) -> Ran:
    ran = Ran(**row)
    if not isinstance(ran.argv, list) or not all(isinstance(word, str) for word in ran.argv):
        raise TypeError(f"argv {ran.argv!r}")
    for value in (ran.seconds, ran.ended, ran.threads):
        if not isinstance(value, int | float):
            raise TypeError(f"{value!r} is no number")
    return ran


def kept(steps: Sequence[Step], ledger: dict[str, Ran]) -> list[str]:
    """The names of the steps, in order, that need not be started again."""
    names: list[str] = []
    for step in steps:
        ran = ledger.get(step.name)
        same = ran is not None and ran.argv == list(step.argv)
        if same and set(step.needs) <= set(names) and _is_there(str(output_of(step))):
            names.append(step.name)
    return names


def _is_there(output: str) -> bool:
    """A file, or a directory with something in it: that it is whole, its record says."""
    path = Path(output)
    return path.is_file() or (path.is_dir() and any(path.iterdir()))


def _again(argv: tuple[str, ...], overwrite: bool) -> tuple[str, ...]:
    takes_it = argv[0].startswith("beam_jobs.") or argv[0] in OVERWRITERS
    return (*argv, "--overwrite") if overwrite and takes_it else argv


def run_kept(steps: Sequence[Step], output: Path, at_once: int, overwrite: bool = False) -> dict[str, Ran]:
    """Run what is not finished; returns the record of every step. StepError at the first that fails.

    `overwrite`: a run of other inputs or options, where a step would write, gives way.
    """
    ledger = read_ledger(output)
    done = set(kept(steps, ledger))
    if done:
        print(f"{len(done)} of {len(steps)} steps are finished already", flush=True)
    others = ledger.keys() - {step.name for step in steps}  # of experiments that were not asked for now
    ledger = {name: ran for name, ran in ledger.items() if name in done | others}

    def put() -> None:
        files.write_json(str(output / LEDGER), {name: asdict(ran) for name, ran in ledger.items()})

    def ended(step: Step, seconds: float) -> None:
        ledger[step.name] = Ran(commands[step.name], round(seconds, 2), round(time.time(), 1), step.threads)
        put()

    put()  # before anything is begun anew: what it replaces is finished no more
    commands = {step.name: list(step.argv) for step in steps}
    left = [
        replace(step, argv=_again(step.argv, overwrite), needs=tuple(n for n in step.needs if n not in done))
        for step in steps
        if step.name not in done
    ]
    run_steps(left, output / "logs", at_once, ended=ended, warm=len(left) >= WORTH_WARMING)
    return {step.name: ledger[step.name] for step in steps}
