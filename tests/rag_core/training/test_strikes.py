"""A training that is struck: killed at file boundaries, a full disk, another owner, other settings.

`RAGLINE_EXHAUSTIVE=1` strikes at every boundary instead of some.
"""

import json
import os
import resource
import signal

import pytest
from safetensors.torch import load_file

from rag_core.errors import run_command
from rag_core.models.generator import Generator
from rag_core.models.target_layout import TargetLayout
from rag_core.run_dir import claim
from rag_core.train import main
from tests.reference.strikes import full_from, in_child, killed_at
from tests.reference.tiny_models import tiny_bart
from tests.reference.tiny_training import NAMES, TOWNS, WORDS, word_tokenizer

EXHAUSTIVE = bool(os.environ.get("RAGLINE_EXHAUSTIVE"))


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """A closed-book training with a dev set: `command(output, *more)` is its command line."""
    root = tmp_path_factory.mktemp("struck")
    layout = TargetLayout(start=2, bos=None, eos=2, pad=1)
    Generator(tiny_bart(vocab_size=len(WORDS), std=0.2), layout, word_tokenizer()).save(str(root / "g"))
    rows = [{"question": f"where is {n}", "answers": [t]} for n, t in zip(NAMES, TOWNS)]
    (root / "q.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))

    def make(output, *more):
        asked = ["--questions", str(root / "q.jsonl"), "--dev", str(root / "q.jsonl"), "--task", "custom"]
        sizes = ["--steps", "4", "--batch-size", "4", "--max-target-length", "5", "--lr", "0.02"]
        often = ["--save-every", "1", "--eval-every", "2", "--log-every", "1", "--warmup-steps", "1"]
        model = ["--closed-book", "--generator", str(root / "g")]
        return [*asked, *sizes, *often, *model, "--output", str(output), *more]

    return make


def start(argv):
    return lambda: run_command(main, argv)


def result(output):
    """Losses of every step, and the weights: what must not depend on a strike."""
    records = [json.loads(line) for line in (output / "_log.jsonl").read_text().splitlines()]
    weights = load_file(output / "generator" / "model.safetensors")
    manifest = json.loads((output / "_manifest.json").read_text())
    kept = {k: manifest[k] for k in ("steps", "best_step", "dev_exact_match", "ids_seen", "content_digest")}
    return [r["loss"] for r in records if "loss" in r], {n: t.tolist() for n, t in weights.items()}, kept


@pytest.fixture(scope="module")
def whole(command, tmp_path_factory):
    output = tmp_path_factory.mktemp("whole") / "out"
    assert in_child(start(command(output))) == 0
    return result(output)


def strikes(first, step):
    return range(first, 2000, 1 if EXHAUSTIVE else step)


@pytest.mark.timeout(3000 if EXHAUSTIVE else 300)
def test_killed_at_a_file_boundary_it_goes_on_to_the_same_end(command, whole, tmp_path):
    struck = 0
    for n in strikes(5, 23):
        output = tmp_path / f"kill-{n}"
        code = killed_at(n, start(command(output)), str(output))
        if code == 0:
            break
        struck += 1
        assert code == -9
        assert in_child(start(command(output))) == 0
        assert result(output) == whole, n
        assert not (output / "_work").exists() and not list(output.glob("*.new-*"))
    assert struck >= 6, struck


@pytest.mark.timeout(3000 if EXHAUSTIVE else 300)
def test_a_disk_that_fills_is_one_clear_line_and_loses_nothing(command, whole, tmp_path, capfd):
    struck = 0
    for n in strikes(3, 6):
        output = tmp_path / f"full-{n}"
        capfd.readouterr()
        code = full_from(n, start(command(output)), str(output))
        if code == 0:
            break
        struck += 1
        errors = [line for line in capfd.readouterr().err.splitlines() if "error" in line.lower()]
        assert code == 2 and len(errors) == 1 and "No space left on device" in errors[0], (n, code, errors)
        assert in_child(start(command(output))) == 0
        assert result(output) == whole, n
    assert struck >= 4


def test_a_file_too_large_for_the_disk_is_told_apart_from_a_fault_of_ours(command, whole, tmp_path, capfd):
    """safetensors writes past Python; the limit strikes there as a full disk does."""
    output = tmp_path / "out"

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
        return run_command(main, command(output))

    assert in_child(limited) == 2
    assert "could not be" in capfd.readouterr().err
    assert in_child(start(command(output))) == 0
    assert result(output) == whole


def test_other_settings_are_refused_while_there_is_a_state_to_go_on_from(command, whole, tmp_path, capfd):
    output = tmp_path / "out"
    assert killed_at(120, start(command(output)), str(output)) == -9
    states = sorted(p.name for p in (output / "_work" / "state").iterdir())
    assert states
    capfd.readouterr()
    assert in_child(start(command(output, "--lr", "0.5"))) == 2
    (line,) = [li for li in capfd.readouterr().err.splitlines() if li.startswith("error")]
    assert "holds a run of other inputs, models or options" in line and "--overwrite" in line
    assert sorted(p.name for p in (output / "_work" / "state").iterdir()) == states
    assert in_child(start(command(output))) == 0
    assert result(output) == whole
    assert in_child(start(command(output, "--lr", "0.5", "--overwrite"))) == 0
    assert result(output) != whole


def test_a_directory_that_another_training_holds_is_refused(command, tmp_path, capfd):
    output = str(tmp_path / "out")
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:  # the other training: it holds the directory until it is told
        claim(output, "train", logic_version=1, inputs={}, models={}, options={})
        os.write(writer, b"x")
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    os.read(reader, 1)
    assert in_child(start(command(output))) == 2
    assert f"in use by process {pid}" in capfd.readouterr().err
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert in_child(start(command(output))) == 0


def test_overwriting_leaves_nothing_of_the_run_before(command, tmp_path):
    output = tmp_path / "out"
    assert in_child(start(command(output))) == 0
    for name in ("question_encoder", "_last", "_tensorboard"):
        (output / name).mkdir(exist_ok=True)
        (output / name / "config.json").write_text("{}")
    (output / "notes.txt").write_text("mine")
    assert in_child(start(command(output, "--seed", "3", "--overwrite"))) == 0
    left = {p.name for p in output.iterdir()}
    assert "question_encoder" not in left and "_tensorboard" not in left and "notes.txt" in left
    assert not (output / "_last" / "config.json").exists() or (output / "_last" / "generator").is_dir()


@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors", "rng-0.safetensors"])
def test_a_damaged_state_is_named(command, tmp_path, capfd, name):
    output = tmp_path / "out"
    assert killed_at(120, start(command(output)), str(output)) == -9
    (state,) = [p for p in (output / "_work" / "state").iterdir() if (p / "state.json").exists()]
    (state / name).write_bytes((state / name).read_bytes()[:-20])
    capfd.readouterr()
    assert in_child(start(command(output))) == 3
    assert f"{name}: cannot be read" in capfd.readouterr().err


def test_half_a_log_line_does_not_stop_a_restart(command, whole, tmp_path):
    output = tmp_path / "out"
    assert killed_at(120, start(command(output)), str(output)) == -9
    with open(output / "_log.jsonl", "a") as log:
        log.write('{"time": 17')
    assert in_child(start(command(output))) == 0
    assert result(output) == whole
