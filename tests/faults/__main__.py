"""`python -m tests.faults [--trials 200] [--seed 0]`: the whole fault suite, and what it found."""

from __future__ import annotations

import argparse
import collections
import importlib
import os
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # children are forked: there must be no pool of threads to lose
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tests.beam_jobs.conftest import make_tiny_encoder
from tests.faults.inject import KINDS
from tests.faults.trials import prepare, run_trials, two_at_once


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ragline-faults-") as directory:
        root = Path(directory)
        for module in ("split", "embed", "index", "retrieve", "generate"):
            importlib.import_module(f"beam_jobs.{module}")  # once, for all children
        jobs = prepare(root, make_tiny_encoder(root / "encoder"))
        outcomes = run_trials(jobs, args.trials, args.seed, root)
        shared = {job.name: two_at_once(job, root, f"two-{job.name}") for job in jobs}
    table = collections.Counter((o.job, o.fault.kind) for o in outcomes if o.struck)
    print(f"{'job':<12}" + "".join(f"{kind:>19}" for kind in KINDS))
    for job in jobs:
        print(f"{job.name:<12}" + "".join(f"{table[job.name, kind]:>19}" for kind in KINDS))
    errors = [f"{o.job} {o.fault}: {o.error}" for o in outcomes if o.error]
    errors += [f"{name}, two at once: {error}" for name, error in shared.items() if error]
    for error in errors:
        print("FAIL", error)
    expected, found = (sum(getattr(o, n) for o in outcomes) for n in ("rows_expected", "rows_found"))
    print(
        f"{len(outcomes)} trials, {sum(o.struck for o in outcomes)} faults injected, "
        f"{expected} rows expected, {found} rows found, {len(shared)} times two jobs on one directory; "
        f"{len(errors)} failures, {time.monotonic() - started:.0f} s"
    )
    return 1 if errors else 0


if __name__ == "__main__":
    raise SystemExit(main())
