"""Training: what gradients reach, windows and micro-batches, resume, collapse, and faults."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from rag_core import DecodingConfig
from rag_core.decoding import answer_questions
from rag_core.errors import DataError, UsageError
from rag_core.models.target_layout import TargetLayout
from rag_core.schemas import Question
from rag_core.training.config import TrainConfig
from rag_core.training.examples import batch_indices
from rag_core.training.log import Log
from rag_core.training.loop import train
from rag_core.training.loss import Batcher, window_loss
from rag_core.training.monitor import CollapseMonitor
from rag_core.training.retrieval import retrieve
from rag_core.training.state import latest_state
from tests.reference.tiny_training import WORDS, training_setup

CONFIG = TrainConfig(
    batch_size=4, n_docs=3, lr=5e-3, question_encoder_lr=1e-2, warmup_steps=2, clip=1.0, max_target_length=4,
    save_every=0, log_every=1, max_context_length=30,
)  # fmt: skip


def losses(path):
    return [r["loss"] for r in map(json.loads, path.read_text().splitlines()) if "loss" in r]


def run(tmp_path, config=CONFIG, steps=6, kind="token", dev=(), name="log.jsonl", **setup):
    model, examples, retriever = training_setup(kind, **setup)
    log = tmp_path / name
    progress = train(
        model, examples, retriever, config, tmp_path, steps=steps, dev=dev, log=Log(log, quiet=True)
    )
    return model, progress, losses(log)


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_the_gradient_reaches_the_question_encoder_and_not_the_passage_vectors(kind):
    model, examples, retriever = training_setup(kind)
    model.eval()
    before = retriever.vectors_ND.copy()
    batcher = Batcher(model, 4)
    questions = [e.question for e in examples]

    def loss():
        contexts = batcher.contexts(questions, retrieve(retriever, questions, 3))
        return model.nll(*contexts, batcher.labels_BT([e.target for e in examples])).mean()

    loss().backward()
    weight = model.question_encoder.module.weight
    assert weight.grad.abs().sum() > 1e-3
    assert model.generator.model.model.shared.weight.grad.abs().sum() > 0
    # Numerically: the loss moves with the question encoder as its gradient says.
    row, column = divmod(int(weight.grad.abs().argmax()), weight.shape[1])
    slope, step = float(weight.grad[row, column]), 1e-2
    values = []
    with torch.no_grad():
        for sign in (1, -1):
            weight[row, column] += sign * step
            values.append(float(loss()))
            weight[row, column] -= sign * step
    assert (values[0] - values[1]) / (2 * step) == pytest.approx(slope, rel=0.05)
    np.testing.assert_array_equal(retriever.vectors_ND, before)


def test_training_lowers_the_loss_and_moves_the_question_encoder(tmp_path):
    model, _, seen = run(tmp_path, steps=100)
    assert np.mean(seen[-10:]) < 0.3 * np.mean(seen[:3])
    fresh, _, _ = training_setup()
    assert not torch.equal(model.question_encoder.module.weight, fresh.question_encoder.module.weight)


@pytest.mark.parametrize("kind", ["sequence", "token"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_micro_batches_give_one_trajectory(tmp_path, kind, smoothing):
    """However a window is cut: its loss is the mean over all its examples, and the tail counts."""
    trajectories = {}
    for micro in (0, 1, 2, 3, 4, 5, 9):
        config = replace(CONFIG, batch_size=5, micro_batch_size=micro, label_smoothing=smoothing)
        trajectories[micro] = run(tmp_path, config, steps=5, kind=kind, name=f"{micro}.jsonl")[2]
    for micro, found in trajectories.items():
        np.testing.assert_allclose(found, trajectories[0], rtol=1e-5, err_msg=str(micro))


def test_the_loss_of_a_window_is_the_mean_over_its_examples(tmp_path):
    """Not the mean of means of its cuts: 5 examples in cuts of 2, 2 and 1."""
    model, examples, retriever = training_setup()
    batcher = Batcher(model, 4)
    picked = [examples[i] for i in batch_indices(6, 5, 0, 0)]
    with torch.no_grad():
        model.eval()
        each = [
            float(
                model.nll(
                    *batcher.contexts([e.question], retrieve(retriever, [e.question], 3)),
                    batcher.labels_BT([e.target]),
                )
            )
            for e in picked
        ]
    seen = run(tmp_path, replace(CONFIG, batch_size=5, micro_batch_size=2), steps=1)[2]
    assert seen[0] == pytest.approx(np.mean(each), rel=1e-5)
    assert seen[0] != pytest.approx(np.mean([np.mean(each[:2]), np.mean(each[2:4]), each[4]]), rel=1e-4)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_learns_and_resumes(tmp_path, precision):
    config = replace(CONFIG, precision=precision, save_every=4)
    _, _, seen = run(tmp_path, config, steps=40)
    assert np.mean(seen[-5:]) < 0.7 * np.mean(seen[:5])
    states = sorted((tmp_path / "state").iterdir())
    assert [p.name for p in states] == ["step-00000036"]
    assert "scale" in json.loads((states[0] / "state.json").read_text())["scaler"] or precision == "bf16"
    _, _, rest = run(tmp_path, config, steps=40, name="rest.jsonl")
    assert rest == seen[36:]


def test_gradient_checkpointing_gives_the_same_losses(tmp_path):
    plain = run(tmp_path, steps=4, name="a.jsonl")[2]
    model, examples, retriever = training_setup()
    model.question_encoder.module.gradient_checkpointing_enable = lambda: None  # one matrix has no layers
    config, log = replace(CONFIG, gradient_checkpointing=True), tmp_path / "b.jsonl"
    train(model, examples, retriever, config, tmp_path / "b", steps=4, log=Log(log, quiet=True))
    assert model.generator.model.is_gradient_checkpointing
    np.testing.assert_allclose(losses(log), plain, rtol=1e-5)


def test_a_run_that_ran_out_of_patience_does_not_train_on_after_a_restart(tmp_path):
    """Killed between the evaluation that ended it and the checkpoint."""
    dev = [Question("d", "where is ada", ("nowhere",))]
    config = replace(CONFIG, save_every=1, eval_every=1, patience=2)
    setup = training_setup()
    setup[0].question_encoder.save_pretrained = lambda directory: None
    setup[0].save_pretrained = lambda *_: None
    with pytest.raises(UsageError, match="no checkpoint there"):  # the best weights were not kept above
        train(*setup, config, tmp_path, steps=9, dev=dev, log=Log(tmp_path / "a.jsonl", quiet=True))
    assert latest_state(tmp_path / "state").name == "step-00000003"
    with pytest.raises(UsageError, match="no checkpoint there"):
        train(*setup, config, tmp_path, steps=9, dev=dev, log=Log(tmp_path / "b.jsonl", quiet=True))
    assert losses(tmp_path / "a.jsonl") and not (tmp_path / "b.jsonl").exists()


def test_a_resumed_run_equals_an_undisturbed_one_bit_for_bit(tmp_path):
    config = replace(CONFIG, save_every=3, dropout=0.2)
    (tmp_path / "whole").mkdir()
    whole, progress, expected = run(tmp_path / "whole", config, steps=8)

    class Killed(Exception):
        pass

    class Dying(Log):
        def step(self, step, *args, **values):
            super().step(step, *args, **values)
            if step == 5:
                raise Killed

    cut = tmp_path / "cut"
    cut.mkdir()
    model, examples, retriever = training_setup()
    with pytest.raises(Killed):
        train(model, examples, retriever, config, cut, steps=8, log=Dying(cut / "first.jsonl", quiet=True))
    assert latest_state(cut / "state").name == "step-00000003"
    # A state that was cut short is passed over.
    shutil.copytree(cut / "state" / "step-00000003", cut / "state" / "step-00000004")
    (cut / "state" / "step-00000004" / "state.json").unlink()
    again, resumed, rest = run(cut, config, steps=8)
    assert rest == expected[3:]
    assert resumed.ids_seen == progress.ids_seen
    for (name, a), b in zip(whole.state_dict().items(), again.state_dict().values()):
        assert torch.equal(a, b), name


def test_a_loss_that_is_not_finite_names_the_question_and_saves_nothing(tmp_path):
    model, examples, retriever = training_setup()
    with torch.no_grad():
        model.generator.model.final_logits_bias[0, 5] = torch.nan
    with pytest.raises(DataError, match="not finite for question 'q"):
        train(model, examples, retriever, CONFIG, tmp_path, steps=2, log=Log(None, quiet=True))
    assert latest_state(tmp_path / "state") is None


def test_a_frozen_question_encoder_stays_as_it_is(tmp_path):
    model, _, _ = run(tmp_path, trained=False)
    fresh, _, _ = training_setup(trained=False)
    assert torch.equal(model.question_encoder.module.weight, fresh.question_encoder.module.weight)
    assert not torch.equal(
        model.generator.model.model.shared.weight, fresh.generator.model.model.shared.weight
    )


@pytest.mark.parametrize("bos", [None, 0])
def test_closed_book_learns_by_heart_from_the_first_token_on(tmp_path, bos):
    """Training, decoding and text use one layout: targets come back whole, with or without a BOS."""
    model, examples, _ = training_setup()
    model.kind = "closed_book"
    model.generator.layout = TargetLayout(start=2, bos=bos, eos=2, pad=1)
    log = tmp_path / "log.jsonl"
    examples = [replace(e, target=f"{e.target} is {e.target}") for e in examples]
    config = replace(CONFIG, max_target_length=8)
    train(model, examples, None, config, tmp_path, steps=120, log=Log(log, quiet=True))
    assert losses(log)[-1] < 0.2 * losses(log)[0]
    model.eval()
    questions = [Question(e.question_id, e.question, (e.target,)) for e in examples]
    empty = [[] for _ in examples]
    found = answer_questions(model, questions, empty, empty, DecodingConfig(max_length=8))
    assert [p.prediction for p in found] == [e.target for e in examples]


def test_smoothing_is_of_the_marginal():
    """Equals (1 − ε)·nll + ε·(cost of a uniform target) under p(y_i | x, y_<i), computed by prefixes."""
    for kind in ("token", "sequence"):
        model, examples, retriever = training_setup(kind)
        model.eval()
        batcher = Batcher(model, 4)
        questions = [e.question for e in examples[:2]]
        labels = torch.tensor([[2, 16, 17, 2], [2, 18, 2, 1]])
        with torch.no_grad():
            contexts = batcher.contexts(questions, retrieve(retriever, questions, 3))
            found = window_loss(model, contexts, labels, 0.1)
            plain = model.nll(*contexts, labels)
            uniform = torch.zeros(2)
            for b, n in ((0, 3), (1, 2)):
                one = [t[b : b + 1] for t in contexts]
                for i in range(n):
                    before = model.nll(*one, labels[b : b + 1, : i + 1])
                    costs = []
                    for token in range(len(WORDS)):
                        row = torch.cat([labels[b, : i + 1], torch.tensor([token])])[None]
                        if token == 1:  # the padding token is never scored by nll: by the rest of the mass
                            continue
                        costs.append(float(model.nll(*one, row) - before))
                    rest = 1 - sum(np.exp(-c) for c in costs)
                    uniform[b] += (sum(costs) - np.log(max(rest, 1e-30))) / len(WORDS)
        torch.testing.assert_close(found, 0.9 * plain + 0.1 * uniform, atol=2e-2, rtol=1e-2)
        torch.testing.assert_close(window_loss(model, contexts, labels, 0.0), plain)


def test_a_full_disk_is_named_and_the_last_state_stays(tmp_path, monkeypatch):
    from rag_core.training import state

    config = replace(CONFIG, save_every=2)
    saved = state.save_file

    def failing(tensors, path):
        if "step-00000004" in str(path) and "optimizer" in str(path):
            raise OSError(28, "No space left on device")
        saved(tensors, path)

    monkeypatch.setattr(state, "save_file", failing)
    with pytest.raises(UsageError, match="No space left on device.*last whole state is .*step-00000002"):
        run(tmp_path, config)
    assert [p.name for p in (tmp_path / "state").iterdir()] == ["step-00000002"]


def test_a_resumed_log_holds_every_step_once(tmp_path):
    log = Log(tmp_path / "log.jsonl", quiet=True)
    for step in range(1, 6):
        log.record(step=step, loss=1.0)
    log.cut(3)
    log.record(step=4, loss=2.0)
    assert [json.loads(r)["step"] for r in log.path.read_text().splitlines()] == [1, 2, 3, 4]


def test_a_collapse_stays_in_the_log(tmp_path, monkeypatch):
    """What is only printed is gone once the terminal is."""
    monkeypatch.setattr(
        "rag_core.training.loop.CollapseMonitor", lambda: CollapseMonitor(3, least_distinct=2.0)
    )
    run(tmp_path, steps=5)
    records = list(map(json.loads, (tmp_path / "log.jsonl").read_text().splitlines()))
    ((step, warning),) = [(r["step"], r["warning"]) for r in records if "warning" in r]
    assert step == 3 and "retrieval has collapsed" in warning
