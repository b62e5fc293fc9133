"""Exact search over a run holds one block of vectors and the results, whatever the corpus."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from rag_core.retrieval.vectors import BLOCK_ROWS

ROWS, DIM, QUERIES, TOP_K = 140_000, 768, 256, 100

PEAK = """
import sys
import numpy as np, torch
from rag_core.retrieval import ExactIndex
torch.set_num_threads(1)
directory, n_queries, k = sys.argv[1], *map(int, sys.argv[2:])
index = ExactIndex.open(directory)
queries_QD = np.random.default_rng(1).standard_normal((n_queries, index.dim), dtype=np.float32)
index.search(queries_QD[:65], 1)  # libraries start up
open("/proc/self/clear_refs", "w").write("5")  # the peak is now the present

def kib(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))

before = kib("VmRSS")
index.search(queries_QD, k)
print((kib("VmHWM") - before) * 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_peak_is_one_block_and_the_results(embeddings_run):
    rng = np.random.default_rng(0)
    run = embeddings_run(rng.standard_normal((ROWS, DIM), dtype=np.float32), [str(i) for i in range(ROWS)])
    arguments = [run, str(QUERIES), str(TOP_K)]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *arguments], capture_output=True, text=True, check=True, timeout=300
    )
    # A hit is a float, a reference to its id, and their places in two lists.
    results = QUERIES * TOP_K * 40
    assert int(done.stdout) <= 1.2 * (BLOCK_ROWS * DIM * 4 + results)
