"""Data parallel training under `torchrun`: gradients are summed, the loss is divided beforehand.

Each process takes every world-size-th example of a window. Because a loss is already divided by the
number of examples of the *whole* window, the sum over processes is its mean however unevenly they are
spread; a process without any example contributes zeros. One process alone needs none of this.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import torch
from torch import distributed as dist
from torch import nn

T = TypeVar("T")


class Group:
    """The processes of a run. `rank` 0 prints, evaluates the total and writes."""

    def __init__(self) -> None:
        self.world = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        if self.world > 1 and not dist.is_initialized():
            dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def share(self, items: Sequence[T]) -> list[T]:
        """This process's part of a window or a dev set: disjoint, nothing repeated, perhaps empty."""
        return list(items[self.rank :: self.world])

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add up gradients over processes, in place."""
        if self.world == 1:
            return
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)

    def sum(self, *values: float) -> list[float]:
        """Sums of plain numbers over processes."""
        if self.world == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        if dist.get_backend() == "nccl":
            tensor = tensor.cuda()
        dist.all_reduce(tensor)
        return tensor.tolist()

    def gather(self, value: Any) -> list[Any]:
        """Every process's value, by rank."""
        if self.world == 1:
            return [value]
        out: list[Any] = [None] * self.world
        dist.all_gather_object(out, value)
        return out

    def wait(self) -> None:
        if self.world > 1:
            dist.barrier()
