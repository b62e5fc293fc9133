"""Beam metrics of a job: counted on the workers, from the parts' reports, and compared with the manifest.

The manifest is built from the reports themselves and is what counts. The counters are for dashboards: a
runner that repeats a bundle counts it again, so that only in memory and in local processes, where
nothing is repeated, must both agree.
"""

from __future__ import annotations

import resource
import sys
from typing import Any

from apache_beam.metrics.metric import Metrics, MetricsFilter
from apache_beam.runners.runner import PipelineResult

NAMESPACE = "ragline"
MEMORY = "worker_memory_peak_bytes"


def count_report(report: dict[str, Any]) -> dict[str, Any]:
    """Add one part's report to the counters of this worker; returns the report."""
    counts = report["counts"]
    totals = {"parts": 1, "rows": report["rows"], "read": counts["read"], "written": counts["written"]}
    for reason in ("skipped", "dead_lettered"):
        totals[reason] = sum(counts[reason].values())
    for name, n in totals.items():
        if n:
            Metrics.counter(NAMESPACE, name).inc(int(n))  # a NumPy integer would break Beam's coder
    Metrics.distribution(NAMESPACE, MEMORY).update(memory_peak())
    return report


def memory_peak() -> int:
    """The most memory that this process has held, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def read_counters(result: PipelineResult) -> dict[str, int]:
    """The counters of a finished pipeline, and the largest memory a worker told of; empty without any."""
    found = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))
    counters: dict[str, int] = {}
    for metric in found["counters"]:
        name = metric.key.metric.name
        counters[name] = counters.get(name, 0) + _value(metric)
    peaks = [_value(metric).max for metric in found["distributions"] if metric.key.metric.name == MEMORY]
    return {**counters, **({MEMORY: max(peaks)} if peaks else {})}


def _value(metric: Any) -> Any:
    """What has been committed where the runner tells, else what was attempted."""
    return metric.attempted if metric.committed is None else metric.committed


def manifest_counts(manifest: dict[str, Any]) -> dict[str, int]:
    """What the counters of a run without repeats must be."""
    counts = manifest["counts"]
    return {
        "parts": len(manifest["parts"]),
        "rows": manifest["rows"],
        "read": counts["read"],
        "written": counts["written"],
        "skipped": sum(counts["skipped"].values()),
        "dead_lettered": sum(counts["dead_lettered"].values()),
    }


def differences(manifest: dict[str, Any], counters: dict[str, int]) -> dict[str, tuple[int, int]]:
    """By name, (counter, manifest) where the two differ."""
    expected = manifest_counts(manifest)
    pairs = {name: (counters.get(name, 0), n) for name, n in expected.items()}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
