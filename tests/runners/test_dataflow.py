"""Dataflow up to the submission: package, graph and template staged for real, and run as a worker would.

The store is an emulator on loopback. The staged package is installed into an environment that has no
checkout, the staged graphs are run there, and must give the rows that the jobs give in memory.
"""

from __future__ import annotations

import base64
import bz2
import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_runner_api_pb2

from beam_jobs import split
from beam_jobs.options import register_file_systems
from rag_core import files
from rag_core.errors import UsageError
from rag_core.run_dir import read_manifest
from tests.beam_jobs.conftest import make_tiny_encoder, split_options, write_corpus, write_questions
from tests.runners.cluster import ROOT
from tests.runners.digests import miniature
from tests.runners.stores import BUCKET, NO_ACCOUNT, google_storage, upload_tree

FIVE = ("split", "embed", "index", "retrieve", "generate")
STORE = f"gs://{BUCKET}"
STEPS = {
    "split": {"Split/Parts", "Split/Spread", "Split/Process", "Finish/Gather", "Finish/Manifest"},
    "embed": {"Embed/Parts", "Embed/Spread", "Embed/Process", "Finish/Gather", "Finish/Manifest"},
    "index": {"Build/Fit", "Build/Shards", "Build/Spread", "Build/Add", "Build/Merge", "Finish/Manifest"},
    "retrieve": {"Retrieve/Encode", "Retrieve/Search", "Retrieve/TopK", "Retrieve/Write", "Finish/Manifest"},
    "generate": {"Generate/Parts", "Generate/Spread", "Generate/Process", "Finish/Manifest"},
}
ACCELERATOR = "type:nvidia-l4;count:1;install-nvidia-driver"
HINTS = ["--resource_hint=min_ram=4GB", f"--resource_hint=accelerator={ACCELERATOR}"]
QUICK = ["--experiments=disable_logging_submission_environment"]  # it lists all installed packages


def output(name: str) -> str:
    return f"{STORE}/dataflow/{name}"


def digests(name: str) -> list[str]:
    return [part["row_digest"] for part in read_manifest(output(name))["parts"]]


def dataflow(name: str) -> list[str]:
    places = {"temp": "tmp", "staging": f"staging/{name}", "template": f"templates/{name}.json"}
    flags = [f"--{key}_location={STORE}/{place}" for key, place in places.items()]
    return ["--profile=dataflow", "--project=ragline-test", "--region=europe-west4", *flags, *HINTS, *QUICK]


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    """All five jobs staged, and what they give in memory: digests by job. The store lives with the module."""
    root = tmp_path_factory.mktemp("dataflow")
    write_corpus(root / "tsv", files=2, rows=20)
    write_questions(root / "questions.jsonl", 8)
    make_tiny_encoder(root / "encoder")
    before = FileSystems._pipeline_options
    with google_storage() as env, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        FileSystems.set_options(PipelineOptions(NO_ACCOUNT))
        register_file_systems()
        upload_tree(root, STORE)
        chain = miniature(
            f"{STORE}/runs", f"{STORE}/tsv/*.tsv", f"{STORE}/questions.jsonl", f"{STORE}/encoder"
        )
        jobs = [job for job in chain if job.name in FIVE]
        in_memory = {job.name: job.run(f"{STORE}/runs/{job.name}", NO_ACCOUNT) for job in jobs}
        commands = [
            [f"beam_jobs.{job.module}", [*job.argv, "--output", output(job.name), *dataflow(job.name)]]
            for job in jobs
        ]
        done = subprocess.run(
            [sys.executable, "-m", "tests.runners.submit", json.dumps(commands)],
            cwd=ROOT,
            env={**os.environ, **env},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.count("package, graph and template are staged; launch") == 5
        yield in_memory, env
    FileSystems.set_options(before)


def staged_file(job: str, name: str) -> str:
    found = [f.url for f in files.list_tree(f"{STORE}/staging/{job}") if f.url.endswith(name)]
    assert len(found) == 1, (job, name, found)
    return found[0]


def graph_of(job: str) -> beam_runner_api_pb2.Pipeline:
    graph = beam_runner_api_pb2.Pipeline()
    graph.ParseFromString(files.read_bytes(staged_file(job, "/pipeline.pb")))
    return graph


@pytest.mark.slow
@pytest.mark.parametrize("job", FIVE)
def test_what_is_staged(staged, job):
    graph = graph_of(job)
    steps = {t.unique_name for t in graph.components.transforms.values()}
    assert STEPS[job] <= {re.sub(r"\(.*\)$", "", step) for step in steps}, sorted(steps)
    assert graph.ByteSize() < 100_000  # descriptors: no rows, vectors or weights
    names = [files.base_name(f.url) for f in files.list_tree(f"{STORE}/staging/{job}")]
    assert "workflow.tar.gz" in names and "pickled_main_session" not in names
    template = files.read_json(f"{STORE}/templates/{job}.json")
    assert template["environment"]["sdkPipelineOptions"]["options"]["save_main_session"] is False
    environments = [e for e in graph.components.environments.values() if "docker" in e.urn]
    hints = {urn: value for e in environments for urn, value in e.resource_hints.items()}
    assert hints["beam:resources:min_ram_bytes:v1"] == b"4000000000"
    assert hints["beam:resources:accelerator:v1"] == ACCELERATOR.encode()
    assert "no_use_multiple_sdk_containers" in template["environment"]["experiments"]


@pytest.mark.slow
@pytest.mark.parametrize("job", FIVE)
def test_no_step_depends_on_the_main_module(staged, job):
    """Commands ran as `__main__`; a function pickled from there could not be found on a worker."""
    functions = [
        beam_runner_api_pb2.ParDoPayload.FromString(t.spec.payload).do_fn.payload
        for t in graph_of(job).components.transforms.values()
        if t.spec.urn == "beam:transform:pardo:v1"
    ]
    pickled = [bz2.decompress(base64.b64decode(function)) for function in functions if function]
    assert len(pickled) >= 3 and any(b"beam_jobs" in text for text in pickled)
    assert [text for text in pickled if b"__main__" in text] == []


@pytest.fixture(scope="module")
def fresh_python(staged, tmp_path_factory) -> Path:
    """An environment with the staged package and the installed dependencies, but without the checkout."""
    directory = tmp_path_factory.mktemp("worker")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory / "env"], check=True)
    package = directory / "workflow.tar.gz"
    package.write_bytes(files.read_bytes(staged_file("split", "/workflow.tar.gz")))
    site = directory / "env/lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--target", site]
    subprocess.run([*pip, *options, package], check=True, cwd=directory)
    # Dependencies come from this environment by path; its own .pth files lead to the checkout and stay out.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return directory / "env/bin/python"


@pytest.mark.slow
def test_the_staged_graphs_run_where_only_the_staged_package_is(staged, fresh_python, tmp_path):
    in_memory, env = staged
    script = tmp_path / "staged.py"
    script.write_text((ROOT / "tests/runners/staged.py").read_text())
    urls = [staged_file(job, "/pipeline.pb") for job in FIVE]
    done = subprocess.run(
        [fresh_python, script, *urls], cwd=tmp_path, env={**os.environ, **env}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert {job: digests(job) for job in FIVE} == in_memory
    imported = json.loads(done.stdout.splitlines()[-1])
    assert {"beam_jobs.transforms.parts", "rag_core.parts", "rag_core.decoding"} <= set(imported)
    assert [n for n, path in imported.items() if not path.startswith(str(fresh_python.parents[1]))] == []


def test_a_package_that_is_not_there_is_refused_before_anything_is_written(tmp_path):
    write_corpus(tmp_path / "tsv", files=1, rows=2)
    argv = split_options(tmp_path / "tsv", tmp_path / "out")
    with pytest.raises(UsageError, match="--setup_file ./nosuch.py: no such file; start from the checkout"):
        split.run([*argv, *dataflow("split"), "--setup_file=./nosuch.py"])
    assert not (tmp_path / "out").exists()
