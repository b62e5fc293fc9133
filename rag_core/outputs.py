"""Where a run may be written: what is refused before anything is read, written or deleted."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping

from rag_core import files
from rag_core.errors import UsageError

RUN = "_run.json"
CLAIM = "_claim"
BUILT_IN_MODELS = ("minilm", "mini-bart")  # names, whatever directory is called so

# `gs:/bucket/x` would be a new directory `gs:` on the local disk.
_NO_URL = re.compile(r"^(gs|s3|s3a|hdfs|file|https?):(?!//[^/])", re.IGNORECASE)


def check_output(output: str) -> None:
    """Refuse an output that can never be a run directory: before inputs and options are looked at."""
    if not output.strip():
        raise UsageError(f"--output {output!r}: not a directory name")
    if _NO_URL.match(output):
        raise UsageError(f"--output {output}: not a URL of a store (gs://bucket/name, s3://bucket/name)")
    if files.is_local(output) and os.path.lexists(output) and not os.path.isdir(output):
        what = "a file" if os.path.exists(output) else "a link that leads nowhere"
        raise UsageError(f"--output {output}: {what} of this name exists; name a new directory")
    above = _run_above(output)
    if above is not None:
        raise UsageError(
            f"--output {output}: inside the run {above}, whose readers would find two; "
            "name a directory beside it"
        )
    if files.exists(files.join(output, RUN)):
        return
    if any(not name.startswith((files.ATTEMPT, CLAIM)) for name in files.entries(output)):
        raise UsageError(
            f"--output {output}: not empty and without {RUN}, so not a run of this suite; "
            "name a new directory (nothing was deleted)"
        )


def _run_above(output: str) -> str | None:
    """The run directory that a path lies in, at whatever depth."""
    place = os.path.realpath(output) if files.is_local(output) else output.rstrip("/")
    while (place := place.rpartition("/")[0]) and not place.endswith(":/"):
        if files.exists(files.join(place, RUN)):
            return place
    return None


def refuse_overlap(output: str, inputs: Mapping[str, Iterable[str]], *, look: bool = False) -> None:
    """UsageError when a run would be written where it reads: an overwritten run's files are deleted first.

    `inputs`: option → paths, URLs or patterns; with `look` a pattern stands for what it matches.
    """
    for option, places in inputs.items():
        for place in places:
            if place in BUILT_IN_MODELS:
                continue
            found = [f.url for f in files.list_files(place)] if look and glob.has_magic(place) else []
            if any(_lies_in(one, output) for one in (place, *found)):
                raise UsageError(f"--output {output}: also {option}; name a new directory")


def _lies_in(place: str, directory: str) -> bool:
    if files.is_local(place) and files.is_local(directory):
        place, directory = os.path.realpath(place), os.path.realpath(directory)
    return (place.rstrip("/") + "/").startswith(directory.rstrip("/") + "/")
