"""One night's verdict: chains run, results compared with the baseline's, checkpoint by checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from eval._gates import Gates
from eval._history import GREEN, nights_of
from eval._nightly_config import NightlyConfig
from eval._nightly_stages import Marks, Stage, plan_chain, unusable
from eval._paired import NotComparable, Results, check_comparable, load_results
from eval._steps import Step, StepError, run_steps
from eval.compare import compare_runs
from rag_core.errors import (
    EXIT_DONE,
    EXIT_NOT_COMPARABLE,
    EXIT_REGRESSION,
    EXIT_STAGE_FAILED,
    DataError,
    UsageError,
)

VERDICTS = {  # worst news first: a regression that was seen is one, whatever else could not run
    "regression": EXIT_REGRESSION,
    "failed": EXIT_STAGE_FAILED,
    "not_comparable": EXIT_NOT_COMPARABLE,
    "pass": EXIT_DONE,
    "first": EXIT_DONE,
}


@dataclass
class Chain:
    """A checkpoint on a test set, tonight."""

    task: str
    checkpoint: str
    verdict: str = "first"
    results: str | None = None
    predictions: str | None = None
    baseline: str | None = None
    """The night it is compared with."""
    baseline_results: str | None = None
    stages: dict[str, Any] = field(default_factory=dict)
    """By name: "reused", or the seconds it ran."""
    reasons: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.task}/{self.checkpoint}"


def choose_baselines(config: NightlyConfig, history: list[dict], tags: dict[str, str]) -> list[Chain]:
    """Every chain with the night it is measured by. UsageError when a named night or tag is not there.

    `last_green` takes the newest night that passed and whose results are still there, whole; what is
    passed over for want of its files is said in the chain's reasons.
    """
    kind, _, wanted = config.baseline.partition(":")
    if kind == "tag":
        if wanted not in tags:
            raise UsageError(
                f"baseline tag:{wanted}: no such tag (there are: {', '.join(sorted(tags)) or 'none'})"
            )
        wanted = tags[wanted]
    chains = []
    for task, checkpoint in config.chains():
        chain = Chain(task, checkpoint)
        for row in nights_of(history, task, checkpoint):
            if row["night"] != wanted if wanted else row["verdict"] not in GREEN:
                continue
            results = os.path.join(config.output, row["results"] or "")
            why = unusable(results) if row["results"] else "it has none"
            if why is None:
                chain.baseline, chain.baseline_results = row["night"], results
                break
            chain.reasons.append(f"the results of night {row['night']} are gone: {why}")
        if wanted and chain.baseline is None:
            why = "".join(f" ({reason})" for reason in chain.reasons[-1:])
            raise UsageError(
                f"baseline {config.baseline}: night {wanted} has no results of {chain.name}{why}"
            )
        chains.append(chain)
    return chains


def run_chains(
    config: NightlyConfig, chains: Sequence[Chain], logs: Path, say: Callable[[str], None]
) -> None:
    """Run what is not there yet; a chain that cannot run does not hold up the others."""
    marks = Marks()
    for chain in chains:
        try:
            stages = plan_chain(config, chain.task, chain.checkpoint, marks)
            for stage in stages:
                chain.stages[stage.name] = _run_stage(config, chain, stage, logs)
                say(f"{chain.name}: {stage.name}: {chain.stages[stage.name]}")
        except (StepError, DataError, UsageError, OSError) as error:
            chain.verdict = "failed"
            chain.reasons.append(" ".join(str(error).split()))
            say(f"{chain.name}: could not run: {chain.reasons[-1]}")
            continue
        chain.predictions, chain.results = (stage.directory for stage in stages[-2:])


def _run_stage(config: NightlyConfig, chain: Chain, stage: Stage, logs: Path) -> Any:
    if stage.is_finished():
        return "reused"
    step = Step(
        f"{chain.task}-{chain.checkpoint}-{stage.name}",
        stage.command(config.job_options),
        threads=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    )
    seconds = run_steps([step], logs, quiet=True)[step.name]
    return round(seconds, 1)


def compare_chains(config: NightlyConfig, chains: Sequence[Chain], gates: Gates) -> dict[str, Any]:
    """Verdicts by chain, written into them; returns failures, remarks and comparisons of all.

    A checkpoint is one candidate: Holm's correction runs over the primaries of its tasks.
    """
    failures: list[str] = []
    remarks: list[str] = []
    comparisons: list[dict[str, Any]] = []
    for checkpoint in config.checkpoints:
        pairs = {}
        for chain in chains:
            if chain.checkpoint == checkpoint and chain.results:
                found = _pair(chain, gates)
                pairs.update({chain.name: (chain, found)} if found else {})
        if not pairs:
            continue
        tasks = {chain.task for chain, _ in pairs.values()}
        own = replace(gates, task={k: v for k, v in gates.task.items() if k in tasks or k == "default"})
        verdict = compare_runs([pair for _, pair in pairs.values()], own)
        for chain, _ in pairs.values():
            broken = [line for line in verdict["failures"] if line.startswith(f"{chain.task}:")]
            chain.verdict = "regression" if broken else "pass"
            chain.reasons += broken
        failures += [f"{checkpoint}: {line}" for line in verdict["failures"]]
        remarks += [f"{checkpoint}: {line}" for line in verdict["remarks"]]
        comparisons += [{"checkpoint": checkpoint, **row} for row in verdict["comparisons"]]
    return {"failures": failures, "remarks": remarks, "comparisons": comparisons}


def _pair(chain: Chain, gates: Gates) -> tuple[Results, Results] | None:
    """The two results of a chain under the task's name in the configuration; None where there are none."""
    if chain.baseline_results is None:
        return None
    try:
        pair = load_results(chain.baseline_results), load_results(str(chain.results))
        check_comparable(*pair, gates.allow)
    except (NotComparable, DataError) as error:  # of another kind, or of the right size and unreadable
        chain.verdict = "not_comparable"
        chain.reasons.append(str(error))
        return None
    return tuple(replace(results, task=chain.task) for results in pair)  # type: ignore[return-value]


def night_verdict(night: str, time: str, chains: Sequence[Chain], found: dict[str, Any]) -> dict[str, Any]:
    """The whole verdict as a JSON value; the worst chain decides."""
    worst = min((chain.verdict for chain in chains), key=list(VERDICTS).index)
    failures = list(found["failures"])
    for chain in chains:
        if chain.verdict in ("failed", "not_comparable"):
            failures += [f"{chain.name}: {chain.verdict.replace('_', ' ')}: {chain.reasons[-1]}"]
    return {
        "night": night,
        "time": time,
        "verdict": worst,
        "exit_code": VERDICTS[worst],
        "failures": failures,
        "remarks": found["remarks"],
        "chains": [asdict(chain) for chain in chains],
        "comparisons": found["comparisons"],
    }


def history_rows(verdict: dict[str, Any], output: str) -> list[dict[str, Any]]:
    """The night's figures over whole test sets, as rows of the history."""
    rows = []
    for chain in verdict["chains"]:
        head = {
            "night": verdict["night"],
            "time": verdict["time"],
            **{k: chain[k] for k in ("task", "checkpoint", "verdict", "baseline")},
            "results": chain["results"] and os.path.relpath(chain["results"], output),
        }
        if chain["results"] is None:
            rows.append(head)
            continue
        summary = load_results(chain["results"]).summary
        for row in summary[(summary.slice == "all") & (summary.scope == "all")].to_dict("records"):
            rows.append(
                {**head, **{k: row[k] for k in ("metric", "value", "ci_low", "ci_high", "n", "n_missing")}}
            )
    return rows
