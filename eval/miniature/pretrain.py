"""`python -m eval.miniature.pretrain`: train mini-bart from nothing on generated text.

Writes config.json, model.safetensors (float16), tokenizer.json, recipe.json and train_log.jsonl.
Every name is drawn afresh from the seed; nothing of an evaluated world (`eval.miniature.world`
draws from other random streams) is ever shown.
"""

from __future__ import annotations

import copy
import datetime
import hashlib
import json
import math
import platform
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import tokenizers
import torch
import transformers
from torch import nn
from torch.nn import functional as F

from beam_jobs.options import Parser
from eval.miniature.guidance import Guide, Spans, find_spans
from eval.miniature.mini_bart import MASK, PAD, Size, new_generator, train_tokenizer
from eval.miniature.reading import (
    CURRICULUM,
    Reading,
    Stage,
    draw_crowd,
    draw_denoising,
    draw_reading,
    sample_texts,
)
from rag_core.errors import UsageError, run_command
from rag_core.models.context import ContextBuilder, ContextFormat, pad_rows
from rag_core.models.generator import Generator
from rag_core.schemas import Passage

LARGEST = 6_000_000  # parameters
SAVE_EVERY = 250  # steps; what has been learnt so far is always on disk


@dataclass(frozen=True, slots=True)
class Recipe:
    seed: int = 1
    steps: int = 6000
    batch: int = 32
    learning_rate: float = 7e-4
    position_rate: float = 0.05  # of the learning rate, for the tables of positions
    warm_up: int = 200
    decay_from: float = 0.5  # share of the steps after which the rate falls, linearly, to a tenth
    clip: float = 1.0
    weight_decay: float = 0.01
    earlier: float = 0.2  # share of examples drawn from the stage before
    check_every: int = 100
    tokenizer_texts: int = 4000
    vocabulary: int = 3000


class Batches:
    """Examples as tensors. N rows, S input tokens, T target tokens."""

    def __init__(self, generator: Generator, max_length: int = ContextFormat().max_length) -> None:
        self.layout, self.tokenizer = generator.layout, generator.tokenizer
        self.contexts = ContextBuilder(self.tokenizer, ContextFormat(max_length=max_length), cache=0)

    def reading(self, readings: list[Reading]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Spans]:
        rows = [self.contexts.build([Passage("", r.title, r.text)], r.question)[0] for r in readings]
        answers = self.tokenizer.encode([r.answer for r in readings])
        spans = find_spans(rows, answers, [r.holds for r in readings])
        return (*pad_rows(rows, PAD), self.labels([r.answer for r in readings]), spans)

    def denoising(self, pairs: list[tuple[str, str]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        before, after = self.tokenizer.before, self.tokenizer.after
        rows = []
        for noised, _ in pairs:
            pieces = noised.split("<mask>")
            ids = list(before)
            for i, part in enumerate(self.tokenizer.encode(pieces)):
                ids += [MASK] * (i > 0) + (part if pieces[i].strip() else [])
            rows.append(ids + list(after))
        return (*pad_rows(rows, PAD), self.labels([whole for _, whole in pairs]))

    def labels(self, texts: list[str]) -> torch.Tensor:
        return self.layout.batch([self.layout.row(ids) for ids in self.tokenizer.encode(texts)])


def batch_loss(
    generator: Generator,
    ids_NS: torch.Tensor,
    mask_NS: torch.Tensor,
    labels_NT: torch.Tensor,
    guide: Guide | None = None,
    spans: Spans | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(mean negative log-likelihood of every scored token, the guide's loss or 0)."""
    states_NSD = generator.encode(ids_NS, mask_NS)
    hidden_NTD = generator.decode(states_NSD, mask_NS, labels_NT[:, :-1])
    logits_NTV = generator.project(hidden_NTD)
    nll = F.cross_entropy(logits_NTV.flatten(0, 1), labels_NT[:, 1:].flatten(), ignore_index=PAD)
    if guide is None or spans is None:
        return nll, torch.zeros(())
    return nll, guide(states_NSD, mask_NS, spans)


@torch.no_grad()
def greedy(
    generator: Generator, ids_NS: torch.Tensor, mask_NS: torch.Tensor, crowd: int = 1, most: int = 16
) -> list[str]:
    """Greedy answers; with `crowd` > 1 each run of so many rows votes, as RAG-Token with a flat prior."""
    layout = generator.layout
    states_NSD = generator.encode(ids_NS, mask_NS)
    n = len(ids_NS) // crowd
    out_NT = torch.full((n, 1), layout.start)
    for _ in range(most):
        hidden = generator.decode(states_NSD, mask_NS, out_NT.repeat_interleave(crowd, 0))[:, -1]
        probs = generator.project(hidden).softmax(-1).view(n, crowd, -1).mean(1)
        out_NT = torch.cat([out_NT, probs.argmax(-1, keepdim=True)], 1)
        if (out_NT == layout.eos).any(1).all():
            break
    return [generator.tokenizer.decode(layout.text_ids(row)) for row in out_NT.tolist()]


def check(generator: Generator, batches: Batches, rng: random.Random, stage: Stage, n: int = 64) -> float:
    """Exact match of greedy answers where the passage holds the answer."""
    readings = []
    while len(readings) < n:
        reading = draw_reading(rng, stage)
        if reading.holds:
            readings.append(reading)
    ids_NS, mask_NS, *_ = batches.reading(readings)
    answers = greedy(generator, ids_NS, mask_NS)
    return float(np.mean([a == r.answer for a, r in zip(answers, readings)]))


def check_crowd(generator: Generator, batches: Batches, rng: random.Random, n: int = 64) -> float:
    """Exact match over five namesakes' whole passages, no retrieval score to help."""
    crowds = []
    while len(crowds) < n:
        crowd = draw_crowd(rng, CURRICULUM[-1], 5)
        if len(crowd) == 5:
            crowds.append(crowd)
    ids_NS, mask_NS, *_ = batches.reading([r for crowd in crowds for r in crowd])
    answers = greedy(generator, ids_NS, mask_NS, crowd=5)
    return float(np.mean([a == crowd[0].answer for a, crowd in zip(answers, crowds)]))


def draw_pool(rng: random.Random, recipe: Recipe, at: int, batches: int = 8) -> list[list[Reading]]:
    """Batches of about equal lengths, so that little is spent on padding, in random order."""
    stages = (CURRICULUM[max(0, at - 1)], CURRICULUM[at])
    readings = [
        draw_reading(rng, stages[rng.random() >= recipe.earlier]) for _ in range(recipe.batch * batches)
    ]
    readings.sort(key=lambda r: len(r.text) + len(r.question))
    pool = [readings[i : i + recipe.batch] for i in range(0, len(readings), recipe.batch)]
    rng.shuffle(pool)
    return pool


def rate(recipe: Recipe, step: int) -> float:
    """The learning rate's factor at a step (from 1): warm-up, level, then a linear fall to a tenth."""
    level_end = recipe.steps * recipe.decay_from
    fall = max(0.0, (step - level_end) / max(1.0, recipe.steps - level_end))
    return min(1.0, step / recipe.warm_up) * (1 - 0.9 * min(1.0, fall))


def make_optimizer(
    generator: Generator,
    others: Iterable[nn.Parameter],
    learning_rate: float,
    position_rate: float,
    weight_decay: float,
) -> torch.optim.AdamW:
    """AdamW over the generator and `others`; the tables of positions move at a share of the rate, so
    that positions not yet seen stay like those that were."""
    positions = [p for n, p in generator.named_parameters() if "embed_positions" in n]
    rest = [p for p in generator.parameters() if not any(p is q for q in positions)]
    groups = [{"params": positions, "lr": learning_rate * position_rate}, {"params": [*rest, *others]}]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.98), weight_decay=weight_decay)


def pretrain(
    recipe: Recipe,
    size: Size,
    log: Callable[[dict, Generator], None],
) -> Generator:
    """Train from the seed; `log` gets one dict per check, and the generator as it stands."""
    tokenizer = train_tokenizer(sample_texts(recipe.seed, recipe.tokenizer_texts), recipe.vocabulary)
    generator = new_generator(tokenizer, size, recipe.seed).train()
    n_parameters = sum(p.numel() for p in generator.parameters())
    if n_parameters > LARGEST:
        raise ValueError(f"{n_parameters} parameters; mini-bart has at most {LARGEST}")
    batches = Batches(generator)
    guide = Guide(generator)
    trained = [*generator.parameters(), *guide.parameters()]
    optimizer = make_optimizer(
        generator, guide.parameters(), recipe.learning_rate, recipe.position_rate, recipe.weight_decay
    )
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: rate(recipe, s + 1))
    rng = random.Random(f"{recipe.seed}:reading")
    check_rng = random.Random(f"{recipe.seed}:checks")
    pool: list[list[Reading]] = []
    at, losses, guidances, started = 0, [], [], time.monotonic()
    for step in range(1, recipe.steps + 1):
        stage = CURRICULUM[at]
        if step % stage.denoise_every == 0:
            spans = None
            batch = batches.denoising([draw_denoising(rng, stage) for _ in range(recipe.batch)])
        else:
            if not pool:
                pool = draw_pool(rng, recipe, at)
            *batch, spans = batches.reading(pool.pop())
        loss, guidance = batch_loss(generator, *batch, guide, spans)
        optimizer.zero_grad(set_to_none=True)
        (loss + guidance).backward()
        torch.nn.utils.clip_grad_norm_(trained, recipe.clip)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        if spans is not None:
            guidances.append(guidance.item())
        if not math.isfinite(losses[-1]):
            raise FloatingPointError(f"loss {losses[-1]} at step {step}")
        if step % recipe.check_every == 0 or step == recipe.steps:
            generator.eval()
            em = check(generator, batches, check_rng, stage)
            row = {"step": step, "stage": stage.name, "loss": round(float(np.mean(losses)), 4), "em": em}
            row["guidance"] = round(float(np.mean(guidances)), 4)
            if at == len(CURRICULUM) - 1 and (step % 250 == 0 or step == recipe.steps):
                row["em_crowd"] = check_crowd(generator, batches, check_rng)
            row["seconds"] = round(time.monotonic() - started, 1)
            log(row, generator)
            generator.train()
            losses.clear()
            guidances.clear()
            if em >= stage.advance_at:
                at, pool = at + 1, []
    return generator.eval()


def data_hash(recipe: Recipe) -> str:
    """SHA-256 of the first thousand reading examples of the last stage: what the seed stands for."""
    rng = random.Random(f"{recipe.seed}:reading")
    digest = hashlib.sha256()
    for _ in range(1000):
        digest.update(json.dumps(asdict(draw_reading(rng, CURRICULUM[-1]))).encode())
    return digest.hexdigest()


def described(recipe: Recipe, size: Size) -> dict:
    """What recipe.json says of the training, beside what `save` adds."""
    return {
        "recipe": asdict(recipe),
        "size": asdict(size),
        "curriculum": [asdict(stage) for stage in CURRICULUM],
        "data": "eval.miniature.reading; names drawn afresh for every example",
        "data_sha256": data_hash(recipe),
    }


def save(generator: Generator, training: dict, output: Path, rows: list[dict]) -> None:
    """Write the generator in float16, recipe.json (`training` and what made it) and the log's rows."""
    (output / "recipe.json").unlink(missing_ok=True)  # it vouches for the weights: last to come, first to go
    half = copy.deepcopy(generator.model).half()
    Generator(half, generator.layout, generator.tokenizer).save(str(output))
    about = {
        **training,
        "parameters": sum(p.numel() for p in generator.parameters()),
        "weights_sha256": hashlib.sha256((output / "model.safetensors").read_bytes()).hexdigest(),
        "date": datetime.date.today().isoformat(),
        "seconds": rows[-1]["seconds"],
        "threads": torch.get_num_threads(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "tokenizers": tokenizers.__version__,
        },
    }
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (output / "train_log.jsonl").write_text(lines, encoding="utf-8")
    (output / "recipe.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    parser = Parser(prog="python -m eval.miniature.pretrain", description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args(argv)
    for option, value in (("--steps", args.steps), ("--batch", args.batch)):
        if value < 1:
            raise UsageError(f"{option} {value}: must be at least 1")
    if args.output.is_file():
        raise UsageError(f"--output {args.output}: a file, not a directory")
    args.output.mkdir(parents=True, exist_ok=True)
    recipe = Recipe(seed=args.seed, steps=args.steps, batch=args.batch)
    size = Size(vocabulary=recipe.vocabulary)
    rows: list[dict] = []

    def log(row: dict, generator: Generator) -> None:
        rows.append(row)
        if row["step"] % SAVE_EVERY == 0:
            save(generator, described(recipe, size), args.output, rows)
        left = row["seconds"] / row["step"] * (recipe.steps - row["step"])
        print(json.dumps(row), f"about {left / 60:.0f} min left", flush=True)

    generator = pretrain(recipe, size, log)
    save(generator, described(recipe, size), args.output, rows)
    print(f"mini-bart written to {args.output}")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
