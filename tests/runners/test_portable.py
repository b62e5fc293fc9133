"""Jobs through a job service and a worker pool in processes of their own: the same rows as in memory.

Two worker processes: tests/beam_jobs/test_commands.py; all jobs on all three: `make digests`.
"""

from __future__ import annotations

import pytest

from beam_jobs import split
from rag_core.errors import DataError
from tests.runners.cluster import portable_cluster
from tests.runners.digests import local_miniature

FIVE = ("split", "embed", "index", "retrieve", "generate")


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """The five jobs, run in memory: directory, jobs by name, digests by name."""
    root = tmp_path_factory.mktemp("chain")
    jobs = {job.name: job for job in local_miniature(root) if job.name in FIVE}
    return root, jobs, {name: job.run(f"{root}/memory/{name}") for name, job in jobs.items()}


@pytest.fixture(scope="module")
def apart(tmp_path_factory):
    with portable_cluster(tmp_path_factory.mktemp("cluster")) as flags:
        yield flags


@pytest.mark.slow
@pytest.mark.parametrize("name", FIVE)
def test_a_worker_pool_apart_gives_the_same_rows(chain, apart, name):
    root, jobs, in_memory = chain
    assert jobs[name].run(f"{root}/portable/{name}", apart) == in_memory[name]


def test_bad_data_on_a_worker_apart_is_the_same_complaint(chain, apart, tmp_path):
    _, jobs, _ = chain
    argv = [*jobs["split"].argv, "--min-words", "1000", "--output", str(tmp_path / "out"), *apart]
    with pytest.raises(DataError, match="nothing was written: 120 read; 120 short"):
        split.run(argv)
