"""Profiles: `--profile NAME` stands for the Beam options in `runners/NAME.toml`.

A profile only spares typing: every option given on the command line wins over it, and the resolved
options stand in the manifest (`launch`, secrets masked). Standard library only: anything may import it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

NAMES = ("local", "dataflow", "dataflow_gpu", "flink", "spark")

# Runners that jobs accept, by the name Beam gives them; everything else is refused.
LOCAL_RUNNERS = ("FnApiRunner", "DirectRunner")
REMOTE_RUNNERS = ("DataflowRunner", "FlinkRunner", "SparkRunner", "PortableRunner")
REFUSED = {
    "DaskRunner": "it lost all rows of a written set when it was tried (Beam 2.77)",
    "PrismRunner": "it downloads its server at start; use the default, in-memory runner",
}


def profile_flags(name: str) -> list[str]:
    """The Beam flags of a profile, `["--runner=DataflowRunner", …]`. Raises ValueError on an unknown name."""
    if name not in NAMES:
        raise ValueError(f"unknown profile {name!r}; there are: {', '.join(NAMES)}")
    with open(Path(__file__).with_name(f"{name}.toml"), "rb") as stream:
        options: dict[str, Any] = tomllib.load(stream)["options"]
    return [flag for key, value in options.items() for flag in _flags(key, value)]


def _flags(key: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{key}"] if value else []
    if isinstance(value, list):
        return [f"--{key}={item}" for item in value]
    return [f"--{key}={value}"]


def check_runner(name: str) -> None:
    """Raise ValueError, with the reason, for a runner that jobs do not accept."""
    short = name.rsplit(".", 1)[-1]
    if short in REFUSED:
        raise ValueError(f"--runner {name} is refused: {REFUSED[short]}")
    if short not in (*LOCAL_RUNNERS, *REMOTE_RUNNERS):
        accepted = ", ".join((*LOCAL_RUNNERS, *REMOTE_RUNNERS))
        raise ValueError(f"--runner {name} is not known; accepted: {accepted}")
