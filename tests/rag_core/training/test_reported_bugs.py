"""Faults that others have met in training (ids of `job_bugs.jsonl`), with their inputs, harmless here."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from rag_core.encoders import load_encoder
from rag_core.errors import DataError, run_command
from rag_core.schemas import Question
from rag_core.train import main
from rag_core.training.distributed import Group
from rag_core.training.evaluate import dev_exact_match
from rag_core.training.examples import Example, batch_indices
from rag_core.training.log import Log
from rag_core.training.loop import train
from rag_core.training.loss import Batcher, window_loss
from rag_core.training.targets import make_examples
from tests.rag_core.encoders.conftest import bert_dir, tokenizer  # noqa: F401
from tests.rag_core.retrieval.conftest import embeddings_run, passages_run  # noqa: F401
from tests.rag_core.training.test_loop import CONFIG, losses
from tests.rag_core.training.test_train_command import PASSAGES, run, world  # noqa: F401
from tests.reference.tiny_training import training_setup


def ids_of(indices):
    return [i for step in indices for i in step]


def test_b22_a_resumed_epoch_holds_every_sample_once():
    """64 samples, batches of 4, stopped after 5: the rest of the epoch is what was not seen."""
    first = [batch_indices(64, 4, 0, step) for step in range(5)]
    rest = [batch_indices(64, 4, 0, step) for step in range(5, 16)]  # as a restart draws them
    assert sorted(ids_of(first) + ids_of(rest)) == list(range(64))
    unbroken = [batch_indices(64, 4, 0, step) for step in range(16, 32)]
    assert sorted(ids_of(unbroken)) == list(range(64)) and ids_of(unbroken) != ids_of(first + rest)


def test_b24_a_state_holds_tensors_and_json_and_nothing_that_executes(tmp_path):
    model, examples, retriever = training_setup()
    config = replace(CONFIG, save_every=2)
    train(model, examples, retriever, config, tmp_path, steps=3, log=Log(None, quiet=True))
    (state,) = (tmp_path / "state").iterdir()
    assert {p.suffix for p in state.iterdir()} == {".safetensors", ".json"}
    assert json.loads((state / "state.json").read_text())["step"] == 2


@pytest.mark.parametrize("cuts", [[0, 2], [0, 1, 2]])
def test_b26_the_mean_is_over_examples_whatever_the_cuts(cuts):
    """Targets of 1 and 3 tokens in different micro-batches; RAG's loss is the mean over examples."""
    model, examples, retriever = training_setup()
    model.eval()
    batcher = Batcher(model, 6)
    picked = [replace(examples[0], target="oslo"), replace(examples[1], target="rome is rome")]
    whole = []
    for begin, end in zip(cuts, cuts[1:]):
        part = picked[begin:end]
        questions = [e.question for e in part]
        contexts = batcher.contexts(questions, retriever.start(questions, 3)())
        labels = batcher.labels_BT([e.target for e in part])
        wide = torch.nn.functional.pad(labels, (0, 3), value=1)  # padding left in labels costs nothing
        with torch.no_grad():
            loss = window_loss(model, contexts, labels)
            torch.testing.assert_close(window_loss(model, contexts, wide), loss)
            torch.testing.assert_close(
                window_loss(model, contexts, wide, 0.1), window_loss(model, contexts, labels, 0.1)
            )
        whole += loss.tolist()
    assert sum(whole) / 2 == pytest.approx(B26, rel=1e-5)


B26 = 0.0


def setup_module():
    global B26
    model, examples, retriever = training_setup()
    model.eval()
    batcher = Batcher(model, 6)
    values = []
    for e, target in ((examples[0], "oslo"), (examples[1], "rome is rome")):
        contexts = batcher.contexts([e.question], retriever.start([e.question], 3)())
        values.append(float(model.nll(*contexts, batcher.labels_BT([target])).detach()))
    B26 = sum(values) / 2


def test_b26_a_target_without_a_scored_token_costs_nothing_and_is_no_nan():
    model, examples, retriever = training_setup()
    batcher = Batcher(model, 6)
    questions = [e.question for e in examples[:2]]
    labels = torch.tensor([[2, 1, 1], [2, 16, 2]])
    for smoothing in (0.0, 0.1):
        contexts = batcher.contexts(questions, retriever.start(questions, 3)())
        loss = window_loss(model, contexts, labels, smoothing)
        assert loss[0] == 0 and torch.isfinite(loss).all()
        loss.sum().backward()
        assert all(torch.isfinite(p.grad).all() for p in model.generator.parameters() if p.grad is not None)


@pytest.mark.parametrize("n, world_size", [(10, 4), (3, 4)])
def test_b27_distributed_evaluation_counts_every_example_once(monkeypatch, n, world_size):
    model, examples, retriever = training_setup()
    dev = [Question(f"d{i}", examples[i % 6].question, (examples[i % 6].target,)) for i in range(n)]
    model.eval()
    whole = dev_exact_match(model, retriever, dev, CONFIG)
    seen, right = [], []

    class Rank(Group):
        def __init__(self, rank):
            self.world, self.rank = world_size, rank

        def share(self, items):
            mine = super().share(items)
            seen.extend(mine)
            return mine

        def sum(self, *values):
            right.append(values[0])
            return list(values)

    for rank in range(world_size):
        dev_exact_match(model, retriever, dev, CONFIG, Rank(rank))
    assert sorted(q.question_id for q in seen) == sorted(q.question_id for q in dev)
    assert sum(right) / n == whole


def test_b34_words_that_look_like_nothing_are_answers():
    questions = [Question(f"q{i}", "who", (a,)) for i, a in enumerate(("a", "nan", "None", "NA", "null"))]
    assert [e.target for e in make_examples(questions, "each")] == ["a", "nan", "None", "NA", "null"]


def test_b07_a_passage_vector_that_is_not_finite_is_refused_by_name(world, embeddings_run, tmp_path, capsys):  # noqa: F811
    vectors = np.random.default_rng(0).normal(size=(6, 32)).astype(np.float32)
    for value in (np.nan, np.inf):
        vectors[3, 5] = value
        name = f"bad-{value}"
        embeddings = embeddings_run(vectors, [p.passage_id for p in PASSAGES], name=name)
        manifest = json.loads((tmp_path / "embeddings" / "_manifest.json").read_text())
        path = tmp_path / name / "_manifest.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "encoder": manifest["encoder"]}))
        assert run({**world, "--embeddings": embeddings, "--output": str(tmp_path / f"o-{value}")}) == 3
        assert "p3" in capsys.readouterr().err


def test_b12_passages_of_another_width_are_refused(world, embeddings_run, tmp_path, capsys):  # noqa: F811
    vectors = np.random.default_rng(0).normal(size=(6, 16)).astype(np.float32)
    embeddings = embeddings_run(vectors, [p.passage_id for p in PASSAGES], name="narrow")
    path = tmp_path / "narrow" / "_manifest.json"
    manifest = json.loads(path.read_text())
    fits = load_encoder(world["--question-encoder"]).fits_passage_encoder
    path.write_text(json.dumps({**manifest, "encoder": {**manifest["encoder"], "fingerprint": fits}}))
    assert run({**world, "--embeddings": embeddings}) == 3
    assert "passage vectors of 16 numbers, question vectors of 32" in capsys.readouterr().err


def test_passages_of_another_corpus_are_refused(world, passages_run, tmp_path, capsys):  # noqa: F811
    """An id that the vectors have and the texts lack: the files belong to different runs."""
    fewer = passages_run(PASSAGES[:4], name="fewer")
    assert run({**world, "--passages": fewer, "--n-docs": "6"}) == 3
    error = capsys.readouterr().err
    assert "fewer" in error and ("p4" in error or "p5" in error)


def test_a_fresh_scaler_does_not_overflow_after_a_restart(tmp_path):
    """fp16: the loss scale is part of the state."""
    config = replace(CONFIG, precision="fp16", save_every=2)
    model, examples, retriever = training_setup()
    train(model, examples, retriever, config, tmp_path, steps=3, log=Log(None, quiet=True))
    (state,) = (tmp_path / "state").iterdir()
    path = state / "state.json"
    saved = json.loads(path.read_text())
    path.write_text(json.dumps({**saved, "scaler": {**saved["scaler"], "scale": 128.0}}))
    model, examples, retriever = training_setup()
    progress = train(
        model, examples, retriever, replace(config, save_every=1), tmp_path, steps=4,
        log=Log(tmp_path / "l.jsonl", quiet=True),
    )  # fmt: skip
    assert progress.scaler["scale"] == 128.0 and len(losses(tmp_path / "l.jsonl")) == 2


def test_an_example_whose_loss_is_nan_is_named_and_the_last_state_stays(tmp_path):
    """The model overflows at step 3: the state of step 2 is whole, and another rate goes on from nothing."""
    model, examples, retriever = training_setup()
    config = replace(CONFIG, save_every=2)

    class Poison(Log):
        def step(self, step, *args, **values):
            super().step(step, *args, **values)
            if step == 2:
                with torch.no_grad():
                    model.generator.model.final_logits_bias[0, 7] = torch.nan

    with pytest.raises(
        DataError, match="loss is not finite for question 'q.*nothing was saved from this step"
    ):
        train(model, examples, retriever, config, tmp_path, steps=5, log=Poison(None, quiet=True))
    (state,) = (tmp_path / "state").iterdir()
    assert state.name == "step-00000002"


def test_a_label_and_its_text_are_the_same_target():
    """FEVER: one token of the label's text, no EOS; the first that differs must differ in it."""
    model, examples, retriever = training_setup()
    batcher = Batcher(model, 6, labels=("oslo", "rome"))
    assert batcher.labels_BT(["oslo", "rome"]).shape == (2, 2)
    assert isinstance(examples[0], Example)


def test_commands_say_what_is_wrong_in_one_line(capsys):
    assert run_command(main, ["--questions", "q", "--output", "o"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
