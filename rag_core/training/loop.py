"""The training loop, from top to bottom.

Every step: questions through the question encoder as it is now, exact search over frozen passage
vectors, scores recomputed differentiably, contexts through the generator, −log of the marginal, mean
over the examples of the whole window, AdamW (`rag_core.training.step`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from rag_core.models.rag_model import RagModel
from rag_core.schemas import Question
from rag_core.training.config import TrainConfig
from rag_core.training.distributed import Group
from rag_core.training.evaluate import dev_exact_match
from rag_core.training.examples import Example, batch_indices, ids_hash
from rag_core.training.log import Log
from rag_core.training.monitor import CollapseMonitor
from rag_core.training.optimizer import learning_rate_factor, make_optimizer, set_learning_rate
from rag_core.training.retrieval import Retriever
from rag_core.training.state import latest_state, load_state, save_state
from rag_core.training.step import Stepper, Window


@dataclass
class Progress:
    """What a run remembers besides weights, optimiser and random streams."""

    step: int = 0
    ids_seen: str = ""
    best_em: float | None = None
    best_step: int = 0
    worse: int = 0
    collapse: dict[str, Any] = field(default_factory=dict)
    scaler: dict[str, Any] = field(default_factory=dict)


def train(
    model: RagModel,
    examples: Sequence[Example],
    retriever: Retriever | None,
    config: TrainConfig,
    work: Path,
    *,
    steps: int,
    dev: Sequence[Question] = (),
    log: Log | None = None,
) -> Progress:
    """Train to `steps`, going on from the newest state in `work` if there is one.

    `retriever` None trains closed-book. Without a dev set the last weights are the result; with one,
    the best by exact match are put back at the end. Raises DataError on a loss that is not finite,
    UsageError when a state cannot be written (the last whole one stays).
    """
    group, monitor, progress = Group(), CollapseMonitor(), Progress()
    log = log or Log(None)
    prepare(model, config)
    optimizer = make_optimizer(model, config)
    stepper = Stepper(model, optimizer, retriever, config, group)
    torch.manual_seed(config.seed + group.rank)
    found = latest_state(work / "state")
    if found is not None:
        progress = Progress(**load_state(found, model, optimizer, group))
        monitor.restore(progress.collapse)
        stepper.scaler.load_state_dict(progress.scaler)
        log.cut(progress.step)
        log.line(f"going on from step {progress.step} of {steps}")
    started, first = time.monotonic(), progress.step
    model.train()
    stop = _out_of_patience(progress, config)  # killed after the evaluation that ended it
    while progress.step < steps and not stop:
        indices = batch_indices(len(examples), config.batch_size, config.seed, progress.step)
        picked = [examples[i] for i in indices]
        set_learning_rate(optimizer, learning_rate_factor(progress.step, steps, config))
        window = stepper.run(picked)
        _observe(monitor, window)
        progress.step += 1
        progress.ids_seen = ids_hash([e.question_id for e in picked], progress.ids_seen)
        last = progress.step == steps
        if progress.step % config.log_every == 0 or last or progress.step == 1:
            per_step = (time.monotonic() - started) / (progress.step - first)
            figures = {**window.norms, **monitor.figures(), "ids": progress.ids_seen}
            figures["without_passages"] = len(window.without_passages)
            figures["truncated_passages"] = window.truncated_passages
            log.step(progress.step, steps, per_step, loss=window.loss, **figures)
        if (warning := monitor.warning(len(examples))) is not None:
            log.record(step=progress.step, warning=warning)
            log.line(warning)
        if window.without_passages:
            log.line(f"step {progress.step}: nothing was found for {_names(window.without_passages)}")
        if dev and (last or _due(config.eval_every, progress.step)):
            stop = _evaluate(model, retriever, dev, config, progress, group, work, log)
        if not last and _due(config.save_every, progress.step):
            progress.collapse, progress.scaler = monitor.state(), stepper.scaler.state_dict()
            save_state(work / "state", model, optimizer, group, vars(progress))
    if stop:
        log.line(f"stopped early: step {progress.best_step} was not bettered in {progress.worse} tries")
    if dev and progress.best_step != progress.step:
        if group.is_main:
            model.save_pretrained(str(work / "last"))
        best = RagModel.from_pretrained(str(work / "best"))
        model.load_state_dict(best.state_dict())
    return progress


def prepare(model: RagModel, config: TrainConfig) -> None:
    """Set dropout where the config names a rate, and gradient checkpointing where it is asked for."""
    encoder = getattr(model, "question_encoder_module", None)
    for module, rate in ((model.generator, config.dropout), (encoder, config.question_encoder_dropout)):
        for part in module.modules() if module is not None and rate is not None else ():
            if isinstance(part, nn.Dropout):
                part.p = rate
            for name in ("dropout", "attention_dropout", "activation_dropout", "dropout_prob"):
                if isinstance(getattr(part, name, None), float):
                    setattr(part, name, rate)
    if config.gradient_checkpointing:
        model.generator.model.gradient_checkpointing_enable()
        if encoder is not None and not config.freeze_question_encoder:
            encoder.gradient_checkpointing_enable()


def _due(every: int, step: int) -> bool:
    return every > 0 and step % every == 0


def _observe(monitor: CollapseMonitor, window: Window) -> None:
    """One entry a step, however the window was cut."""
    if not window.retrieved:
        return
    ids = [found for retrieved in window.retrieved for found in retrieved.passage_ids]
    rows = [row for retrieved in window.retrieved for row in retrieved.doc_scores_BK.detach()]
    scores_BK = pad_sequence(rows, batch_first=True, padding_value=-torch.inf)
    monitor.add(ids, scores_BK, window.norms.get("question_encoder_norm", 0.0))


def _names(ids: Sequence[str]) -> str:
    shown = ", ".join(repr(i) for i in ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
    return f"{shown}: they add nothing to the loss"


def _out_of_patience(progress: Progress, config: TrainConfig) -> bool:
    return bool(config.patience) and progress.worse >= config.patience


def _evaluate(
    model: RagModel,
    retriever: Retriever | None,
    dev: Sequence[Question],
    config: TrainConfig,
    progress: Progress,
    group: Group,
    work: Path,
    log: Log,
) -> bool:
    """Dev EM through the real decoder; keeps the best weights. True when it is time to stop."""
    em = dev_exact_match(model, retriever, dev, config, group)
    log.record(step=progress.step, dev_exact_match=em, dev_n=len(dev))
    log.line(f"step {progress.step}: dev EM {100 * em:.1f} on {len(dev)} questions")
    if progress.best_em is None or em > progress.best_em:
        progress.best_em, progress.best_step, progress.worse = em, progress.step, 0
        if group.is_main:
            model.save_pretrained(str(work / "best"))
        group.wait()
    else:
        progress.worse += 1
    return _out_of_patience(progress, config)
