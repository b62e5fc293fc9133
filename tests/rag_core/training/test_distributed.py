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

from rag_core.models.generator import Generator
from rag_core.models.target_layout import TargetLayout
from rag_core.training.distributed import Group
from rag_core.training.log import Log
from rag_core.training.loop import train
from tests.rag_core.training.test_loop import CONFIG, losses
from tests.reference.tiny_models import tiny_bart
from tests.reference.tiny_training import NAMES, TOWNS, WORDS, training_setup, word_tokenizer

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


@pytest.mark.timeout(600)
@pytest.mark.skipif(
    not os.environ.get("RAGLINE_EXHAUSTIVE"), reason="starts four interpreters; make exhaustive runs it"
)
def test_torchrun_with_five_examples_equals_one_process_and_a_bad_model_ends_all(tmp_path):
    """The command itself, four times over: uneven shares, resume, and an error that leaves nobody waiting."""
    layout = TargetLayout(start=2, bos=None, eos=2, pad=1)
    generator = Generator(tiny_bart(vocab_size=len(WORDS), std=0.2), layout, word_tokenizer())
    generator.save(str(tmp_path / "g"))
    rows = [{"question": f"where is {n}", "answers": [t]} for n, t in list(zip(NAMES, TOWNS))[:5]]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    argv = ["--closed-book", "--generator", str(tmp_path / "g"), "--questions", str(tmp_path / "q.jsonl")]
    argv += ["--dev", str(tmp_path / "q.jsonl"), "--task", "custom", "--steps", "4", "--batch-size", "3"]
    argv += ["--max-target-length", "5", "--eval-every", "2", "--save-every", "1", "--log-every", "1"]
    four = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4", "-m"]
    root = Path(__file__).parents[3]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}

    def command(start, output, *more):
        whole = [*start, "rag_core.train", *argv, "--output", str(tmp_path / output), *more]
        return subprocess.run(whole, cwd=root, env=environment, capture_output=True, text=True, timeout=300)

    done = {name: command(start, name) for name, start in (("one", [sys.executable, "-m"]), ("four", four))}
    for name, run in done.items():
        assert run.returncode == 0, (name, run.stderr)
    one, many = (tmp_path / name / "_log.jsonl" for name in done)
    np.testing.assert_allclose(losses(many), losses(one), rtol=1e-5)
    manifests = [json.loads((tmp_path / name / "_manifest.json").read_text()) for name in done]
    assert manifests[0]["dev_exact_match"] == manifests[1]["dev_exact_match"]
    assert manifests[0]["ids_seen"] == manifests[1]["ids_seen"]
    again = command(four, "four")
    assert again.returncode == 0 and again.stdout.count("checkpoint: ") >= 1
    refused = command(four, "four", "--seed", "5")
    assert refused.returncode != 0 and "--overwrite" in refused.stderr
