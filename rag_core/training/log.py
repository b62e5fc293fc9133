"""Progress: lines with an estimate of what is left, one JSON record per logged step, TensorBoard if asked."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

from rag_core import files
from rag_core.errors import UsageError


class Log:
    """Writes to stderr and, if a path is given, JSON lines to a file."""

    def __init__(self, path: Path | None, quiet: bool = False):
        self.path, self.quiet = path, quiet
        self._board: Any = None

    def start(self, *, resume: bool, tensorboard: bool = False) -> None:
        """Begin the file anew unless a run goes on; open TensorBoard's events beside it."""
        if not resume and self.path is not None:
            self.path.unlink(missing_ok=True)
        if tensorboard and self.path is not None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise UsageError("--tensorboard needs the package tensorboard") from error
            self._board = SummaryWriter(str(self.path.parent / "_tensorboard"))

    def cut(self, step: int) -> None:
        """Drop records of steps after `step`: a resumed run makes those steps again."""
        if self.path is None or not self.path.exists():
            return
        kept = [line for line in self.path.read_text().splitlines() if _step_of(line) <= step]
        files.write_bytes(str(self.path), "".join(line + "\n" for line in kept).encode())

    def line(self, text: str) -> None:
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def record(self, **values: Any) -> None:
        if self.path is not None:
            with open(self.path, "a") as stream:
                stream.write(json.dumps({"time": round(time.time(), 3), **_finite(values)}) + "\n")
        if self._board is not None:
            for name, value in values.items():
                if isinstance(value, float):
                    self._board.add_scalar(name, value, values["step"])

    def step(self, step: int, steps: int, seconds_per_step: float, **values: Any) -> None:
        """Record a step, and print its loss with the time that is left."""
        left = seconds_per_step * (steps - step)
        self.record(step=step, **values)
        parts = [f"step {step}/{steps}", f"loss {values['loss']:.3f}"]
        if "prior_entropy" in values:
            parts.append(f"prior entropy {values['prior_entropy']:.2f}")
        parts.append(f"{seconds_per_step:.2f} s/step, {left:.0f} s left")
        self.line(" · ".join(parts))


def _step_of(line: str) -> float:
    """The step of a record; infinite for the half line that a killed run leaves."""
    try:
        return json.loads(line).get("step", 0)
    except ValueError:
        return math.inf


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity (the gradient norm of a step that fp16's scaler skips): null."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
