"""A cluster in miniature on this machine: Beam's job service in one process, a worker pool in another."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def process(module: str, *words: str, port: int, log: Path) -> Iterator[None]:
    """`python -m MODULE WORDS` in a process group of its own, listening on `port`; ended with the block."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])  # workers start as `python`
    python_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PATH": path, "PYTHONPATH": python_path, "OMP_NUM_THREADS": "1"}
    with open(log, "wb") as stream:
        child = subprocess.Popen(
            [sys.executable, "-m", module, *words],
            cwd=log.parent,  # not the checkout: a worker has nothing but what is installed and staged
            env=env,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        _wait_for(port, child, log)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _wait_for(port: int, child: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if child.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection(("localhost", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on port {port}: {log.read_text()[-2000:]}")


@contextlib.contextmanager
def portable_cluster(logs: Path) -> Iterator[list[str]]:
    """Job service and worker pool; yields the options that send a job to them."""
    logs.mkdir(parents=True, exist_ok=True)
    job_port, pool_port = free_port(), free_port()
    service = "apache_beam.runners.portability.local_job_service_main"
    pool = "apache_beam.runners.worker.worker_pool_main"
    with (
        process(service, "--port", str(job_port), port=job_port, log=logs / "job-service.log"),
        process(pool, "--service_port", str(pool_port), port=pool_port, log=logs / "worker-pool.log"),
    ):
        yield [
            "--runner=PortableRunner",
            f"--job_endpoint=localhost:{job_port}",
            "--environment_type=EXTERNAL",
            f"--environment_config=localhost:{pool_port}",
        ]
