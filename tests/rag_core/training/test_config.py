"""Settings that make no sense are refused, by their names, before anything is loaded."""

import json
import math

import pytest

from rag_core.errors import DataError, UsageError, run_command
from rag_core.models.generator import Generator
from rag_core.models.target_layout import TargetLayout
from rag_core.train import main, parse
from rag_core.training.config import TrainConfig, load_file, resolve
from tests.reference.tiny_models import tiny_bart
from tests.reference.tiny_training import NAMES, TOWNS, WORDS, word_tokenizer


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("micro_batch_size", -1, "micro_batch_size -1; right: at least 0"),
        ("steps", -3, "steps -3"),
        ("epochs", math.nan, "epochs nan"),
        ("epochs", math.inf, "epochs inf"),
        ("lr", -1e-3, "lr -0.001"),
        ("lr", math.nan, "lr nan"),
        ("question_encoder_lr", -1.0, "question_encoder_lr"),
        ("warmup_steps", -1, "warmup_steps"),
        ("weight_decay", math.inf, "weight_decay"),
        ("clip", -0.1, "clip"),
        ("label_smoothing", 1.0, "label_smoothing 1.0; right: below 1"),
        ("label_smoothing", -0.1, "label_smoothing"),
        ("dropout", 1.5, "dropout"),
        ("seed", -1, "seed -1"),
        ("patience", -1, "patience"),
        ("eval_every", -1, "eval_every"),
        ("save_every", -5, "save_every"),
        ("dev_limit", -5, "dev_limit"),
        ("n_docs", 0, "n_docs 0"),
        ("labels", ("a", "b", "a"), "right: distinct"),
        ("precision", "int8", "precision 'int8'"),
    ],
)
def test_a_value_out_of_range(name, value, message):
    with pytest.raises(UsageError, match=message):
        TrainConfig(**{name: value})


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("a.toml", "lr = ", "not valid TOML"),
        ("a.toml", "lr = 1\n[train]\nsteps = 3", "'lr' stands outside"),
        ("a.toml", "train = 3", "train 3; right: a table"),
        ("a.toml", "[train]\nlearning_rate = 1e-3", "unknown training option 'learning_rate'; known: .*lr"),
        ("a.toml", "[optimizer]\nlr = 1", "unknown training option 'optimizer'"),
        ("a.toml", "labels = 'yes'", "option labels: 'yes'"),
        ("a.toml", "preset = 'huge'", "unknown preset 'huge'"),
        ("a.toml", "preset = 3", "unknown preset 3"),
        ("a.json", "[1]", "expected settings by name, found list"),
        ("a.json", '{"steps": true}', "option steps: True"),
        ("a.json", '{"lr": "1e-3"}', "option lr: '1e-3'"),
    ],
)
def test_a_config_file_that_cannot_be_meant(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        resolve([load_file(str(path))])


def test_config_files_that_are_no_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_file(str(tmp_path / "none.toml"))
    (tmp_path / "latin.toml").write_bytes("task = 'é'".encode("latin-1"))
    with pytest.raises(UsageError, match="not valid TOML"):
        load_file(str(tmp_path / "latin.toml"))
    (tmp_path / "cut.json").write_text('{"lr": ')
    with pytest.raises(DataError, match="not valid JSON"):
        load_file(str(tmp_path / "cut.json"))


def test_a_resolved_config_read_again_is_the_same(tmp_path):
    config, _ = parse(["--preset", "tiny", "--questions", "q", "--output", "o", "--lr", "0.5"])
    assert (config.preset, config.lr, config.batch_size) == ("tiny", 0.5, 12)
    (tmp_path / "_config.json").write_text(json.dumps(config.to_json()))
    assert parse(["--config", str(tmp_path / "_config.json")])[0] == config
    preset = tmp_path / "mine.toml"
    preset.write_text("[train]\npreset = 'tiny'\nlr = 1\n[generate]\nmax_length = 9\n")
    assert parse(["--config", str(preset)])[0].lr == 1.0


@pytest.fixture
def closed(tmp_path):
    """A closed-book training as a dict of options."""
    layout = TargetLayout(start=2, bos=None, eos=2, pad=1)
    Generator(tiny_bart(vocab_size=len(WORDS)), layout, word_tokenizer()).save(str(tmp_path / "g"))
    rows = [{"question": f"where is {n}", "answers": [t]} for n, t in zip(NAMES, TOWNS)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return {
        "--task": "custom", "--questions": str(tmp_path / "q.jsonl"), "--generator": str(tmp_path / "g"),
        "--output": str(tmp_path / "out"), "--steps": "2", "--batch-size": "4", "--max-target-length": "5",
    }  # fmt: skip


def run(options, *flags):
    return run_command(main, [a for pair in options.items() for a in pair] + ["--closed-book", *flags])


def test_targets_that_the_generator_cannot_hold(closed, capsys):
    assert run({**closed, "--max-target-length": "2"}) == 2
    assert "--max-target-length 2: start, end and one token need 3" in capsys.readouterr().err
    assert run({**closed, "--max-target-length": "65"}) == 2
    assert "the generator holds 64" in capsys.readouterr().err
    assert run(closed, "--labels", "oslo", "oslo town") == 2
    assert "begin with the same token" in capsys.readouterr().err
    assert run(closed, "--labels", "oslo", " ") == 2
    assert "--labels: label ' ' has no token" in capsys.readouterr().err


def test_a_dev_file_without_questions(closed, tmp_path, capsys):
    (tmp_path / "dev.jsonl").write_text("")
    assert run({**closed, "--dev": str(tmp_path / "dev.jsonl")}) == 3
    assert "dev.jsonl: no dev question" in capsys.readouterr().err
    (tmp_path / "dev.jsonl").write_text('{"question": "where is ada", "answers": [" "]}\n')
    assert run({**closed, "--dev": str(tmp_path / "dev.jsonl")}) == 3
    assert "only empty answers" in capsys.readouterr().err


def test_bad_records_are_counted_and_a_bad_file_is_named(closed, tmp_path, capsys):
    path = tmp_path / "q.jsonl"
    good = path.read_text()
    path.write_text(good + '{"question": "who", "answers": [""]}\n{"question": "", "answers": ["x"]}\n')
    assert run(closed) == 0
    assert "6 questions (rejected: 1 empty question, 1 only empty answers)" in capsys.readouterr().err
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert (manifest["questions"], manifest["examples"]) == (6, 6)
    assert manifest["rejected"] == {"empty question": 1, "only empty answers": 1}
    for text, message in (
        (good + "{cut", "line 7: not valid JSON"),
        (good + '{"question": 3, "answers": ["x"]}\n', "line 7: question 3"),
        ('{"question": "who", "answers": ["", " "]}\n', "no training pair in 0 questions"),
        ("", "no training pair in 0 questions"),
    ):
        path.write_text(text)
        assert run({**closed, "--output": str(tmp_path / "bad")}) == 3
        assert message in capsys.readouterr().err
    tsv = tmp_path / "q.tsv"
    tsv.write_text('where is ada\t["oslo"]\nwhere is bea\n')
    bad = {**closed, "--output": str(tmp_path / "bad")}
    assert run({**bad, "--task": "nq", "--questions": str(tsv)}) == 3
    assert "q.tsv, line 2" in capsys.readouterr().err


def test_the_plan_says_what_is_cut_and_what_can_hardly_be_meant(closed, tmp_path, capsys):
    rows = [
        {"question": "where is ada", "answers": ["oslo rome bonn kiev lima"]},
        {"question": "where " * 80, "answers": ["oslo"]},
    ]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert run({**closed, "--patience": "2", "--warmup-steps": "9"}) == 0
    printed = capsys.readouterr().err
    assert "plan: 2 steps of 4 questions (4.0 epochs), seed 0" in printed
    assert "cut to fit: 1 of 2 targets" in printed and "cut to fit: 1 of 2 questions" in printed
    assert "warning: the warm-up of 9 steps ends after the last one" in printed
    assert "warning: without --dev nothing is evaluated" in printed
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert manifest["truncated"] == {"targets": 1, "questions": 1}
