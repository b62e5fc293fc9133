"""`python -m tests.runners.container [cpu|cuda]`: a Dockerfile's Python steps, run in a clean environment.

There is no container here: `RUN pip …` and `RUN python …` lines are run as they stand, with the environment's
pip and python, `/opt/ragline` a temporary directory, and the checkout's tracked files as the build context.
TORCH_INDEX names another index for torch's CPU build; without the variable the Dockerfile's own is taken.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.runners.cluster import ROOT


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """A Dockerfile as (instruction, arguments), comments left out, continued lines joined.

    >>> instructions("FROM a\\n# note\\nRUN b \\\\\\n  && c\\n")
    [('FROM', 'a'), ('RUN', 'b && c')]
    """
    lines = [line for line in dockerfile.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [(line.split(None, 1)[0], line.split(None, 1)[1].strip()) for line in joined.splitlines()]


def python_steps(dockerfile: str) -> list[str]:
    """The shell lines of RUN that pip and python do."""
    runs = [arguments for name, arguments in instructions(dockerfile) if name == "RUN"]
    return [line for line in runs if line.startswith(("pip ", "python "))]


def defaults(dockerfile: str) -> dict[str, str]:
    """The ARGs of a Dockerfile that have a value."""
    arguments = [text for name, text in instructions(dockerfile) if name == "ARG" and "=" in text]
    return dict(text.split("=", 1) for text in arguments)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.runners.container", description=__doc__)
    parser.add_argument("kind", nargs="?", choices=("cpu", "cuda"), default="cpu")
    text = (ROOT / f"runners/Dockerfile.{parser.parse_args().kind}").read_text()
    with tempfile.TemporaryDirectory(prefix="ragline-container-") as directory:
        home = Path(directory)
        subprocess.run([sys.executable, "-m", "venv", home / "env"], check=True)
        tracked = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        (home / "source").mkdir()
        subprocess.run(["tar", "-x", "-C", home / "source"], input=tracked, check=True)
        (home / "constraints.txt").write_bytes((ROOT / "constraints.txt").read_bytes())
        path = os.pathsep.join([str(home / "env/bin"), os.environ["PATH"]])
        env = {**defaults(text), **os.environ, "PATH": path, "HF_HUB_OFFLINE": "1"}
        env.pop("PYTHONPATH", None)
        for step in python_steps(text):
            started = time.monotonic()
            shell = ["bash", "-euo", "pipefail", "-c", step.replace("/opt/ragline", str(home))]
            done = subprocess.run(shell, cwd=home, env=env)
            print(f"{'ok' if not done.returncode else 'FAILED'}  {time.monotonic() - started:5.0f} s  {step}")
            if done.returncode:
                return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
