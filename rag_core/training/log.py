"""Progress: lines with an estimate of what is left, and one JSON record per logged step."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


class Log:
    """Writes to stderr and, if a path is given, JSON lines to a file (appended: a resumed run goes on)."""

    def __init__(self, path: Path | None, quiet: bool = False):
        self.path, self.quiet = path, quiet

    def line(self, text: str) -> None:
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def record(self, **values: Any) -> None:
        if self.path is not None:
            with open(self.path, "a") as stream:
                stream.write(json.dumps({"time": round(time.time(), 3), **values}) + "\n")

    def step(self, step: int, steps: int, seconds_per_step: float, **values: Any) -> None:
        left = seconds_per_step * (steps - step)
        self.record(step=step, **values)
        parts = [f"step {step}/{steps}", f"loss {values['loss']:.3f}"]
        if "distinct_passages" in values:
            parts.append(f"prior entropy {values['prior_entropy']:.2f}")
        parts.append(f"{seconds_per_step:.2f} s/step, {left:.0f} s left")
        self.line(" · ".join(parts))
