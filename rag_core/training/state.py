"""The state of a run: what is needed to go on as if nothing had happened.

Safetensors for tensors, JSON for the rest, no pickle. A state directory is written under another name,
its weights first and `state.json` last, then renamed; a directory without `state.json` is no state.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from rag_core import files
from rag_core.checkpoints.store import replaced_directory
from rag_core.errors import DataError, UsageError
from rag_core.training.distributed import Group

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # the disk, the user's share, the largest file allowed
_NAME = re.compile(r"^step-(\d+)$")


def save_state(
    directory: Path, model: nn.Module, optimizer: torch.optim.Optimizer, group: Group, values: dict[str, Any]
) -> None:
    """Write `directory/step-N` whole or not at all, then drop the older states.

    Raises UsageError naming the disk's complaint and the last whole state, which stays.
    """
    random_states = group.gather(_rng_states())
    if group.is_main:
        name = f"step-{values['step']:08d}"
        try:
            _write(str(directory / name), model, optimizer, random_states, values)
        except (OSError, SafetensorError) as error:
            left = last_state(directory)
            raise UsageError(f"{directory / name}: could not be saved ({error}); {left}") from error
        for old in directory.iterdir():
            if old.name != name:
                shutil.rmtree(old, ignore_errors=True)
    group.wait()


def _write(path: str, model, optimizer, random_states, values: dict[str, Any]) -> None:
    with replaced_directory(path) as attempt:
        save_file(_untied(model), f"{attempt}/weights.safetensors")
        save_file(_optimizer_tensors(optimizer), f"{attempt}/optimizer.safetensors")
        for rank, states in enumerate(random_states):
            save_file(states, f"{attempt}/rng-{rank}.safetensors")
        with open(f"{attempt}/state.json", "w") as stream:
            json.dump(values, stream)
            stream.flush()
            os.fsync(stream.fileno())


def latest_state(directory: Path) -> Path | None:
    """The newest complete state, or None. Directories without `state.json` are passed over."""
    if not directory.is_dir():
        return None
    found = [
        (int(m.group(1)), p)
        for p in directory.iterdir()
        if (m := _NAME.match(p.name)) and (p / "state.json").is_file()
    ]
    return max(found)[1] if found else None


def last_state(directory: Path) -> str:
    """Where a run whose writing failed goes on from, in words."""
    whole = latest_state(directory)
    return f"the last whole state is {whole}" if whole else "there is no earlier state"


def is_full(error: Exception) -> bool:
    """Whether a write failed because the disk, or the user's share of it, is full."""
    if isinstance(error, OSError) and error.errno in FULL:
        return True
    return any(os.strerror(code) in str(error) for code in FULL)


def load_state(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, group: Group
) -> dict[str, Any]:
    """Restore weights, optimiser and this process's random streams in place; return the rest.

    Raises DataError when the state is another model's, or another number of processes'.
    """
    weights = _read(path / "weights.safetensors")
    current = model.state_dict()
    if set(weights) != set(_untied(model)) or any(weights[n].shape != current[n].shape for n in weights):
        raise DataError(f"{path}: the weights are another model's")
    model.load_state_dict(weights, strict=False)
    _restore_optimizer(optimizer, _read(path / "optimizer.safetensors"), path)
    if len(list(path.glob("rng-*.safetensors"))) != group.world:
        raise DataError(f"{path}: written by another number of processes than the {group.world} of this run")
    _restore_rng(_read(path / f"rng-{group.rank}.safetensors"))
    return files.read_json(str(path / "state.json"))


def _read(path: Path) -> dict[str, torch.Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path}: cannot be read ({error}); remove {path.parent} to begin anew") from error


def _untied(model: nn.Module) -> dict[str, torch.Tensor]:
    """The state dict with every piece of memory once, under its first name."""
    seen: dict[int, str] = {}
    state = model.state_dict()
    for name in sorted(state):
        seen.setdefault(state[name].data_ptr(), name)
    return {name: state[name].contiguous() for name in seen.values()}


def _parameters(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    tensors = {}
    for i, parameter in enumerate(_parameters(optimizer)):
        for name, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{i}.{name}"] = value.detach().contiguous()
    return tensors


def _restore_optimizer(
    optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor], path: Path
) -> None:
    parameters = _parameters(optimizer)
    for key, value in tensors.items():
        index, _, name = key.partition(".")
        if int(index) >= len(parameters):
            raise DataError(
                f"{path}: optimiser state for {index} parameters, the model has {len(parameters)}"
            )
        parameter = parameters[int(index)]
        optimizer.state[parameter][name] = value.to(parameter.device) if name != "step" else value


def _rng_states() -> dict[str, torch.Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"cuda.{i}": s for i, s in enumerate(torch.cuda.get_rng_state_all())}
    return states


def _restore_rng(states: dict[str, torch.Tensor]) -> None:
    torch.set_rng_state(states["cpu"])
    cuda = [states[f"cuda.{i}"] for i in range(len(states) - 1)]
    if cuda and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(cuda)
