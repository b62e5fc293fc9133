"""Profiles: `--profile NAME` stands for the Beam options in `runners/NAME.toml`.

A profile only spares typing: every option given on the command line wins over it (of one that may be
repeated, every item of the same name, such as `worker_accelerator=…`), and the resolved options stand in the
manifest (`launch`, secrets masked). Standard library only: anything may import it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
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


def profile_flags(name: str, given: Sequence[str] = ()) -> list[str]:
    """The Beam flags of a profile, `["--runner=DataflowRunner", …]`, without items that are `given`.

    Raises ValueError on an unknown name.
    """
    if name not in NAMES:
        raise ValueError(f"unknown profile {name!r}; there are: {', '.join(NAMES)}")
    with open(Path(__file__).with_name(f"{name}.toml"), "rb") as stream:
        options: dict[str, Any] = tomllib.load(stream)["options"]
    flags = [flag for key, value in options.items() for flag in _flags(key, value)]
    named = {_item(word) for word in (*given, *map("=".join, zip(given, given[1:])))}
    return [flag for flag in flags if _item(flag) not in named]


def _flags(key: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{key}"] if value else []
    if isinstance(value, list):
        return [f"--{key}={item}" for item in value]
    return [f"--{key}={value}"]


def _item(flag: str) -> tuple[str, ...]:
    """`--key=name=value` → (--key, name): what a later flag of the same beginning replaces."""
    return tuple(flag.split("=", 2)[:2])


def check_runner(name: str) -> None:
    """Raise ValueError, with the reason, for a runner that jobs do not accept."""
    short = name.rsplit(".", 1)[-1]
    if short in REFUSED:
        raise ValueError(f"--runner {name} is refused: {REFUSED[short]}")
    beams_own = name == short or name.startswith("apache_beam.")
    if not beams_own or short not in (*LOCAL_RUNNERS, *REMOTE_RUNNERS):
        accepted = ", ".join((*LOCAL_RUNNERS, *REMOTE_RUNNERS))
        raise ValueError(f"--runner {name} is not known; accepted: {accepted}")
