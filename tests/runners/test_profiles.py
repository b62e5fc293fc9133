"""Profiles: known names, known runners, and a reason for each refusal."""

from __future__ import annotations

import pytest

from beam_jobs import split
from beam_jobs.options import job_parser, parse_job, runner_name
from rag_core.errors import UsageError
from runners.profiles import NAMES, check_runner, profile_flags
from tests.beam_jobs.conftest import split_options, write_corpus
from tests.runners.cluster import free_port


@pytest.mark.parametrize("name", NAMES)
def test_every_profile_loads_and_names_an_accepted_runner(name):
    flags = profile_flags(name)
    runner = next(f.split("=", 1)[1] for f in flags if f.startswith("--runner="))
    check_runner(runner)


def test_dataflow_keeps_one_process_a_machine():
    assert "--experiments=no_use_multiple_sdk_containers" in profile_flags("dataflow")


def test_unknown_profile():
    with pytest.raises(ValueError, match="unknown profile 'slurm'; there are: local"):
        profile_flags("slurm")


@pytest.mark.parametrize(
    "runner, reason", [("DaskRunner", "lost all rows"), ("PrismRunner", "downloads"), ("Foo", "is not known")]
)
def test_refused_runners(runner, reason):
    with pytest.raises(ValueError, match=reason):
        check_runner(runner)


GPU = "--dataflow_service_options=worker_accelerator="


@pytest.mark.parametrize("form", ["=", " "])
def test_an_item_of_the_command_line_replaces_the_profiles_of_its_name(form):
    """Two accelerators would be a contradiction that only the service sees."""
    given = f"--dataflow_service_options{form}worker_accelerator=type:nvidia-tesla-a100;count:1".split(" ")
    flags = [*profile_flags("dataflow_gpu", given), *given]
    assert [f for f in flags if "worker_accelerator" in f] == given[-1:]
    kept = profile_flags("dataflow_gpu", ["--dataflow_service_options=enable_prime", "--experiments=a"])
    assert kept == profile_flags("dataflow_gpu")
    assert "--experiments=no_use_multiple_sdk_containers" in profile_flags("dataflow", given)


BASE = ["--dry_run", "--output", "o"]
WRONG = [
    (["--profile", "flink", "--profile=local"], "--profile flink and --profile local: give one"),
    (["--profile="], "unknown profile ''; there are: local"),
    (["--profile", "Dataflow"], "unknown profile 'Dataflow'"),
    (["--profile", "../local"], "unknown profile '../local'"),
    (["--profil=local"], "unknown option: --profil=local"),
    (["--runner=DaskRunner", "--profile=local"], "DaskRunner is refused: it lost all rows"),
    (["--runner", "apache_beam.runners.dask.dask_runner.DaskRunner"], "is refused: it lost all rows"),
    (["--runner=direct"], "--runner direct is not known; accepted: FnApiRunner, DirectRunner"),
    (["--runner=evil.module.FlinkRunner"], "--runner evil.module.FlinkRunner is not known"),
    (["--runner=evil.FnApiRunner"], "is not known"),
    (["--direct_num_workers=-1"], "--direct_num_workers -1: must not be negative"),
    (["--direct_num_workers=two"], "invalid int value: 'two'"),
    (["--direct_num_workers=1e999"], "invalid int value"),
    (["stray"], "unknown option: stray"),
    (["--dry-run"], "unknown option: --dry-run"),
    (["--dry_run=maybe"], "'maybe' is neither true nor false"),
    (["--s3_secret_acess_key", "Zc7 hush-hush"], r"unknown option: --s3_secret_acess_key \*\*\* \("),
]


@pytest.mark.parametrize("words, complaint", WRONG, ids=lambda value: " ".join(value)[:40])
def test_what_contradicts_itself_or_is_mistyped_is_refused(words, complaint):
    with pytest.raises(UsageError, match=complaint):
        parse_job(job_parser("split", ""), [*BASE, *words])


def test_a_profile_may_be_named_twice_and_a_runner_beside_it_wins():
    argv = [
        "--profile",
        "flink",
        "--profile=flink",
        "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner",
    ]
    args, options = parse_job(job_parser("split", ""), [*BASE, *argv])
    assert (args.profile, runner_name(options), args.runs_here) == ("flink", "FnApiRunner", True)


def test_a_job_service_that_is_not_there_is_one_line(tmp_path):
    write_corpus(tmp_path / "tsv", files=1, rows=2)
    argv = split_options(tmp_path / "tsv", tmp_path / "out")
    argv += ["--profile=flink", f"--job_endpoint=localhost:{free_port()}", "--job_server_timeout=1"]
    with pytest.raises(UsageError, match=r"--job_endpoint localhost:\d+: no job service answers there"):
        split.run(argv)
