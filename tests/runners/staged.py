"""Run staged graphs as a Dataflow worker would: where the staged package is installed, and no checkout.

`python staged.py URL.pb …` (its own process, in the fresh environment): reads each `pipeline.pb`, puts this
process in the place of the container, runs it, and prints one JSON line with what was imported from where.
"""

from __future__ import annotations

import json
import sys

from apache_beam.internal.gcp.auth import _Credentials
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner


def run(url: str) -> None:
    graph = beam_runner_api_pb2.Pipeline()
    with FileSystems.open(url) as stream:
        graph.ParseFromString(stream.read())
    for environment in graph.components.environments.values():
        environment.urn, environment.payload = python_urns.EMBEDDED_PYTHON, b""
        del environment.dependencies[:]
    FnApiRunner().run_via_runner_api(graph, PipelineOptions([])).wait_until_finish()


if __name__ == "__main__":
    _Credentials._credentials_init = True  # no account: the store is an emulator
    FileSystems.set_options(PipelineOptions(["--project=ragline-test"]))
    for url in sys.argv[1:]:
        run(url)
    ours = ("beam_jobs", "rag_core", "eval", "runners", "tests")
    found = {name: module.__file__ for name, module in sys.modules.items() if name.split(".")[0] in ours}
    print(json.dumps(found))
