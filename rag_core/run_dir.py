"""Run directories: what a job writes, in an order that makes an unfinished run impossible to mistake.

    _run.json         first: job, fingerprint, resolved options, owner, heartbeat
    part-00000.parquet …  each put in place whole; part i of the input makes part i of the output
    _manifest.json    last, one object: the run is there once this is there

Whatever is not a row of the stage has a name starting with `_` (`_work/` for attempts and the
parts' own reports, `_dead_letter/` for rejected records), so that pandas opens the directory.

This file holds the life of a run: claim, heartbeat, finish. `rag_core.parts` writes and checks one
part; `rag_core.stages` reads finished runs.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_core import files
from rag_core.digest import digest_of
from rag_core.errors import DataError, UsageError
from rag_core.outputs import RUN, check_output
from rag_core.owner import HEARTBEAT_SECONDS, claim_lock, describe, is_live, is_owner, new_owner
from rag_core.reports import adds_up, is_manifest
from rag_core.versions import package_versions

MANIFEST = "_manifest.json"
WORK = "_work"
DEAD_LETTER = "_dead_letter"

_FILE_NAME = re.compile(r"^[^/\\\0]+(/[^/\\\0]+)*$")
_PART_NAME = re.compile(r"^part-\d{5,}\.parquet$")
# What an unfinished run has done already: parts, and the states of a training.
_WORK_DONE = re.compile(rf"/(part-\d{{5,}}\.parquet|{WORK}/state/[^/]+/state\.json)$")


class TakenOverError(UsageError):
    """Another process has taken the directory over: this one must write nothing more (exit code 2)."""


class NoManifestError(DataError):
    """The directory holds no finished run (exit code 3)."""


def part_name(index: int) -> str:
    return f"part-{index:05d}.parquet"


def report_url(output: str, index: int) -> str:
    return files.join(output, WORK, f"report-{index:05d}.json")


def fingerprint(job: str, logic_version: int, inputs: Any, models: Any, options: Any) -> str:
    """What the content of a run depends on, as one SHA-256: equal fingerprints, equal rows."""
    return digest_of(
        {"job": job, "logic_version": logic_version, "inputs": inputs, "models": models, "options": options}
    )


def read_manifest(directory: str) -> dict[str, Any]:
    """The manifest of a finished run.

    Raises NoManifestError when the directory has none, FileNotFoundError when there is no such directory.
    """
    url = files.join(directory, MANIFEST)
    if files.exists(url):
        manifest = _read_state(url, ("job", "parts", "rows", "content_digest"))
        if manifest is not None and is_manifest(manifest):
            _check_names(url, manifest)
            if adds_up(manifest):
                return manifest
        raise NoManifestError(f"{url}: damaged; start its job again, it keeps the parts that stand")
    if not files.list_tree(directory):
        if files.is_local(directory) and not os.path.exists(directory):
            raise FileNotFoundError(2, "No such directory", directory)
        raise NoManifestError(f"{directory}: an empty directory, no finished run")
    state = "an unfinished run" if files.exists(files.join(directory, RUN)) else "not a run directory"
    raise NoManifestError(f"{directory}: no {MANIFEST}: {state}; start its job again and let it finish")


def read_run(directory: str) -> dict[str, Any] | None:
    """What a run recorded when it began (`_run.json`), finished or not; None without a whole one."""
    url = files.join(directory, RUN)
    return _read_state(url, ("job", "fingerprint", "options", "owner")) if files.exists(url) else None


def _check_names(url: str, manifest: dict[str, Any]) -> None:
    """DataError when a manifest that somebody else wrote names a file outside its own directory."""
    for part in manifest["parts"]:
        for name in (part["name"], *part.get("files", ())):
            if not _FILE_NAME.match(name) or ".." in name.split("/"):
                raise DataError(f"{url}: {name!r} is not the name of a file below this directory")


def _read_state(url: str, keys: tuple[str, ...]) -> dict[str, Any] | None:
    """A state file of ours, or None when it is not what we wrote (cut, overwritten, flipped)."""
    try:
        state = files.read_json(url)
    except DataError:
        return None
    return state if isinstance(state, dict) and all(key in state for key in keys) else None


def damage(directory: str, manifest: dict[str, Any]) -> str | None:
    """What is wrong with the files of a finished run, by name and size; None when all are there."""
    for part in manifest["parts"]:
        for name, state in part.get("files", {part["name"]: part}).items():
            url = files.join(directory, name)
            found = files.info(url)
            if found is None:
                return f"{url}: missing"
            if found.size != state["bytes"]:
                return f"{url}: {found.size} bytes, expected {state['bytes']}"
    return None


def run_input(manifest: dict[str, Any]) -> dict[str, Any]:
    """How a finished run enters the fingerprint of a run that reads it: by its rows alone."""
    return {k: manifest[k] for k in ("job", "content_digest")}


@dataclass
class RunDir:
    """A run being written, made by `claim`: what `_run.json` holds, and the heartbeat."""

    output: str
    job: str
    fingerprint: str
    run: dict[str, Any]
    finished: dict[str, Any] | None = None
    """The manifest, when the same run is already complete: nothing is left to do."""
    _stop: threading.Event = field(default_factory=threading.Event)

    def heartbeat(self) -> None:
        """Write the heartbeat once. Raises TakenOverError when the directory has another owner."""
        check_owner(self.output, self.run)
        self.run["heartbeat"] = time.time()
        files.write_json(files.join(self.output, RUN), self.run)

    @contextlib.contextmanager
    def alive(self) -> Iterator[None]:
        """Keep the heartbeat going in a thread while the block runs; then give the directory back."""
        thread = threading.Thread(target=self._beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()
            self._release()

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_SECONDS):
            try:
                self.heartbeat()
            except TakenOverError:
                return  # `finish_run` will say so
            except (OSError, ValueError, UsageError):
                continue  # a store that fails once; the next beat is 20 s away, the limit 120 s

    def _release(self) -> None:
        with contextlib.suppress(OSError, ValueError, UsageError):
            check_owner(self.output, self.run)
            self.run["owner"] = {**self.run["owner"], "released": True}
            files.write_json(files.join(self.output, RUN), self.run)


def finish_run(
    output: str, run: dict[str, Any], reports: list[dict[str, Any]], n_parts: int, extra: dict[str, Any]
) -> dict[str, Any]:
    """Check that every part has reported exactly once, and write the manifest.

    `run` is the content of `_run.json`, `reports` come from `rag_core.parts`, `extra` is the stage's
    own (encoder, dimension, …). Called wherever the pipeline ends: on a worker too, so that a run
    finishes even when the process that submitted it is gone. Returns the manifest. Raises
    TakenOverError when the directory was taken over, RuntimeError on a missing or doubled part.
    """
    check_owner(output, run)
    manifest = build_manifest(run, reports, n_parts, max(0.0, time.time() - run["started"]), extra)
    files.write_json(files.join(output, MANIFEST), manifest)
    return manifest


def check_owner(output: str, run: dict[str, Any]) -> None:
    """Raise TakenOverError when another process has taken the directory over, DataError on a damaged file."""
    url = files.join(output, RUN)
    found = _read_state(url, ("owner",))
    if found is None or not is_owner(found["owner"]):
        raise DataError(f"{url}: damaged while the job ran")
    if found["owner"]["token"] != run["owner"]["token"]:
        raise TakenOverError(f"{output}: taken over by {describe(found['owner'])}")


def build_manifest(
    run: dict[str, Any], reports: list[dict[str, Any]], n_parts: int, seconds: float, extra: dict[str, Any]
) -> dict[str, Any]:
    """The manifest as a value: totals from the parts' own reports, never from Beam counters.

    What a report holds under `extra` (an index's measured recall) joins the stage's own `extra`.
    """
    reports = sorted((dict(r) for r in reports), key=lambda r: r["index"])
    if [r["index"] for r in reports] != list(range(n_parts)):
        raise RuntimeError(f"parts reported {[r['index'] for r in reports]}, expected 0 to {n_parts - 1}")
    counts: dict[str, Any] = {"read": 0, "written": 0, "skipped": {}, "dead_lettered": {}}
    for report in reports:
        add_counts(counts, report["counts"])
        extra = {**extra, **report.pop("extra", {})}
    return {
        **{k: run[k] for k in ("job", "fingerprint", "logic_version", "inputs", "models", "options", "seed")},
        "parts": reports,
        "rows": sum(r["rows"] for r in reports),
        "counts": counts,
        "content_digest": digest_of([r["row_digest"] for r in reports]),
        "versions": package_versions(),
        "seconds": round(seconds, 3),
        **({"launch": run["launch"]} if "launch" in run else {}),
        **extra,
    }


def add_counts(total: dict[str, Any], counts: dict[str, Any]) -> None:
    """Add one report's counts to a total, in place: numbers add up, reasons merge."""
    for key, value in counts.items():
        if isinstance(value, dict):
            add_counts(total.setdefault(key, {}), value)
        else:
            total[key] = total.get(key, 0) + value


def claim(
    output: str,
    job: str,
    *,
    logic_version: int,
    inputs: Any,
    models: Any,
    options: dict[str, Any],
    seed: int = 0,
    overwrite: bool = False,
    launch: Mapping[str, Any] | None = None,
) -> RunDir:
    """Take a directory for a run, or go on with the one that is there.

    - new or empty: `_run.json` is written.
    - the same fingerprint, finished and all its files there: `.finished` holds the manifest.
    - the same fingerprint, finished, but damaged or with `overwrite`: every part is checked again.
    - the same fingerprint, unfinished, its owner dead: taken over; parts whose digests stand are kept.
    - another fingerprint: refused unless `overwrite`, which removes this run's own files, no others.
    - not empty and without `_run.json`, or its owner alive: refused, even with `overwrite`.
    `launch` says how the run was started (runner, its options); it is recorded and decides nothing.
    Raises UsageError for every refusal.
    """
    output = files.join(output)  # without slashes at its end
    check_output(output)
    mark = fingerprint(job, logic_version, inputs, models, options)
    if files.is_local(output):
        os.makedirs(output, exist_ok=True)
    with claim_lock(output):
        check_output(output)  # again, under the lock
        existing = _existing_run(output, overwrite)
        if existing is not None:
            if is_live(files.join(output, RUN), existing["owner"]):
                raise UsageError(f"--output {output}: in use by {describe(existing['owner'])}")
            if existing["fingerprint"] == mark and not overwrite:
                finished = _finished(output)
                if finished is not None:
                    return RunDir(output, job, mark, existing, finished)
            _make_way(output, existing, job, mark, overwrite)
        run = {
            "job": job,
            "fingerprint": mark,
            "logic_version": logic_version,
            "inputs": inputs,
            "models": models,
            "options": options,
            "seed": seed,
            **({"launch": dict(launch)} if launch else {}),
            "owner": new_owner(),
            "started": time.time(),
            "heartbeat": time.time(),
        }
        files.write_json(files.join(output, RUN), run)
    return RunDir(output, job, mark, run)


def _existing_run(output: str, overwrite: bool) -> dict[str, Any] | None:
    """The `_run.json` that is there. A damaged one is refused, or with `overwrite` taken for a dead run's."""
    url = files.join(output, RUN)
    if not files.exists(url):
        return None
    run = _read_state(url, ("job", "fingerprint", "owner"))
    if run is not None and is_owner(run["owner"]):
        return run
    if not overwrite:
        raise UsageError(f"{url}: damaged; give --overwrite to make the run again, or name a new directory")
    return {"job": None, "fingerprint": None, "owner": {"released": True}}


def _finished(output: str) -> dict[str, Any] | None:
    """The manifest of a run that is complete and whose files are all there; else None."""
    try:
        manifest = read_manifest(output)
    except NoManifestError:
        return None
    return manifest if damage(output, manifest) is None else None


def _make_way(output: str, existing: dict[str, Any], job: str, mark: str, overwrite: bool) -> None:
    """Make a directory ready for a run: of the same run, parts stay (each is checked before it is kept);
    another run's files go, if it left any and `overwrite` says so. The manifest goes first, so that no
    moment shows a finished run."""
    own = _own_files(output)
    if existing["fingerprint"] == mark:
        stale = [url for url in own if _is_attempt(files.base_name(url))]
        files.delete([files.join(output, MANIFEST), *stale])
        return
    work = [url for url in own if _WORK_DONE.search(url)]
    if not overwrite and (work or files.exists(files.join(output, MANIFEST))):
        what = f"job {existing['job']!r}" if existing["job"] != job else "other inputs, models or options"
        raise UsageError(
            f"--output {output}: holds a run of {what}; name a new directory or give --overwrite"
        )
    files.delete([files.join(output, MANIFEST), *own])


def _own_files(output: str) -> list[str]:
    """The files in a run directory that runs have written; whatever else lies there is the user's."""
    prefix = output.rstrip("/") + "/"
    own = []
    for found in files.list_tree(output):
        first, _, rest = found.url[len(prefix) :].partition("/")
        if first in (WORK, DEAD_LETTER) if rest else _PART_NAME.match(first) or _is_attempt(first):
            own.append(found.url)
    return own


def _is_attempt(name: str) -> bool:
    """Whether a file was still being written, or asked a store's clock, when its process was killed."""
    return name.startswith((files.ATTEMPT, f"{RUN}.{files.ATTEMPT}"))
