"""The paper in miniature: every table and figure of the RAG paper again, on a generated world.

    python -m eval.miniature --output mini-out --quick

Runs what `eval/miniature/experiments/*.toml` say, each step a command that a user could type; holds the
claims there against the results; writes claims.parquet, figures.parquet, steps.json and paper.html. Started
again, it goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eval._steps import StepError
from eval.miniature._claims import CLAIMS, claim_rows
from eval.miniature._figures import Reader
from eval.miniature._ledger import Ran, run_kept
from eval.miniature._plan import make_plan, sizes_of
from eval.miniature._recipes import Experiment, read_book
from eval.miniature._tables import FIGURES, figure_rows, heat_answer, write_rows
from eval.pages.miniature import Chart, Heatmap, Made, Part, miniature_page
from rag_core import files
from rag_core.command_line import HelpFormatter, Parser
from rag_core.errors import UsageError, run_command
from rag_core.versions import package_versions

PAGE = "paper.html"


def machine() -> str:
    """Processor, cores that may be used, system."""
    name = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{name}, {cores} cores, {platform.system()}"


def page_parts(
    experiments: Sequence[Experiment],
    reader: Reader,
    figures: Sequence[Mapping[str, Any]],
    claims: Sequence[Mapping[str, Any]],
) -> list[Part]:
    """What the page shows, experiment by experiment."""
    parts = []
    for e in experiments:
        heatmaps = []
        for heat in e.heat:
            found = heat_answer(heat, reader)
            shown = Heatmap(heat.title, heat.paper)
            if found is not None:
                shown = replace(
                    shown,
                    question=found.question,
                    prediction=found.prediction,
                    tokens=tuple(found.tokens),
                    posterior_TK=tuple(map(tuple, found.posterior_TK)),
                    titles=tuple(found.titles),
                )
            heatmaps.append(shown)
        parts.append(
            Part(
                e.name,
                e.title,
                e.about,
                [row for row in figures if row["experiment"] == e.name],
                [row for row in claims if row["experiment"] == e.name],
                [Chart(c.title, c.x, c.paper) for c in e.curve],
                heatmaps,
            )
        )
    return parts


def report(
    experiments: Sequence[Experiment], reader: Reader, sizes: Mapping[str, Any], output: Path, made: Made
) -> list[dict[str, Any]]:
    """Write claims, figures and the page from what lies in Parquet; returns the claims' rows."""
    figures = figure_rows(experiments, reader, sizes)
    claims = claim_rows(experiments, reader, sizes)
    write_rows(str(output / "figures.parquet"), figures, FIGURES)
    write_rows(str(output / "claims.parquet"), claims, CLAIMS)
    page = miniature_page(page_parts(experiments, reader, figures, claims), made)
    files.write_bytes(str(output / PAGE), page.encode())
    return claims


def made_of(
    command: str, sizes: Mapping[str, Any], seeds: Sequence[int], ran: Mapping[str, Ran], seconds: float
) -> Made:
    steps = [(name, r.seconds, shlex.join(("python", "-m", *r.argv))) for name, r in ran.items()]
    versions = ", ".join(f"{name} {version}" for name, version in package_versions().items())
    last = max((r.ended for r in ran.values()), default=time.time())
    facts = [
        ("Machine", machine()),
        ("Seeds", ", ".join(map(str, seeds))),
        ("Finished", datetime.fromtimestamp(last, UTC).strftime("%Y-%m-%d %H:%M UTC")),
        ("This call", f"{seconds:.0f} s"),
        ("Versions", versions),
    ]
    return Made(command, facts, sizes, steps)


def parser() -> Parser:
    p = Parser(prog="python -m eval.miniature", description=__doc__, formatter_class=HelpFormatter)
    p.add_argument("--output", required=True, metavar="DIR")
    size = p.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick", help="one seed (default)")
    size.add_argument("--full", dest="size", action="store_const", const="full", help="three seeds, larger")
    p.add_argument("--only", nargs="+", default=[], metavar="EXPERIMENT", help="what these need, and no more")
    p.add_argument("--seed", type=int, default=0, help="the first seed")
    p.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="change a size of the TOML")
    p.add_argument("--overwrite", action="store_true", help="where runs of other sizes lie, make them anew")
    p.add_argument("--at-once", type=int, default=2, metavar="N", help="steps that run together")
    p.add_argument("--plan", action="store_true", help="print the commands and run nothing")
    p.set_defaults(size="quick")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code. What does not hold is a result, no failure."""
    args: argparse.Namespace = parser().parse_args(argv)
    if args.at_once < 1:
        raise UsageError(f"--at-once {args.at_once}: must be at least 1")
    if args.seed < 0:
        raise UsageError(f"--seed {args.seed}: must be at least 0")
    if not files.is_local(args.output):
        raise UsageError(f"--output {args.output}: expected a directory of this machine")
    book = read_book()
    sizes = sizes_of(book, args.size, args.set)
    seeds = list(range(args.seed, args.seed + sizes["seeds"]))
    output = Path(args.output)
    experiments, plans = make_plan(book, sizes, output, seeds, args.only)
    steps = list({step.name: step for plan in plans for step in plan}.values())
    if args.plan:
        print("\n".join(shlex.join(("python", "-m", *step.argv)) for step in steps))
        return 0
    started = time.monotonic()
    try:
        output.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"--output {output}: not a directory") from None
    try:
        ran = run_kept(steps, output, args.at_once, args.overwrite)
    except StepError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    words = sys.argv[1:] if argv is None else argv
    made = made_of(
        shlex.join(("python", "-m", "eval.miniature", *words)), sizes, seeds, ran, time.monotonic() - started
    )
    outs = [output / f"seed-{seed}" for seed in seeds]
    claims = report(experiments, Reader(outs, plans), sizes, output, made)
    for row in claims:
        sign = "holds    " if row["holds"] else "DOES NOT "
        print(f"{sign} {row['experiment']:<16} {row['claim']}: {row['why']} (expected {row['expected']})")
    print(
        f"{sum(r['holds'] for r in claims)} of {len(claims)} claims hold; {time.monotonic() - started:.0f} s"
    )
    print(f"{output / PAGE}  next: open it in a browser, or claims.parquet beside it in pandas")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
