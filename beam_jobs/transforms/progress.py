"""What a job says while it runs: lines for people, or one JSON object a line (`--log-format json`).

    start ─▶ progress … ─▶ end (or failed); everything else that is logged is a `log` event

Everything goes to stderr and through `rag_core.masking`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from beam_jobs.transforms.counters import memory_peak
from rag_core import files
from rag_core.errors import DataError, UsageError, one_line
from rag_core.masking import mask, masked_value
from rag_core.owner import descendants
from rag_core.reports import is_report
from rag_core.run_dir import WORK

log = logging.getLogger("beam_jobs")


# What a terminal would obey; line breaks and tabs stay (tracebacks have them).
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class TextLines(logging.Formatter):
    """`12:00:00 message`, without secrets and control characters."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        return _spelt_out(mask(super().format(record)))


def _spelt_out(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class JsonLines(logging.Formatter):
    """One JSON object a record: `time, level, event`, and the event's own fields or the message."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": "log",
        }
        fields = getattr(record, "fields", None)
        line |= fields if fields is not None else {"logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(masked_value(line), default=str)


_STEP = re.compile(r" \[while running [^\]]*\]$")
_FAULT = re.compile(r"rag_core\.[\w.]+\.(\w+): (.*)$", re.MULTILINE)
_FAULTS: dict[str, type[DataError] | type[UsageError]] = {
    **dict.fromkeys(("DataError", "NoManifestError", "DumpError"), DataError),
    **dict.fromkeys(("UsageError", "UnreachableError", "TakenOverError", "UnknownModelError"), UsageError),
}


def without_step(text: str) -> str:
    """An error without what Beam adds to it."""
    return _STEP.sub("", text)


def fault_of_step(text: str) -> DataError | UsageError | None:
    """The caller's fault behind a worker's traceback, which is all that comes back from another process."""
    found = _FAULT.findall(text)
    kind, told = found[-1] if found else ("", "")
    return _FAULTS[kind](without_step(told)) if kind in _FAULTS else None


def set_up_logging(log_format: str) -> None:
    """Send what this process logs, Python's warnings included, to stderr in the given format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    handler.addFilter(_worth_reading)
    logging.basicConfig(handlers=[handler], force=True)
    log.setLevel(logging.INFO)
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    in_json = log_format == "json"
    logging.captureWarnings(in_json)
    warnings.formatwarning = lambda m, *_: str(m) if in_json else f"warning: {one_line(mask(str(m)))}\n"


def speaks_json() -> bool:
    """Whether this process logs JSON lines."""
    return any(isinstance(handler.formatter, JsonLines) for handler in logging.getLogger().handlers)


def emit(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """One event as a JSON line; nothing where lines are for people."""
    if speaks_json():
        log.log(level, event, extra={"fields": {"event": event, **fields}})


def complaint(text: str, code: int) -> str:
    """How a command's last complaint is printed: a `failed` event, or `error: …`."""
    if not speaks_json():
        return f"error: {mask(text)}"
    fields = {"event": "failed", "exit_code": code, "message": text}
    record = logging.makeLogRecord({"levelname": "ERROR", "fields": fields})
    return JsonLines().format(record)


def _worth_reading(record: logging.LogRecord) -> bool:
    """Leave out what Beam tells besides: a warning of every worker process that asks for nothing, and the
    traceback of a fault of the caller's, which the job's last line tells.
    """
    text = record.getMessage()
    fault = record.exc_info[1] if record.exc_info else None
    told = isinstance(fault, DataError | UsageError) or fault_of_step(text) is not None
    return "semi_persistent_directory" not in text and not (told and record.name != log.name)


def memory_now() -> int:
    """Bytes that this process and those below it hold at the moment; 0 where the system does not tell."""
    total = 0
    for pid in (os.getpid(), *descendants(os.getpid())):
        try:
            with open(f"/proc/{pid}/statm", "rb") as stream:
                total += int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError):
            continue  # gone since
    return total


class Progress:
    """Says every few seconds how many parts have reported, and how long the rest may take.

    With `describe` the reports are read too, each once: it makes a text of their counts and seconds.
    """

    EVERY_SECONDS = 10.0
    _REPORT = re.compile(r"report-(\d+)\.json$")

    def __init__(
        self,
        output: str,
        job: str,
        parts: set[int],
        describe: Callable[[Mapping[str, int], float], str] | None = None,
    ) -> None:
        self._output, self._job, self._parts, self._describe = output, job, parts, describe
        self._read: set[int] = set()
        self._counts: Counter[str] = Counter()
        self._part_seconds = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._on_a_terminal():
            print(file=sys.stderr)

    @staticmethod
    def _on_a_terminal() -> bool:
        return sys.stderr.isatty() and not speaks_json()

    def _watch(self) -> None:
        started = time.monotonic()
        every = 1.0 if self._on_a_terminal() else self.EVERY_SECONDS
        before: int | None = None
        while not self._stop.wait(every):
            try:
                done = self._reported()
            except (OSError, DataError):
                continue  # a store that fails once, a damaged report; the job will say so if it matters
            before = done if before is None else before
            seconds = time.monotonic() - started
            rate = (done - before) / seconds
            self._say(done, seconds, (len(self._parts) - done) / rate if rate else None)

    def _reported(self) -> int:
        """Parts whose report lies there: one listing; new ones are read if asked for."""
        found = {file.url: self._REPORT.search(file.url) for file in files.list_files(self._work)}
        reports = {int(name[1]): url for url, name in found.items() if name and int(name[1]) in self._parts}
        for index in reports.keys() - self._read if self._describe else ():
            report = files.read_json(reports[index])
            if not is_report(report) or "counts" not in report:
                continue  # damaged: its part is made again
            self._counts.update({k: n for k, n in report["counts"].items() if isinstance(n, int)})
            self._part_seconds += report.get("seconds", 0.0)
            self._read.add(index)
        return len(reports)

    @property
    def _work(self) -> str:
        return files.join(self._output, WORK)

    def _say(self, done: int, seconds: float, left: float | None) -> None:
        if speaks_json():
            emit(
                "progress",
                job=self._job,
                parts_done=done,
                parts=len(self._parts),
                seconds=round(seconds, 1),
                seconds_left=None if left is None else round(left),
                memory_bytes=memory_now(),
                memory_peak_bytes=memory_peak(),
                **({"counts": dict(self._counts)} if self._describe else {}),
            )
            return
        estimate = "no estimate yet" if left is None else f"about {left:.0f} s left"
        line = f"{self._job}: {done}/{len(self._parts)} parts, {seconds:.0f} s, {estimate}"
        if self._describe and self._read:
            line += "; " + self._describe(self._counts, self._part_seconds)
        if self._on_a_terminal():
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            log.info(line)
