"""What is deployed: profiles, launch scripts, Dockerfiles and the Kubernetes manifest."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import yaml
from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions, WorkerOptions

from beam_jobs import split
from beam_jobs.options import job_parser, parse_job
from rag_core.run_dir import read_manifest
from runners.profiles import NAMES, profile_flags
from tests.beam_jobs.conftest import split_options, write_corpus
from tests.runners.cluster import ROOT, free_port
from tests.runners.container import defaults, instructions, python_steps

RUNNERS = ROOT / "runners"
DOCKERFILES = ("Dockerfile.cpu", "Dockerfile.cuda")


@pytest.mark.parametrize("name", NAMES)
def test_every_option_of_a_profile_is_one_of_beams(name):
    cloud = ["--project=p", "--region=r", "--temp_location=gs://bucket/tmp"]
    argv = ["--output", "o", "--profile", name, "--dry_run", *(cloud if name.startswith("dataflow") else [])]
    _, options = parse_job(job_parser("split", ""), argv)  # refuses what Beam does not know
    known = options.get_all_options()
    for key, value in tomllib.loads((RUNNERS / f"{name}.toml").read_text())["options"].items():
        found = known[{"worker_machine_type": "machine_type"}.get(key, key)]
        assert set(value) <= set(found) if isinstance(value, list) else str(found) == str(value), key


def test_the_command_line_wins_over_a_profile():
    flags = [*profile_flags("dataflow"), "--max_num_workers=3", "--worker_machine_type=n2-highmem-16"]
    workers = PipelineOptions(flags).view_as(WorkerOptions)
    assert (workers.max_num_workers, workers.machine_type) == (3, "n2-highmem-16")


def test_an_image_with_the_package_needs_no_setup_file():
    argv = ["--output", "o", "--profile", "dataflow", "--project=p", "--region=r", "--temp_location=gs://b/t"]
    _, options = parse_job(job_parser("split", ""), [*argv, "--setup_file=", "--sdk_container_image=i"])
    assert options.view_as(SetupOptions).setup_file is None


def test_gpu_workers_hold_the_model_once():
    flags = profile_flags("dataflow_gpu")
    assert "--experiments=no_use_multiple_sdk_containers" in flags
    assert "--number_of_worker_harness_threads=1" in flags
    accelerator = "worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver"
    assert f"--dataflow_service_options={accelerator}" in flags


@pytest.mark.parametrize("name", DOCKERFILES)
def test_dockerfiles_are_linted(name):
    hadolint = shutil.which("hadolint") or str(Path(sys.executable).with_name("hadolint"))
    done = subprocess.run([hadolint, "--no-color", RUNNERS / name], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", DOCKERFILES)
def test_images_pin_what_they_take_and_fetch_nothing_at_run_time(name):
    text = (RUNNERS / name).read_text()
    beam = re.search(r"apache-beam==([\d.]+)", (ROOT / "constraints.txt").read_text())[1]
    assert set(re.findall(r"apache/beam_python[\d.]+_sdk:([\d.]+)", text)) == {beam}
    torch = re.search(r"torch==([\d.]+)", (ROOT / "constraints.txt").read_text())[1]
    assert f"torch=={torch}" in text
    assert all(":" in image for kind, image in instructions(text) if kind == "FROM")
    installs = [step for step in python_steps(text) if step.startswith("pip ")]
    assert len(installs) == 2 and "--constraint /opt/ragline/constraints.txt" in installs[1]
    assert "[minilm,gcp,aws]" in installs[1]  # the weights come with the packages
    assert "HF_HUB_OFFLINE=1" in text
    assert [
        a for k, a in instructions(text) if k in ("ARG", "ENV") and re.search("(?i)password|secret", a)
    ] == []


def test_the_build_context_leaves_out_what_no_worker_needs():
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".venv", "demo-out", "tests"} <= set(ignored)
    assert not {"setup.py", "rag_core", "constraints.txt"} & set(ignored)


def test_instructions_and_arguments():
    text = "FROM a:1\n# note\nARG X=1\nRUN pip install b \\\n    # within\n    && rm c\nRUN apt-get update\n"
    assert instructions(text)[2] == ("RUN", "pip install b && rm c")
    assert python_steps(text) == ["pip install b && rm c"] and defaults(text) == {"X": "1"}


def test_the_kubernetes_manifest_puts_a_pool_beside_each_task_manager():
    documents = list(yaml.safe_load_all((RUNNERS / "flink-kubernetes.yaml").read_text()))
    by_name = {(d["kind"], d["metadata"]["name"]): d for d in documents}
    assert len(by_name) == 6
    for (kind, _), document in by_name.items():
        if kind == "Deployment":
            labels = document["spec"]["selector"]
            template = document["spec"]["template"]
            assert labels["matchLabels"] == template["metadata"]["labels"]
            for container in template["spec"]["containers"]:
                assert container["resources"]["limits"]["memory"]
    workers = by_name["Deployment", "ragline-taskmanager"]["spec"]["template"]["spec"]["containers"]
    pool = next(c for c in workers if c["name"] == "worker-pool")
    port = pool["ports"][0]["containerPort"]
    for name in ("flink", "spark"):
        assert f"--environment_config=localhost:{port}" in profile_flags(name)


def script(name: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **env}
    return subprocess.run(
        [RUNNERS / f"{name}.sh", *words], env=environment, capture_output=True, text=True, timeout=280
    )


@pytest.mark.parametrize("name", ["flink", "spark"])
def test_launch_scripts_say_what_is_missing(name, tmp_path):
    variable = f"{name.upper()}_JOB_SERVER_JAR"
    done = script(name, "true", **{variable: ""})
    assert (done.returncode, done.stderr) == (
        2, f"error: {variable} is not set: the path of Beam's job server jar for {name}\n",
    )  # fmt: skip
    done = script(name, "true", **{variable: str(tmp_path / "no.jar")})
    assert done.returncode == 2 and "no such file" in done.stderr


def listens(port: int) -> bool:
    """Whether somebody answers; a free port may be given to the caller itself, who then reaches itself."""
    with socket.socket() as caller:
        return caller.connect_ex(("localhost", port)) == 0 and caller.getsockname() != caller.getpeername()


@pytest.mark.parametrize("name", ["flink", "spark"])
def test_a_launch_script_starts_both_runs_the_command_and_ends_both(name, tmp_path):
    """With a `java` that only listens: what the script itself does."""
    ports = {"JOB_PORT": str(free_port()), "ARTIFACT_PORT": str(free_port()), "POOL_PORT": str(free_port())}
    (tmp_path / "server.jar").touch()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        f"#!{sys.executable}\nimport pathlib, socket, sys\n"
        f"pathlib.Path({str(tmp_path / 'java.txt')!r}).write_text(' '.join(sys.argv[1:]))\n"
        f"s = socket.create_server(('localhost', {ports['JOB_PORT']}))\n"
        "while True:\n    s.accept()[0].close()\n"
    )
    java.chmod(0o755)
    variables = {
        f"{name.upper()}_JOB_SERVER_JAR": str(tmp_path / "server.jar"),
        "LOG_DIR": str(tmp_path / "logs"),
    }
    path = os.pathsep.join([str(java.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = script(name, "echo", "job", **variables, **ports, PATH=path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "job", "--profile", name, "--job_endpoint", f"localhost:{ports['JOB_PORT']}",
        "--environment_type", "EXTERNAL", "--environment_config", f"localhost:{ports['POOL_PORT']}",
    ]  # fmt: skip
    assert f"--job-port {ports['JOB_PORT']}" in (tmp_path / "java.txt").read_text()
    assert not listens(int(ports["JOB_PORT"]))
    assert script(name, "false", **variables, **ports, PATH=path).returncode == 1


def test_a_launch_script_sends_nothing_to_somebody_elses_server(tmp_path):
    (tmp_path / "server.jar").touch()
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    ports = {name: str(free_port()) for name in ("JOB_PORT", "ARTIFACT_PORT", "POOL_PORT")}
    variables = {"FLINK_JOB_SERVER_JAR": str(tmp_path / "server.jar"), "LOG_DIR": str(tmp_path / "logs")}
    with socket.create_server(("localhost", 0)) as other:
        taken = str(other.getsockname()[1])
        for name in ports:
            done = script("flink", "echo", "job", **variables, **{**ports, name: taken}, PATH=path)
            assert (done.returncode, done.stdout) == (2, "") and f"port {taken} is taken" in done.stderr
    started = time.monotonic()
    done = script("flink", "echo", "job", **variables, **ports, PATH=path)
    assert done.returncode == 2 and "job-server does not listen" in done.stderr  # it has ended
    assert time.monotonic() - started < 20


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flink", "spark"])
def test_a_job_through_the_real_job_server(name, tmp_path):
    """Runs where a jar is given; the same rows as in memory."""
    jar = os.environ.get(f"{name.upper()}_JOB_SERVER_JAR")
    if not jar:
        pytest.skip(f"{name.upper()}_JOB_SERVER_JAR is not set: no job server of {name} to try")
    write_corpus(tmp_path / "tsv", files=3, rows=40)
    assert split.run(split_options(tmp_path / "tsv", tmp_path / "memory")) == 0
    command = [sys.executable, "-m", "beam_jobs.split", *split_options(tmp_path / "tsv", tmp_path / name)]
    done = script(name, *command, **{f"{name.upper()}_JOB_SERVER_JAR": jar})
    assert done.returncode == 0, done.stderr
    found, expected = (read_manifest(str(tmp_path / d))["content_digest"] for d in (name, "memory"))
    assert found == expected


PAGES = [*sorted((ROOT / "docs/runners").glob("*.md")), ROOT / "docs/jobs.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_option_in_the_docs_exists(page):
    """Options behind `python -m beam_jobs.JOB` in code blocks, `$FLAGS` spelt out."""
    text = page.read_text()
    blocks = re.sub(r"\\\n\s*", " ", "\n".join(re.findall(r"```\n(.*?)```", text, re.S)))
    flags = re.search(r'FLAGS="(.*?)"', blocks, re.S)
    blocks = blocks.replace("$FLAGS", flags[1].replace("\n", " ") if flags else "")
    commands = re.findall(r"python -m beam_jobs\.(\w+)([^\n#]*)", blocks)
    assert commands
    for job, words in commands:
        parser = importlib.import_module(f"beam_jobs.{job}").parser()
        known = {option for action in parser._actions for option in action.option_strings} | beam_options()
        unknown = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", words)) - known
        assert not unknown, (job, unknown)


def beam_options() -> set[str]:
    names: set[str] = set()
    for options in PipelineOptions.__subclasses__():
        probe = argparse.ArgumentParser(add_help=False)
        options._add_argparse_args(probe)
        names |= {option for action in probe._actions for option in action.option_strings}
    return names
