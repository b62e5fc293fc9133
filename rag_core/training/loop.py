"""The training loop, from top to bottom.

Every step: questions through the question encoder as it is now, exact search over frozen passage
vectors, scores recomputed differentiably, contexts through the generator, −log of the marginal, mean
over the examples of the whole window, AdamW.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rag_core.errors import DataError
from rag_core.models.rag_model import RagModel
from rag_core.schemas import Question
from rag_core.training.config import TrainConfig
from rag_core.training.evaluate import dev_exact_match
from rag_core.training.examples import Example, batch_indices, ids_hash
from rag_core.training.log import Log
from rag_core.training.loss import Batcher
from rag_core.training.monitor import CollapseMonitor
from rag_core.training.optimizer import learning_rate_factor, make_optimizer, set_learning_rate
from rag_core.training.retrieval import Retriever
from rag_core.training.state import latest_state, load_state, save_state


@dataclass
class Progress:
    """What a run remembers besides weights, optimiser and random streams."""

    step: int = 0
    ids_seen: str = ""
    best_em: float | None = None
    best_step: int = 0
    worse: int = 0
    collapse: dict[str, Any] = field(default_factory=dict)


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
    the best by exact match are put back at the end. Raises DataError on a loss that is not finite.
    """
    log = log or Log(None)
    optimizer = make_optimizer(model, config)
    batcher = Batcher(model, config.max_target_length, config.labels)
    monitor = CollapseMonitor()
    progress = Progress()
    _set_dropout(model, config)
    torch.manual_seed(config.seed)
    found = latest_state(work / "state")
    if found is not None:
        progress = Progress(**load_state(found, model, optimizer))
        monitor.restore(progress.collapse)
        log.line(f"going on from step {progress.step} of {steps}")
    model.train()
    started, first = time.monotonic(), progress.step
    while progress.step < steps:
        picked = [
            examples[i] for i in batch_indices(len(examples), config.batch_size, config.seed, progress.step)
        ]
        set_learning_rate(optimizer, learning_rate_factor(progress.step, steps, config))
        loss, norms = _step(model, optimizer, batcher, retriever, picked, config, monitor)
        progress.step += 1
        progress.ids_seen = ids_hash([e.question_id for e in picked], progress.ids_seen)
        last = progress.step == steps
        if progress.step % config.log_every == 0 or last or progress.step == 1:
            per_step = (time.monotonic() - started) / (progress.step - first)
            log.step(
                progress.step, steps, per_step, loss=loss, **norms, **monitor.figures(), ids=progress.ids_seen
            )
            if (warning := monitor.warning(len(examples))) is not None:
                log.line(warning)
        stop = False
        if dev and (last or (config.eval_every and progress.step % config.eval_every == 0)):
            stop = _evaluate(model, retriever, dev, config, progress, work, log)
        if not last and config.save_every and progress.step % config.save_every == 0:
            progress.collapse = monitor.state()
            save_state(work / "state", progress.step, model, optimizer, vars(progress))
        if stop:
            log.line(
                f"stopped early: no better than step {progress.best_step} for {progress.worse} evaluations"
            )
            break
    if dev and progress.best_step != progress.step:
        _load_best(model, work)
    return progress


def _step(
    model: RagModel,
    optimizer: torch.optim.Optimizer,
    batcher: Batcher,
    retriever: Retriever | None,
    picked: Sequence[Example],
    config: TrainConfig,
    monitor: CollapseMonitor,
) -> tuple[float, dict[str, float]]:
    """One optimiser step: gradients of the mean over all examples of the window, whatever its cuts."""
    optimizer.zero_grad(set_to_none=True)
    size = config.micro_batch_size or len(picked)
    total = 0.0
    shown: list[tuple[list[list[str]], torch.Tensor]] = []
    for at in range(0, len(picked), size):
        part = picked[at : at + size]
        questions = [e.question for e in part]
        with _autocast(model, config):
            retrieved = retriever.retrieve(questions, config.n_docs) if retriever is not None else None
            contexts = batcher.contexts(questions, retrieved)
            nll_B = model.nll(*contexts, batcher.labels_BT([e.target for e in part]))
        loss = nll_B.sum() / len(picked)
        if not torch.isfinite(loss):
            bad = [e.question_id for e, v in zip(part, nll_B.tolist()) if not math.isfinite(v)]
            raise DataError(
                f"loss is not finite for question {bad[0]!r} ({len(bad)} of {len(part)}); "
                "nothing was saved from this step"
            )
        loss.backward()
        total += float(loss.detach())
        if retrieved is not None:
            shown.append((retrieved.passage_ids, retrieved.doc_scores_BK))
    norms = _clip(optimizer, config.clip)
    optimizer.step()
    for ids, scores_BK in shown:
        monitor.add(ids, scores_BK, norms.get("question_encoder_norm", 0.0))
    return total, norms


def _clip(optimizer: torch.optim.Optimizer, clip: float) -> dict[str, float]:
    """Clip the norm over all parameters; return the norms, and the one into the question encoder."""
    groups: dict[str, list[torch.Tensor]] = {}
    for group in optimizer.param_groups:
        grads = [p.grad for p in group["params"] if p.grad is not None]
        groups.setdefault(group["name"], []).extend(grads)
    norms = {name: nn.utils.get_total_norm(grads) for name, grads in groups.items() if grads}
    total = torch.stack(list(norms.values())).norm() if norms else torch.zeros(())
    if not torch.isfinite(total):
        raise DataError("a gradient is not finite; nothing was saved from this step")
    if clip > 0 and total > clip:
        torch._foreach_mul_([g for grads in groups.values() for g in grads], float(clip / total))
    out = {"grad_norm": float(total)}
    if "question_encoder" in norms:
        out["question_encoder_norm"] = float(norms["question_encoder"])
    return out


def _autocast(model: RagModel, config: TrainConfig):
    if config.precision == "fp32":
        return nullcontext()
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[config.precision]
    return torch.autocast(model.device.type, dtype=dtype)


def _set_dropout(model: RagModel, config: TrainConfig) -> None:
    """Override dropout where the config names a rate; else each model keeps its own."""
    for module, rate in (
        (model.generator, config.dropout),
        (getattr(model, "question_encoder_module", None), config.question_encoder_dropout),
    ):
        if module is None or rate is None:
            continue
        for part in module.modules():
            if isinstance(part, nn.Dropout):
                part.p = rate
            for name in ("dropout", "attention_dropout", "activation_dropout", "dropout_prob"):
                if isinstance(getattr(part, name, None), float):
                    setattr(part, name, rate)


def _evaluate(model, retriever, dev, config, progress: Progress, work: Path, log: Log) -> bool:
    """Dev EM through the real decoder; keeps the best weights. True when it is time to stop."""
    em = dev_exact_match(model, retriever, dev, config)
    log.record(step=progress.step, dev_exact_match=em, dev_n=len(dev))
    log.line(f"step {progress.step}: dev EM {100 * em:.1f} on {len(dev)} questions")
    if progress.best_em is None or em > progress.best_em:
        progress.best_em, progress.best_step, progress.worse = em, progress.step, 0
        model.save_pretrained(str(work / "best"))
    else:
        progress.worse += 1
    return bool(config.patience) and progress.worse >= config.patience


def _load_best(model: RagModel, work: Path) -> None:
    best = RagModel.from_pretrained(str(work / "best"))
    model.load_state_dict(best.state_dict())
