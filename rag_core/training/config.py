"""`TrainConfig`: every setting of a training run; defaults < preset < config file < command line."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from rag_core import files
from rag_core.errors import UsageError

PRESETS = Path(__file__).parents[1] / "presets"
SCHEDULES = ("linear", "constant")
LEAST = {
    **dict.fromkeys(("batch_size", "n_docs", "max_context_length", "max_target_length", "log_every"), 1),
    **dict.fromkeys(("steps", "epochs", "micro_batch_size", "warmup_steps", "seed", "eval_every"), 0),
    **dict.fromkeys(("dev_limit", "patience", "save_every", "lr", "question_encoder_lr"), 0),
    **dict.fromkeys(("weight_decay", "clip", "label_smoothing", "dropout", "question_encoder_dropout"), 0),
}
BELOW_ONE = ("label_smoothing", "dropout", "question_encoder_dropout")
TARGETS = ("first", "each", "found", "regex")


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """Settings by name; the command line has one option for each (`--batch-size`).

    batch_size counts questions per step over all processes; micro_batch_size how many of them go
    through the model at once (0: all). Learning rates: `lr` for the generator, `question_encoder_lr`
    for the question encoder (None: the same). targets: see `rag_core.training.targets`; "found" and
    "regex" look into the passages of `answers_from`, a run of beam_jobs.retrieve. labels: the answers
    of a classification task; one token of each is trained. A `steps` of 0 means `epochs` decides.
    """

    preset: str | None = None
    task: str = "custom"
    questions: str = ""
    output: str = ""
    dev: str | None = None
    kind: str = "token"
    generator: str = "mini-bart"
    question_encoder: str = "minilm"
    freeze_question_encoder: bool = False
    retriever: str = "dense"
    closed_book: bool = False
    embeddings: str | None = None
    index: str | None = None
    passages: str | None = None

    steps: int = 0
    epochs: float = 0.0
    batch_size: int = 64
    micro_batch_size: int = 0
    n_docs: int = 5
    seed: int = 0
    targets: str = "first"
    answers_from: str | None = None
    max_context_length: int = 300
    max_target_length: int = 64
    labels: tuple[str, ...] = ()

    lr: float = 3e-5
    question_encoder_lr: float | None = None
    schedule: str = "linear"
    warmup_steps: int = 500
    weight_decay: float = 0.001
    clip: float = 0.1
    label_smoothing: float = 0.0
    dropout: float | None = None
    question_encoder_dropout: float | None = None
    precision: str = "fp32"
    gradient_checkpointing: bool = False

    eval_every: int = 0
    dev_limit: int = 0
    patience: int = 0
    save_every: int = 500
    log_every: int = 10
    tensorboard: bool = False

    def __post_init__(self) -> None:
        for name, allowed in (
            ("kind", ("sequence", "token")),
            ("retriever", ("dense", "bm25")),
            ("schedule", SCHEDULES),
            ("precision", ("fp32", "bf16", "fp16")),
            ("targets", TARGETS),
        ):
            if getattr(self, name) not in allowed:
                raise UsageError(f"{name} {getattr(self, name)!r}; right: {', '.join(allowed)}")
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is None:
                continue
            if not math.isfinite(value) or value < least:
                raise UsageError(f"{name} {value}; right: at least {least}")
            if name in BELOW_ONE and value >= 1:
                raise UsageError(f"{name} {value}; right: below 1")
        object.__setattr__(self, "labels", tuple(self.labels))
        if len(set(self.labels)) < len(self.labels):
            raise UsageError(f"labels {self.labels}; right: distinct ones")

    def check(self) -> None:
        """Refuse a run that cannot start: what is missing, before anything is loaded."""
        if not self.output:
            raise UsageError("--output DIR is needed")
        if not self.questions:
            raise UsageError("--questions FILE is needed")
        if self.steps < 1 and self.epochs <= 0:
            raise UsageError("no training step to make: give --steps or --epochs")
        if self.targets in ("found", "regex") and not (self.answers_from and self.passages):
            raise UsageError(f"targets {self.targets!r} need --answers-from RETRIEVED_DIR and --passages DIR")
        if self.closed_book:
            return
        if self.passages is None:
            raise UsageError("--passages DIR is needed (or --closed-book)")
        if self.retriever == "bm25" and self.index is None:
            raise UsageError("--retriever bm25 needs --index DIR (beam_jobs.index --kind bm25)")
        if self.retriever == "dense" and (self.index is None) == (self.embeddings is None):
            raise UsageError("dense retrieval needs one of --embeddings DIR and --index DIR")

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "labels": list(self.labels)}


def resolve(layers: list[Mapping[str, Any]]) -> TrainConfig:
    """Merge layers, later ones winning. A layer's `preset` puts that preset beneath it; unknown keys fail."""
    merged: dict[str, Any] = {}
    for name in (layer.get("preset") for layer in layers):
        if name is not None:
            merged.update(load_preset(name))
    for layer in layers:
        merged.update(layer)
    known = {f.name: f for f in fields(TrainConfig)}
    for key in merged:
        if key not in known:
            raise UsageError(f"unknown training option {key!r}; known: {', '.join(sorted(known))}")
    return TrainConfig(**{k: _typed(known[k].type, k, v) for k, v in merged.items()})


def load_preset(name: str, table: str = "train") -> dict[str, Any]:
    """One table of a preset, a file of `rag_core/presets`, by its name: train, generate, generate_token.

    Empty where the preset has no such table. Raises UsageError for an unknown name.
    """
    names = sorted(p.stem for p in PRESETS.glob("*.toml"))
    if name not in names:
        raise UsageError(f"unknown preset {name!r}; presets: {', '.join(names)}")
    return tomllib.loads((PRESETS / f"{name}.toml").read_text()).get(table, {})


def load_file(path: str) -> dict[str, Any]:
    """A config file, TOML or JSON: its `[train]` table, or the file itself where it has none.

    Beside `[train]` only `[generate]` and `[generate_token]` may stand, as in a preset. Raises UsageError
    for anything else.
    """
    values = files.read_json(path) if path.endswith(".json") else files.read_toml(path)
    if not isinstance(values, dict):
        raise UsageError(f"{path}: expected settings by name, found {type(values).__name__}")
    if "train" not in values:
        return values
    if stray := sorted(set(values) - {"train", "generate", "generate_token"}):
        raise UsageError(f"{path}: {stray[0]!r} stands outside [train], where it would not be read")
    if not isinstance(values["train"], dict):
        raise UsageError(f"{path}: train {values['train']!r}; right: a table of settings")
    return values["train"]


def _typed(annotation: str, name: str, value: Any) -> Any:
    """The value as its field's type; a number may be written as an integer, nothing else converts."""
    wanted = annotation.split(" | ")
    if value is None and "None" in wanted:
        return None
    if "float" in wanted and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    kinds = {"int": int, "float": float, "str": str, "bool": bool}
    if annotation.startswith("tuple"):
        if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
            return tuple(value)
    elif any(w in kinds and type(value) is kinds[w] for w in wanted):
        return value
    raise UsageError(f"option {name}: {value!r} is not {annotation}")
