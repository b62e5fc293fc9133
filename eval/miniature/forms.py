"""`python -m eval.miniature.forms`: teach mini-bart other forms than short answers.

From the shipped weights on: whole sentences as answers, clues to an entity, claims to verify, beside
plain reading, so that nothing is forgotten. Every name is drawn afresh from the seed; nothing of an
evaluated world is ever shown. Writes a generator: config.json, model.safetensors (float16),
tokenizer.json, recipe.json, train_log.jsonl.

Claims come first, on short passages and with a high rate: to compare names is a new skill. Then every
form is read from whole passages; in a second phase, at a lower rate, sentences and clues above all.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from beam_jobs.options import Parser
from eval.miniature.form_batches import FormBatches, choose_labels, form_loss
from eval.miniature.form_readings import (
    CLAIM_SHAPES,
    WHOLE,
    FormReading,
    Shape,
    draw_claim,
    draw_clue,
    draw_question,
    draw_sentence,
)
from eval.miniature.guidance import Guide
from eval.miniature.matching import Matcher
from eval.miniature.pretrain import Batches, check, check_crowd, greedy, make_optimizer, save
from eval.miniature.reading import CURRICULUM, draw_reading
from eval.miniature.statements import LABELS
from rag_core.errors import UsageError, run_command
from rag_core.models.generator import Generator, load_generator

DATA = "eval.miniature.form_readings; names drawn afresh for every example"
DRAW: dict[str, Callable[[random.Random, Shape], FormReading]] = {
    "claim": draw_claim,
    "question": draw_question,
    "sentence": draw_sentence,
    "clue": draw_clue,
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """One phase of the training. `early`, `late`: shares of the forms in batches, while claims grow and
    from then on; `advance_at`: the share of right labels at which claims get longer passages, and
    `whole_from` that of the steps at which they are whole at the latest."""

    seed: int
    steps: int
    learning_rate: float
    decay_from: float
    advance_at: float
    whole_from: float
    early: tuple[tuple[str, float], ...]
    late: tuple[tuple[str, float], ...]
    batch: int = 32
    claims: tuple[int, ...] = (64, 48, 40, 32)  # a batch's claims, by `CLAIM_SHAPES`
    position_rate: float = 0.05
    warm_up: int = 30
    end_rate: float = 0.05
    clip: float = 1.0
    weight_decay: float = 0.01
    check_every: int = 25
    check_size: int = 96
    last_check: int = 128


FIRST_PHASE = 0.75  # of the steps


def make_recipes(steps: int, seed: int) -> tuple[Recipe, ...]:
    """Claims first, the other forms beside them; then a lower rate, and sentences and clues above all."""
    first = Recipe(
        seed=seed,
        steps=max(1, round(steps * FIRST_PHASE)),
        learning_rate=1.2e-3,
        decay_from=0.4,
        advance_at=0.85,
        whole_from=0.5,
        early=(("claim", 0.88), ("reading", 0.12)),
        late=(("claim", 0.35), ("reading", 0.2), ("question", 0.15), ("sentence", 0.15), ("clue", 0.15)),
    )
    second = replace(
        first,
        seed=seed + 1,
        steps=steps - first.steps,
        learning_rate=6e-4,
        decay_from=0.3,
        whole_from=0.0,
        late=(("claim", 0.25), ("reading", 0.17), ("question", 0.08), ("sentence", 0.2), ("clue", 0.3)),
    )
    return tuple(recipe for recipe in (first, second) if recipe.steps)


class Source:
    """Batches of one form at a time, of about equal lengths, from an endless stream."""

    def __init__(self, rng: random.Random, recipe: Recipe) -> None:
        self._rng, self._recipe = rng, recipe
        self._pools: dict[tuple[str, int], list[list[FormReading]]] = {}

    def next(self, shares: tuple[tuple[str, float], ...], at: int) -> list[FormReading]:
        """A batch of a form drawn by `shares`; claims are of the shape `at`, or an earlier one."""
        forms, weights = zip(*shares)
        (form,) = self._rng.choices(forms, weights)
        if at and self._rng.random() < 0.2:
            at = self._rng.randrange(at)
        key = (form, at if form == "claim" else 0)
        if not self._pools.get(key):
            self._pools[key] = self._pool(*key)
        return self._pools[key].pop()

    def _pool(self, form: str, at: int, batches: int = 6) -> list[list[FormReading]]:
        size = self._recipe.claims[at] if form == "claim" else self._recipe.batch
        readings = [draw(form, self._rng, at) for _ in range(size * batches)]
        readings.sort(key=lambda r: len(r.text) + len(r.question))
        pool = [readings[i : i + size] for i in range(0, len(readings), size)]
        self._rng.shuffle(pool)
        return pool


def draw(form: str, rng: random.Random, at: int = len(CLAIM_SHAPES) - 1) -> FormReading:
    """One reading of a form; "reading" is what mini-bart was pretrained on."""
    if form == "reading":
        plain = draw_reading(rng, CURRICULUM[-1])
        copied = (plain.answer,) if plain.holds else ()
        return FormReading(plain.title, plain.text, plain.question, plain.answer, copied)
    return DRAW[form](rng, CLAIM_SHAPES[at] if form == "claim" else WHOLE)


def rate(recipe: Recipe, step: int) -> float:
    """The learning rate's factor at a step (from 1): warm-up, level, then a linear fall to `end_rate`."""
    level_end = recipe.steps * recipe.decay_from
    fall = min(1.0, max(0.0, step - level_end) / max(1.0, recipe.steps - level_end))
    return min(1.0, step / recipe.warm_up) * (1 - (1 - recipe.end_rate) * fall)


def check_claims(
    generator: Generator, batches: FormBatches, rng: random.Random, shape: Shape, n: int
) -> dict[str, float]:
    """Share of right labels, in all and by label, of claims about the passage's own entity."""
    own = replace(shape, beside=0.0)
    readings = [draw_claim(rng, own) for _ in range(n)]
    right = np.array([a == r.target for a, r in zip(choose_labels(generator, batches, readings), readings)])
    by_label = {
        label: round(float(right[[r.target == label for r in readings]].mean()), 3) for label in LABELS
    }
    return {"accuracy": round(float(right.mean()), 4), **by_label}


def check_form(generator: Generator, batches: FormBatches, rng: random.Random, form: str, n: int) -> float:
    """Exact match of greedy answers from passages that hold all that the target says."""
    own = replace(WHOLE, parts=0.0 if form == "clue" else WHOLE.parts, beside=0.0)
    readings = [DRAW[form](rng, own) for _ in range(n)]
    batch = batches.build(readings)
    answers = greedy(generator, batch.ids_NS, batch.mask_NS, most=36)
    return round(float(np.mean([a == r.target for a, r in zip(answers, readings)])), 4)


def final_checks(generator: Generator, seed: int, n: int) -> dict[str, float]:
    """Every form on entities drawn afresh, and what mini-bart could before."""
    rng = random.Random(f"{seed}:form checks")
    batches, plain = FormBatches(generator), Batches(generator)
    out = {f"claims {k}": v for k, v in check_claims(generator, batches, rng, CLAIM_SHAPES[-1], n).items()}
    out |= {f"claims in parts {k}": v for k, v in check_claims(generator, batches, rng, WHOLE, n).items()}
    out |= {form: check_form(generator, batches, rng, form, n) for form in ("question", "sentence", "clue")}
    out["em"] = check(generator, plain, rng, CURRICULUM[-1], n)
    out["em_crowd"] = check_crowd(generator, plain, rng, n // 2)
    return out


def teach_forms(generator: Generator, recipe: Recipe, log: Callable[[dict], None]) -> Generator:
    """One phase; `log` gets one dict per check."""
    generator.train()
    torch.manual_seed(recipe.seed)
    batches, guide, matcher = FormBatches(generator), Guide(generator), Matcher(generator)
    others = [*guide.parameters(), *matcher.parameters()]
    optimizer = make_optimizer(
        generator, others, recipe.learning_rate, recipe.position_rate, recipe.weight_decay
    )
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: rate(recipe, s + 1))
    source = Source(random.Random(f"{recipe.seed}:forms"), recipe)
    check_rng = random.Random(f"{recipe.seed}:claim checks")
    at, last = 0, len(CLAIM_SHAPES) - 1
    losses: list[float] = []
    guidances: list[float] = []
    for step in range(1, recipe.steps + 1):
        if step > recipe.whole_from * recipe.steps:
            at = last
        shares = recipe.late if at == last else recipe.early
        loss, guidance = form_loss(generator, batches.build(source.next(shares, at)), guide, matcher)
        optimizer.zero_grad(set_to_none=True)
        (loss + guidance).backward()
        torch.nn.utils.clip_grad_norm_([*generator.parameters(), *others], recipe.clip)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        guidances.append(guidance.item())
        if not math.isfinite(losses[-1]):
            raise FloatingPointError(f"loss {losses[-1]} at step {step}")
        if step % recipe.check_every == 0 or step == recipe.steps:
            generator.eval()
            row = {"step": step, "shape": at, "loss": round(float(np.mean(losses)), 4)}
            row["guidance"] = round(float(np.mean(guidances)), 4)
            row |= check_claims(generator, batches, check_rng, CLAIM_SHAPES[at], recipe.check_size)
            if row["accuracy"] >= recipe.advance_at:
                at = min(at + 1, last)
            log(row)
            generator.train()
            losses.clear()
            guidances.clear()
    return generator.eval()


def main(argv: list[str] | None = None) -> int:
    parser = Parser(prog="python -m eval.miniature.forms", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--output", type=Path, required=True, help="a directory; a generator for --generator")
    parser.add_argument("--generator", default="mini-bart", metavar="DIR|NAME", help="what to begin with")
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    if args.steps < 1:
        raise UsageError(f"--steps {args.steps}: must be at least 1")
    if args.output.is_file():
        raise UsageError(f"--output {args.output}: a file, not a directory")
    recipes = make_recipes(args.steps, args.seed)
    training = {"generator": args.generator, "phases": [asdict(r) for r in recipes], "data": DATA}
    if finished(args.output, training):
        print(f"this generator is in {args.output} already")
        return 0
    generator = load_generator(args.generator)
    args.output.mkdir(parents=True, exist_ok=True)
    rows: list[dict] = []
    started = time.monotonic()

    def log(phase: str, row: dict) -> None:
        rows.append({"phase": phase, **row, "seconds": round(time.monotonic() - started, 1)})
        print(json.dumps(rows[-1]), flush=True)

    for phase, recipe in zip(("first", "second"), recipes):
        generator = teach_forms(generator, recipe, partial(log, phase))
    log("last check", final_checks(generator, args.seed, recipes[0].last_check))
    save(generator, training, args.output, rows)
    print(f"generator written to {args.output}; next: python -m rag_core.train --generator {args.output}")
    return 0


def finished(output: Path, training: dict) -> bool:
    """Whether the same training has been written there whole."""
    recipe, log = output / "recipe.json", output / "train_log.jsonl"
    if not (recipe.exists() and log.exists()):
        return False
    written = json.loads(recipe.read_text(encoding="utf-8"))
    wanted = json.loads(json.dumps(training))
    return {key: written.get(key) for key in wanted} == wanted


if __name__ == "__main__":
    raise SystemExit(run_command(main))
