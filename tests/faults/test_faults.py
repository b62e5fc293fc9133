"""A short run of the fault suite; the long one is `make faults`."""

from __future__ import annotations

import io
import re
import subprocess
import sys

import pytest

from tests.beam_jobs.test_commands import ROOT
from tests.faults.inject import _ShortReads


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_struck_job_ends_as_if_nothing_had_happened():
    command = [sys.executable, "-m", "tests.faults", "--trials", "27", "--seed", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    trials, struck, expected, found, shared, failures = map(
        int,
        re.fullmatch(
            r"(\d+) trials, (\d+) faults injected, (\d+) rows expected, (\d+) rows found, "
            r"(\d+) times two jobs on one directory; (\d+) failures, \d+ s",
            done.stdout.splitlines()[-1],
        ).groups(),
    )
    assert (trials, shared, failures) == (27, 9, 0) and struck >= 16 and found == expected > 500


def test_short_reads_are_short():
    stream = io.BufferedReader(_ShortReads(io.BytesIO(b"abcdefgh"), 3), 4)
    assert stream.raw.readinto(bytearray(8)) == 3
    assert stream.read() == b"defgh"
