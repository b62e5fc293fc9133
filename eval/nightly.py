"""Evaluate last night's models: retrieve → generate → eval → compare → report, and a verdict.

    python -m eval.nightly nightly.toml
    python -m eval.nightly nightly.toml --tag release-1      # name the newest night, for `baseline = "tag:…"`

Only what changed is computed again; a run that was killed is started again with the same command.
Exit codes: 0 pass, 10 regression, 11 not comparable with the baseline, 12 a stage could not run.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from beam_jobs.options import register_file_systems
from eval._gates import Gates, read_gates
from eval._history import add_to_history, read_history
from eval._night import (
    VERDICTS,
    choose_baselines,
    compare_chains,
    history_rows,
    night_verdict,
    run_chains,
)
from eval._nightly_config import NightlyConfig, read_config
from eval._steps import Step, StepError, run_steps
from eval._verdict import as_markdown, as_text, finite, write_parquet
from rag_core import files
from rag_core.command_line import HelpFormatter, Parser
from rag_core.errors import EXIT_STAGE_FAILED, DataError, UsageError, run_command
from rag_core.owner import describe, new_owner

WEBHOOK_SECONDS = 30
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


@contextlib.contextmanager
def locked(output: str) -> Iterator[None]:
    """Only one night at a time below `output`; the lock dies with its process. UsageError when taken."""
    import fcntl

    os.makedirs(output, exist_ok=True)
    with open(os.path.join(output, "_lock"), "a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            raise UsageError(f"{output}: another night runs here ({stream.read().strip()})") from None
        stream.truncate(0)
        stream.write(describe(new_owner()) + "\n")
        stream.flush()
        yield


def new_night(output: str, history: list[dict[str, Any]], now: float) -> tuple[str, str, list[str]]:
    """(name, time, remarks): named by the clock, in UTC, and never twice."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    base = name = moment.replace(":", "")
    count = 1
    known = {row["night"] for row in history}
    while name in known or os.path.exists(os.path.join(output, "nights", name)):
        count += 1
        name = f"{base}-{count}"
    late = max((row["time"] for row in history), default="")
    behind = [f"the clock says {moment}, but the history already holds {late}"] if late > moment else []
    return name, moment, behind


def read_tags(output: str) -> dict[str, str]:
    url = os.path.join(output, "tags.json")
    tags = files.read_json(url) if files.exists(url) else {}
    if not isinstance(tags, dict) or not all(isinstance(v, str) for v in tags.values()):
        raise DataError(f"{url}: expected an object of tags and nights")
    return tags


def set_tag(config: NightlyConfig, tag: str, night: str | None) -> str:
    """Name a night (the newest unless one is given). UsageError when there is none of that name."""
    nights = [row["night"] for row in read_history(_history_url(config))]
    night = night or (nights[-1] if nights else None)
    if night not in nights:
        raise UsageError(f"--night {night}: not in the history of {config.output}")
    files.write_json(os.path.join(config.output, "tags.json"), {**read_tags(config.output), tag: night})
    return str(night)


def run_night(config: NightlyConfig, gates: Gates, now: float) -> dict[str, Any]:
    """A whole night; returns its verdict, which by then is on disk beside the report, or says why not."""
    history = read_history(_history_url(config))
    chains = choose_baselines(config, history, read_tags(config.output))
    night, moment, behind = new_night(config.output, history, now)
    place = Path(config.output) / "nights" / night
    place.mkdir(parents=True)
    run_chains(config, chains, place / "logs", lambda line: print(line, flush=True))
    verdict = night_verdict(night, moment, chains, compare_chains(config, chains, gates))
    verdict["remarks"] = behind + verdict["remarks"]
    try:
        _keep(config, place, verdict)
    except OSError as error:
        _not_kept(verdict, error)
    verdict["report"] = _report(config, place, verdict)
    return verdict


def _keep(config: NightlyConfig, place: Path, verdict: dict[str, Any]) -> None:
    rows = history_rows(verdict, config.output)
    files.write_bytes(str(place / "verdict.md"), as_markdown(verdict).encode())
    write_parquet(str(place / "comparisons.parquet"), verdict)
    files.write_json(str(place / "verdict.json"), finite(verdict))
    add_to_history(_history_url(config), rows)


def _not_kept(verdict: dict[str, Any], error: OSError) -> None:
    """A full disk hides nothing: the verdict is said all the same, and that it could not be written."""
    worst = min(verdict["verdict"], "failed", key=list(VERDICTS).index)
    verdict["failures"].append(f"this night is not in the history: {error}")
    verdict.update(verdict=worst, exit_code=VERDICTS[worst])


def _history_url(config: NightlyConfig) -> str:
    return os.path.join(config.output, "history.parquet")


def _report(config: NightlyConfig, place: Path, verdict: dict[str, Any]) -> str | None:
    """The night's page; a page that cannot be made is said, and does not change the verdict."""
    made = [chain for chain in verdict["chains"] if chain["results"]]
    if not made:
        return None
    page = str(place / "report.html")
    argv = ["eval.report", *(chain["results"] for chain in made), "--output", page]
    argv += ["--predictions", *dict.fromkeys(chain["predictions"] for chain in made)]
    argv += ["--verdict", str(place / "verdict.json"), "--history", _history_url(config)]
    passages = {config.tasks[chain["task"]].passages for chain in made} - {None}
    argv += ["--passages", *passages] if len(passages) == 1 else []
    try:
        run_steps([Step("report", tuple(argv))], place / "logs", quiet=True)
    except (StepError, OSError) as error:
        print(f"warning: no report: {error}", file=sys.stderr)
        return None
    return page


def tell(config: NightlyConfig, verdict: dict[str, Any]) -> None:
    """Hand the verdict to the hook and the webhook. Their failure is a warning, never the verdict's."""
    body = json.dumps(finite(verdict), allow_nan=False).encode()
    if config.hook:
        try:
            code = subprocess.run(config.hook, input=body, cwd=config.output).returncode
        except OSError as error:
            code = error.strerror
        if code:
            print(f"warning: hook {config.hook[0]} ended with {code}", file=sys.stderr)
    if config.webhook:
        request = urllib.request.Request(config.webhook, body, {"Content-Type": "application/json"})
        try:
            urllib.request.urlopen(request, timeout=WEBHOOK_SECONDS).close()
        except (OSError, ValueError) as error:
            print(f"warning: webhook: {error}", file=sys.stderr)


def parser() -> Parser:
    p = Parser(
        prog="python -m eval.nightly", description=__doc__, formatter_class=HelpFormatter, allow_abbrev=False
    )
    p.add_argument("config", metavar="FILE", help="nightly.toml")
    p.add_argument("--tag", metavar="NAME", help="evaluate nothing; give a night this name")
    p.add_argument("--night", metavar="NIGHT", help="with --tag: which (default: the newest)")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    args: argparse.Namespace = parser().parse_args(argv)
    register_file_systems()
    config = read_config(args.config)
    gates = read_gates(config.gates)
    unknown = [name for name in gates.task if name not in (*config.tasks, "default")]
    if unknown:
        raise UsageError(f"{config.gates}: [task.{unknown[0]}]: no such task in {args.config}")
    with locked(config.output):
        if args.tag:
            print(f"{args.tag}: {set_tag(config, args.tag, args.night)}")
            return 0
        try:
            verdict = run_night(config, gates, time.time())
        except OSError as error:
            if error.errno not in _DISK:
                raise
            print(f"error: {error}; history and finished stages stand", file=sys.stderr)
            return EXIT_STAGE_FAILED
        print(as_text(verdict))
        print(f"{verdict['report'] or os.path.join(config.output, 'nights', verdict['night'])}")
        tell(config, verdict)
    return int(verdict["exit_code"])


if __name__ == "__main__":
    raise SystemExit(run_command(main))
