"""One optimiser step: gradients of the mean over all examples of the window, whatever its cuts.

A window is cut into micro-batches and over processes; every loss is divided by the window's size
before it is added, so mean-of-means never happens. Shapes: B questions, K passages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import nn

from rag_core.errors import DataError
from rag_core.models.rag_model import RagModel
from rag_core.training.config import TrainConfig
from rag_core.training.distributed import Group
from rag_core.training.examples import Example
from rag_core.training.loss import Batcher, window_loss
from rag_core.training.retrieval import Retrieved, Retriever


@dataclass
class Window:
    """What one step saw: its loss, gradient norms, and the passages retrieved for it.

    `without_passages`: this process's questions for which nothing was found (BM25 without a common word).
    They have no marginal and add nothing; the loss is divided by the whole window all the same.
    `truncated_passages`: contexts of this process whose passage was cut to fit.
    """

    loss: float
    norms: dict[str, float]
    retrieved: list[Retrieved]
    without_passages: list[str]
    truncated_passages: int


class Stepper:
    """Holds what every step needs; `run` makes one."""

    def __init__(
        self,
        model: RagModel,
        optimizer: torch.optim.Optimizer,
        retriever: Retriever | None,
        config: TrainConfig,
        group: Group,
    ):
        self.model, self.optimizer, self.retriever = model, optimizer, retriever
        self.config, self.group = config, group
        self.batcher = Batcher(model, config.max_target_length, config.labels)
        # fp16 alone needs its losses scaled; the scale is part of the run's state.
        self.scaler = torch.amp.GradScaler(model.device.type, enabled=config.precision == "fp16")

    def run(self, picked: Sequence[Example]) -> Window:
        """Forward, backward and update for one window. Raises DataError where a loss is not finite."""
        self.optimizer.zero_grad(set_to_none=True)
        mine = self.group.share(picked)
        size = self.config.micro_batch_size or max(len(mine), 1)
        total, seen, alone, cut = 0.0, [], [], self.batcher.builder.n_truncated
        parts = [mine[at : at + size] for at in range(0, len(mine), size)]
        for part, retrieved in self._retrieve(parts):
            if retrieved is not None:
                seen.append(retrieved)
                alone += [e.question_id for e, ids in zip(part, retrieved.passage_ids) if not ids]
                part, retrieved = _with_passages(part, retrieved)
            if part:
                total += self._micro_batch(part, retrieved, len(picked))
        cut = self.batcher.builder.n_truncated - cut
        (total,) = self.group.sum(total)
        self.group.sum_gradients(p for group in self.optimizer.param_groups for p in group["params"])
        if not any(p.grad is not None for group in self.optimizer.param_groups for p in group["params"]):
            return Window(total, {"grad_norm": 0.0}, seen, alone, cut)
        self.scaler.unscale_(self.optimizer)
        norms = clip_gradients(self.optimizer, self.config.clip, self.scaler.is_enabled())
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return Window(total, norms, seen, alone, cut)

    def _retrieve(
        self, parts: Sequence[Sequence[Example]]
    ) -> Iterator[tuple[Sequence[Example], Retrieved | None]]:
        """Each micro-batch and what was retrieved for it, while the search for the next one goes on.

        Within a window the question encoder does not change: no search here uses a stale one.
        """
        pending = [self._start(part) for part in parts[:1]]
        for at, part in enumerate(parts):
            pending += [self._start(later) for later in parts[at + 1 : at + 2]]
            with self._autocast():
                retrieved = pending.pop(0)()
            yield part, retrieved

    def _start(self, part: Sequence[Example]) -> Callable[[], Retrieved | None]:
        if self.retriever is None:
            return lambda: None
        with self._autocast():
            return self.retriever.start([e.question for e in part], self.config.n_docs)

    def _micro_batch(self, part: Sequence[Example], retrieved: Retrieved | None, window: int) -> float:
        with self._autocast():
            contexts = self.batcher.contexts([e.question for e in part], retrieved)
            labels_BT = self.batcher.labels_BT([e.target for e in part], [e.is_label for e in part])
            loss_B = window_loss(self.model, contexts, labels_BT, self.config.label_smoothing)
        bad = [e.question_id for e, v in zip(part, loss_B.tolist()) if not math.isfinite(v)]
        if bad:
            raise DataError(
                f"loss is not finite for question {bad[0]!r} ({len(bad)} of {len(part)}); "
                "nothing was saved from this step"
            )
        loss = loss_B.sum() / window
        self.scaler.scale(loss).backward()
        return float(loss.detach())

    def _autocast(self) -> AbstractContextManager:
        if self.config.precision == "fp32":
            return nullcontext()
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[self.config.precision]
        return torch.autocast(self.model.device.type, dtype=dtype)


def _with_passages(part: Sequence[Example], retrieved: Retrieved) -> tuple[list[Example], Retrieved]:
    """The examples for which something was found, and what was found for them."""
    kept = [b for b, ids in enumerate(retrieved.passage_ids) if ids]
    if len(kept) == len(part):
        return list(part), retrieved
    return [part[b] for b in kept], Retrieved(
        [retrieved.passage_ids[b] for b in kept],
        [retrieved.passages[b] for b in kept],
        retrieved.doc_scores_BK[kept],
    )


def clip_gradients(optimizer: torch.optim.Optimizer, clip: float, scaled: bool = False) -> dict[str, float]:
    """Clip the norm over all parameters; return it, and the one into the question encoder.

    A norm that is not finite raises DataError, except under fp16 (`scaled`), where the scaler skips it.
    """
    grads: dict[str, list[torch.Tensor]] = {}
    for group in optimizer.param_groups:
        found = [p.grad for p in group["params"] if p.grad is not None]
        grads.setdefault(group["name"], []).extend(found)
    norms = {name: nn.utils.get_total_norm(found) for name, found in grads.items() if found}
    total = torch.stack(list(norms.values())).norm() if norms else torch.zeros(())
    if not torch.isfinite(total) and not scaled:
        raise DataError("a gradient is not finite; nothing was saved from this step")
    if clip > 0 and total > clip:
        torch._foreach_mul_([g for found in grads.values() for g in found], float(clip / total))
    out = {"grad_norm": float(total)}
    if "question_encoder" in norms:
        out["question_encoder_norm"] = float(norms["question_encoder"])
    return out
