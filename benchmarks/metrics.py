"""Metrics against the tools whose values they give: rouge-score, sacrebleu, and SQuAD's plain loops.

    python -m benchmarks.metrics [--examples 100000]

One JSON line for each metric and one for all together. Both sides score the same generated examples
(answers of a few words for exact match and F1, sentences for BLEU-1 and ROUGE-L; one to three references)
in one thread, by turns in blocks, and processor seconds are counted, so that a busy machine slows both
alike. Values are compared for every example (for BLEU-1, which pools, for every block).
"""

from __future__ import annotations

import argparse
import json
import random
import re
import string
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from eval.metrics import compute

BLOCK = 5000
Examples = tuple[list[str], list[list[str]]]


def squad_normalize(text: str) -> str:
    """The official normalisation, step by step."""
    punctuation = set(string.punctuation)
    text = "".join(character for character in text.lower() if character not in punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def squad_exact_match(predictions: list[str], references: list[list[str]]) -> list[float]:
    return [
        max(float(squad_normalize(prediction) == squad_normalize(r)) for r in answers)
        for prediction, answers in zip(predictions, references)
    ]


def squad_f1(predictions: list[str], references: list[list[str]]) -> list[float]:
    return [max(_f1(p, r) for r in answers) for p, answers in zip(predictions, references)]


def _f1(prediction: str, reference: str) -> float:
    ours, gold = squad_normalize(prediction).split(), squad_normalize(reference).split()
    common = sum((Counter(ours) & Counter(gold)).values())
    if not common:
        return 0.0
    precision, recall = common / len(ours), common / len(gold)
    return 2 * precision * recall / (precision + recall)


def sacrebleu_bleu1(predictions: list[str], references: list[list[str]]) -> list[float]:
    import sacrebleu

    streams = [[r[i] if i < len(r) else None for r in references] for i in range(3)]
    return [sacrebleu.BLEU(max_ngram_order=1, force=True).corpus_score(predictions, streams).score / 100]


def rouge_score_rouge_l(predictions: list[str], references: list[list[str]]) -> list[float]:
    from rouge_score import rouge_scorer

    scorer = rouge_scorer.RougeScorer(["rougeL"])
    return [scorer.score_multi(r, p)["rougeL"].fmeasure for p, r in zip(predictions, references)]


def ours(name: str) -> Callable[[list[str], list[list[str]]], list[float]]:
    def score(predictions: list[str], references: list[list[str]]) -> list[float]:
        found = compute(name, predictions, references)
        return [found.value] if name == "bleu1" else found.per_example

    return score


CASES: dict[str, tuple[str, Callable[..., list[float]], str]] = {
    "exact_match": ("squad_loop", squad_exact_match, "answers"),
    "f1": ("squad_loop", squad_f1, "answers"),
    "bleu1": ("sacrebleu", sacrebleu_bleu1, "sentences"),
    "rouge_l": ("rouge_score", rouge_score_rouge_l, "sentences"),
}


def examples(kind: str, n: int, seed: int = 0) -> Examples:
    """Seeded texts: a heavy-tailed vocabulary, capitals, numbers, punctuation, a few accents."""
    rng = random.Random(f"{kind}-{seed}")
    words = [*"the of a in and to was is for on".split()] * 60
    words += ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(3, 9))) for _ in range(3000)]
    words += [str(rng.randint(1, 2025)) for _ in range(60)]
    words += ["3,000", "U.S.", "café", "state-of-the-art"] * 3
    low, high = (1, 5) if kind == "answers" else (6, 22)

    def text() -> str:
        chosen = rng.choices(words, k=rng.randint(low, high))
        end = rng.choice((".", "", "?", "")) if kind == "sentences" else ""
        return " ".join(chosen).capitalize() + end

    references = [[text() for _ in range(rng.randint(1, 3))] for _ in range(n)]
    predictions = []
    for golds in references:
        if kind == "answers" and rng.random() < 0.4:
            predictions.append(rng.choice(golds))
        else:
            kept = [w for w in golds[0].split() if rng.random() < 0.6]
            predictions.append(" ".join(kept) + " " + text())
    return predictions, references


def measure(name: str, n: int) -> dict[str, Any]:
    """Processor seconds of both sides over all blocks, in turns, and whether every value agrees."""
    peer_name, peer, kind = CASES[name]
    mine = ours(name)
    seconds = {"ours": 0.0, "peer": 0.0}
    worst = 0.0
    for block in _blocks(examples(kind, n)):
        values = {}
        for side, score in (("ours", mine), ("peer", peer)):
            started = time.process_time()
            values[side] = score(*block)
            seconds[side] += time.process_time() - started
        worst = max(worst, *(abs(a - b) for a, b in zip(values["ours"], values["peer"])))
    return {"case": name, "peer_name": peer_name, "worst": worst, **seconds}


def _blocks(whole: Examples) -> Iterator[Examples]:
    for start in range(0, len(whole[0]), BLOCK):
        yield whole[0][start : start + BLOCK], whole[1][start : start + BLOCK]


def line(case: str, peer_name: str, n: int, seconds: dict[str, float], worst: float) -> dict[str, Any]:
    check = "largest difference of a value: at most 1e-12"
    return {
        "case": case,
        "peer_name": peer_name,
        "dtype": "text",
        "ours": round(n / seconds["ours"]),
        "peer": round(n / seconds["peer"]),
        "unit": "examples/s",
        "ratio": round(seconds["peer"] / seconds["ours"], 2),
        "same_output": worst <= 1e-12,
        "check": check,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--examples", type=int, default=100_000)
    n = parser.parse_args().examples
    for name in CASES:
        measure(name, min(n, 500))  # imports and caches
    found = [measure(name, n) for name in CASES]
    for row in found:
        print(json.dumps(line(row["case"], row["peer_name"], n, row, row["worst"])), flush=True)
    total = {side: sum(row[side] for row in found) for side in ("ours", "peer")}
    worst = max(row["worst"] for row in found)
    print(json.dumps(line("all_metrics", "squad_loop+sacrebleu+rouge_score", n, total, worst)))


if __name__ == "__main__":
    main()
