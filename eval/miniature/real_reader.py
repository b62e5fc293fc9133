"""`python -m eval.miniature.real_reader`: a first figure for real sentences, whatever it is.

    python -m eval.miniature.real_reader --contexts contexts.tsv.gz --questions questions.jsonl.gz \\
        --output DIR [--generator mini-bart] [--steps 3000] [--seed 0]

A generator of fewer than six million parameters, trained from nothing (or from `--generator` on) on the
questions of some of SQuAD's articles, reads the passage of a question about the others and writes the
answer. Both files are as `beam_jobs.split --input-format tsv` and `--task squad` read them. Articles are
told apart by title: no article, and so no passage, is in two splits.

Writes `generator/` (a directory like mini-bart's), `train_log.jsonl` and `result.json`: exact match on
the test articles, its 95% interval, what was counted, recipe, seed, date, versions.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import platform
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from beam_jobs.options import Parser
from eval._intervals import wilson
from eval.miniature.guidance import Guide
from eval.miniature.mini_bart import Size, new_generator, train_tokenizer
from eval.miniature.pretrain import Batches, batch_loss, greedy
from eval.miniature.reading import Reading
from rag_core.answers import exact_match
from rag_core.corpora import read_tsv
from rag_core.datasets import load_questions
from rag_core.errors import DataError, UsageError, run_command
from rag_core.files import read_object
from rag_core.models.generator import Generator, load_generator
from rag_core.parts import PartLog
from rag_core.schemas import Question

LARGEST = 6_000_000  # parameters
TEST_ARTICLES, DEV_ARTICLES = 8, 2
# Words of the passage around the answer, and the share of the steps until which it is that short: to
# point at a place is learnt on short texts first.
WINDOWS = ((40, 0.3), (80, 0.6), (160, 1.0))
SIZE = Size(width=224, encoder_layers=4, decoder_layers=2, heads=4, feed_forward=896, vocabulary=5000)


@dataclass(frozen=True, slots=True)
class Recipe:
    """`generator`: what is trained on, a built-in name or a directory; "": a new one."""

    generator: str = ""
    seed: int = 0
    steps: int = 3000
    batch: int = 32
    learning_rate: float = 7e-4
    warm_up: int = 200
    clip: float = 1.0
    weight_decay: float = 0.05
    dropout: float = 0.1


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the article and text of its passage."""

    question: Question
    title: str
    text: str


def read_squad(contexts: Path, questions: Path, task: str = "squad") -> list[Asked]:
    """Every question with its passage. Raises DataError where a passage is missing or not readable."""
    log = PartLog()
    passages = {p.passage_id: p for p in read_tsv(str(contexts), log)}
    if log.dead:
        raise DataError(f"{log.dead[0]['record']}: {log.dead[0]['reason']}: {log.dead[0]['detail']}")
    asked = []
    for question in load_questions(str(questions), task).questions:
        gold = (question.gold_passages or ("",))[0]
        if gold not in passages:
            raise DataError(f"{contexts}: no passage {gold!r}, which question {question.question_id} names")
        asked.append(Asked(question, passages[gold].title.replace("_", " "), passages[gold].text))
    return asked


def split_by_article(asked: Sequence[Asked], seed: int) -> dict[str, list[Asked]]:
    """train, dev and test, by whole articles drawn from `seed`."""
    titles = sorted({a.title for a in asked})
    if len(titles) < TEST_ARTICLES + DEV_ARTICLES + 1:
        raise DataError(f"{len(titles)} articles; {TEST_ARTICLES} are for testing, {DEV_ARTICLES} for dev")
    random.Random(f"{seed}:articles").shuffle(titles)
    split = {t: "test" for t in titles[:TEST_ARTICLES]}
    split |= dict.fromkeys(titles[TEST_ARTICLES : TEST_ARTICLES + DEV_ARTICLES], "dev")
    out: dict[str, list[Asked]] = {"train": [], "dev": [], "test": []}
    for a in asked:
        out[split.get(a.title, "train")].append(a)
    return out


def window(text: str, answer: str, words: int, rng: random.Random) -> str | None:
    """About `words` words of `text` with `answer` at a place drawn; None where it does not stand there."""
    at = text.find(answer)
    if at < 0:
        return None
    before, after = text[:at].split(" "), text[at + len(answer) :].split(" ")
    n_before = rng.randint(0, words)
    left = " ".join(before[max(0, len(before) - 1 - n_before) :])
    right = " ".join(after[: 1 + words - n_before])
    return f"{left}{answer}{right}".strip()


def draw_batches(train: Sequence[Asked], recipe: Recipe, rng: random.Random) -> Iterator[list[Reading]]:
    """Endless batches of about equal lengths; each question once an epoch, its window drawn anew."""
    step = 0
    while True:
        words = next(w for w, until in WINDOWS if step < until * recipe.steps or until == 1.0)
        readings = []
        for a in train:
            answer = rng.choice(a.question.answers)
            text = window(a.text, answer, words, rng)
            if text is not None:
                readings.append(Reading(a.title, text, a.question.question, answer, True))
        rng.shuffle(readings)
        readings.sort(key=lambda r: len(r.text) + len(r.question) + 60 * rng.random())
        batches = [readings[i : i + recipe.batch] for i in range(0, len(readings), recipe.batch)]
        rng.shuffle(batches)
        for batch in batches:
            step += 1
            yield batch


def set_dropout(generator: Generator, share: float) -> None:
    """BART's own dropout after embeddings and sublayers; attention and activations keep theirs of 0."""
    for module in generator.modules():
        if isinstance(getattr(module, "dropout", None), float) and hasattr(module, "fc1"):
            module.dropout = share
    for stack in (generator.model.get_encoder(), generator.model.get_decoder()):
        stack.dropout = share


def train_reader(split: dict[str, list[Asked]], recipe: Recipe, log: Path) -> Generator:
    if recipe.generator:
        generator = load_generator(recipe.generator).train()
    else:
        texts = [t for a in split["train"] for t in (a.text, a.question.question)]
        generator = new_generator(train_tokenizer(texts, SIZE.vocabulary), SIZE, recipe.seed).train()
    if sum(p.numel() for p in generator.parameters()) > LARGEST:
        raise UsageError(f"a generator of more than {LARGEST:,} parameters")
    torch.manual_seed(recipe.seed)
    set_dropout(generator, recipe.dropout)
    guide, batches = Guide(generator), Batches(generator, positions(generator))
    trained = [*generator.parameters(), *guide.parameters()]
    optimizer = torch.optim.AdamW(
        trained, lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=recipe.weight_decay
    )
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: _rate(recipe, s + 1))
    drawn = draw_batches(split["train"], recipe, random.Random(f"{recipe.seed}:windows"))
    started, losses = time.monotonic(), []
    with log.open("w", encoding="utf-8") as lines:
        for step, readings in enumerate(drawn, 1):
            ids_NS, mask_NS, labels_NT, spans = batches.reading(readings)
            loss, guidance = batch_loss(generator, ids_NS, mask_NS, labels_NT, guide, spans)
            optimizer.zero_grad(set_to_none=True)
            (loss + guidance).backward()
            torch.nn.utils.clip_grad_norm_(trained, recipe.clip)
            optimizer.step()
            rate.step()
            losses.append((loss.item(), guidance.item()))
            if not math.isfinite(losses[-1][0]):
                raise FloatingPointError(f"loss {losses[-1][0]} at step {step}")
            if step % 100 == 0 or step == recipe.steps:
                row = {"step": step, "loss": round(float(np.mean([a for a, _ in losses])), 4)}
                row |= {"guidance": round(float(np.mean([b for _, b in losses])), 4)}
                if step % 500 == 0:
                    row["dev_em"] = round(float(np.mean(score(generator, split["dev"]))), 4)
                row["seconds"] = round(time.monotonic() - started, 1)
                left = row["seconds"] / step * (recipe.steps - step)
                print(json.dumps(row), f"about {left / 60:.0f} min left", flush=True)
                lines.write(json.dumps(row) + "\n")
                losses.clear()
            if step == recipe.steps:
                return generator.eval()
    raise AssertionError("batches are endless")


def positions(generator: Generator) -> int:
    return int(generator.config.max_position_embeddings)


@torch.inference_mode()
def score(generator: Generator, asked: Sequence[Asked], batch: int = 32) -> list[bool]:
    """Exact match of greedy answers from the whole passages, in the order of `asked`."""
    was_training = generator.training
    generator.eval()
    batches, right = Batches(generator, positions(generator)), [False] * len(asked)
    order = sorted(range(len(asked)), key=lambda i: len(asked[i].text))
    for at in range(0, len(order), batch):
        rows = order[at : at + batch]
        readings = [
            Reading(asked[i].title, asked[i].text, asked[i].question.question, "", False) for i in rows
        ]
        ids_NS, mask_NS, *_ = batches.reading(readings)
        for i, answer in zip(rows, greedy(generator, ids_NS, mask_NS, most=24), strict=True):
            right[i] = bool(exact_match(answer, asked[i].question.answers))
    generator.train(was_training)
    return right


def _rate(recipe: Recipe, step: int) -> float:
    """Warm-up, then linearly down to a twentieth."""
    return min(1.0, step / recipe.warm_up) * max(0.05, 1 - step / recipe.steps)


def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m eval.miniature.real_reader", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--contexts", type=Path, required=True, help="TSV of id, text, title, gzipped")
    parser.add_argument("--questions", type=Path, required=True, help="JSON lines with context_id")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument(
        "--generator", default="", metavar="NAME|DIR", help="what to begin with; default: anew"
    )
    parser.add_argument("--steps", type=int, default=Recipe().steps)
    parser.add_argument("--seed", type=int, default=Recipe().seed)
    args = parser.parse_args(argv)
    if args.steps < 1:
        raise UsageError(f"--steps {args.steps}: must be at least 1")
    if args.output.is_file():
        raise UsageError(f"--output {args.output}: a file, not a directory")
    recipe = Recipe(generator=args.generator, seed=args.seed, steps=args.steps)
    result_file = args.output / "result.json"
    if result_file.exists():
        done = read_object(str(result_file)).get("recipe")
        if not isinstance(done, dict):
            raise DataError(f"{result_file}: no result of a reader; delete it to train again")
        if done != asdict(recipe):
            raise UsageError(f"{args.output}: holds a reader of another recipe; give a new directory")
        print(f"{args.output}: already complete, nothing to do")
        return 0
    args.output.mkdir(parents=True, exist_ok=True)
    split = split_by_article(read_squad(args.contexts, args.questions), recipe.seed)
    generator = train_reader(split, recipe, args.output / "train_log.jsonl")
    generator.save(str(args.output / "generator"))
    right = score(generator, split["test"])
    low, high = wilson(sum(right), len(right))
    result = {
        "exact_match": sum(right) / len(right),
        "ci_low": low,
        "ci_high": high,
        "n": len(right),
        "questions": {name: len(rows) for name, rows in split.items()},
        "test_articles": sorted({a.title for a in split["test"]}),
        "parameters": sum(p.numel() for p in generator.parameters()),
        "recipe": asdict(recipe),
        "date": datetime.date.today().isoformat(),
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
    }
    result_file.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(f"exact match on {len(right)} questions about other articles: "
          f"{100 * result['exact_match']:.1f} [{100 * low:.1f}, {100 * high:.1f}]")  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
