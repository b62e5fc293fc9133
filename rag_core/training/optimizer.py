"""AdamW with two learning rates, and the schedules as functions of the step alone."""

from __future__ import annotations

import torch

from rag_core.models.rag_model import RagModel
from rag_core.training.config import TrainConfig


def make_optimizer(model: RagModel, config: TrainConfig) -> torch.optim.AdamW:
    """Generator and question encoder in groups of their own; biases and norms without weight decay."""
    encoder_lr = config.lr if config.question_encoder_lr is None else config.question_encoder_lr
    groups = []
    for name, module, lr in (
        ("generator", model.generator, config.lr),
        ("question_encoder", getattr(model, "question_encoder_module", None), encoder_lr),
    ):
        trained = [p for p in module.parameters() if p.requires_grad] if module is not None else []
        for decay, params in (
            (config.weight_decay, [p for p in trained if p.dim() > 1]),
            (0.0, [p for p in trained if p.dim() <= 1]),
        ):
            if params:
                groups.append(
                    {"params": params, "lr": lr, "base_lr": lr, "weight_decay": decay, "name": name}
                )
    return torch.optim.AdamW(groups, betas=(0.9, 0.999), eps=1e-8, fused=True)


def learning_rate_factor(step: int, steps: int, config: TrainConfig) -> float:
    """What the base learning rates are multiplied by in step `step` (counted from 0)."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    if config.schedule == "constant":
        return 1.0
    left = (steps - step) / max(steps - config.warmup_steps, 1)
    return max(left, 0.0)


def set_learning_rate(optimizer: torch.optim.Optimizer, factor: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = group["base_lr"] * factor
