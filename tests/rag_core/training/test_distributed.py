"""Processes share a window unevenly and still make the one-process trajectory."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rag_core.training.distributed import Group
from rag_core.training.log import Log
from rag_core.training.loop import train
from tests.rag_core.training.test_loop import CONFIG, losses
from tests.reference.tiny_training import training_setup

# Forks after the imports, before autograd runs: four interpreters would only import torch four times.
SCRIPT = """
import os, sys
from dataclasses import replace
from pathlib import Path
import torch
from rag_core.training.distributed import Group
from rag_core.training.log import Log
from rag_core.training.loop import train
from tests.rag_core.training.test_loop import CONFIG
from tests.reference.tiny_training import training_setup

torch.set_num_threads(1)
work, world = Path(sys.argv[1]), 4
os.environ |= {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": sys.argv[2]}
children = []
for rank in range(world):
    pid = os.fork()
    if pid == 0:
        os.environ["RANK"] = str(rank)
        model, examples, retriever = training_setup()
        log = Log(work / "log.jsonl" if rank == 0 else None, quiet=True)
        train(model, examples, retriever, replace(CONFIG, batch_size=5), work, steps=4, log=log)
        os._exit(0)
    children.append(pid)
sys.exit(sum(os.waitpid(pid, 0)[1] != 0 for pid in children))
"""


def test_four_processes_with_five_examples_equal_one(tmp_path):
    model, examples, retriever = training_setup()
    log = Log(tmp_path / "one.jsonl", quiet=True)
    train(model, examples, retriever, replace(CONFIG, batch_size=5), tmp_path / "one", steps=4, log=log)
    root = Path(__file__).parents[3]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), port]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}
    subprocess.run(command, cwd=root, env=environment, check=True, timeout=100)
    np.testing.assert_allclose(losses(tmp_path / "log.jsonl"), losses(tmp_path / "one.jsonl"), rtol=1e-5)


@pytest.mark.parametrize("n, world", [(10, 4), (3, 4), (5, 1)])
def test_shares_are_disjoint_and_whole(n, world, monkeypatch):
    group, seen = Group(), []
    for rank in range(world):
        group.world, group.rank = world, rank
        seen += group.share(range(n))
    assert sorted(seen) == list(range(n))


def test_a_logged_run_is_json_lines(tmp_path):
    model, examples, retriever = training_setup()
    log = Log(tmp_path / "log.jsonl", quiet=True)
    train(model, examples, retriever, CONFIG, tmp_path, steps=2, log=log)
    records = [json.loads(line) for line in log.path.read_text().splitlines()]
    assert {"loss", "grad_norm", "question_encoder_norm", "distinct_passages", "ids"} <= set(records[-1])
