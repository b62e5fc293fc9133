"""Profiles: known names, known runners, and a reason for each refusal."""

from __future__ import annotations

import pytest

from runners.profiles import NAMES, check_runner, profile_flags


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
