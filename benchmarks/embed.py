"""Embedding at BERT-base size over real 100-word passages, against the usual ways.

    python -m benchmarks.embed [--passages 96] [--rounds 2] [--threads N]

Peers, both `transformers` in fp32: `dpr_padded`, as DPR embeds (every passage padded to 256 tokens,
batches of 32), and `sorted_fp32` (sorted by length, padded to the longest of a batch, batches of 16).
Ours: `load_encoder(directory, compute=…)` in fp32, bf16 and int8; the row without `info` is the
fastest of them here, which depends on what the machine multiplies in hardware. All ways start from
text and take turns; the best round counts. `check` compares vectors with those of `dpr_padded`.
The weights are random (no download), which changes no cost.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from rag_core.encoders import load_encoder
from rag_core.errors import UsageError

CONTEXTS = Path(__file__).resolve().parents[2] / "shared/data/squad/contexts.tsv.gz"
WORDS = 100
CLOSE = 0.999


def passages(n: int) -> tuple[str, list[str], list[str]]:
    """The corpus' name, titles and texts: SQuAD's contexts cut at 100 words, or seeded words."""
    if CONTEXTS.exists():
        with gzip.open(CONTEXTS, "rt", encoding="utf-8", newline="\n") as stream:
            rows = [line.rstrip("\n").split("\t") for line in stream][1:]
        rows = [row for row in rows if len(row[1].split()) >= WORDS]
        chosen = random.Random(0).sample(rows, n)
        return "squad", [r[2] for r in chosen], [" ".join(r[1].split()[:WORDS]) for r in chosen]
    rng = random.Random(0)
    texts = [" ".join(str(rng.randrange(10**4)) for _ in range(WORDS)) for _ in range(n)]
    return "seeded_numbers", ["number"] * n, texts


def save_bert_base(directory: str) -> None:
    """A DPR context encoder of BERT-base's shape with random weights, and MiniLM's tokenizer."""
    from transformers import AutoTokenizer, DPRConfig, DPRContextEncoder

    from rag_core.encoders.locate import locate

    torch.manual_seed(0)
    DPRContextEncoder(DPRConfig()).eval().save_pretrained(directory)
    AutoTokenizer.from_pretrained(locate("minilm")).save_pretrained(directory)


class Peer:
    """transformers in fp32: padded to 256 as DPR does, or sorted with dynamic padding."""

    def __init__(self, directory: str, padded: bool) -> None:
        from transformers import AutoTokenizer, DPRContextEncoder

        self._model = DPRContextEncoder.from_pretrained(directory).eval()
        self._tokenizer = AutoTokenizer.from_pretrained(directory)
        self._padding, self._batch = ("max_length", 32) if padded else ("longest", 16)

    def __call__(self, titles: list[str], texts: list[str]) -> np.ndarray:
        order = range(len(texts))
        if self._padding == "longest":
            order = sorted(order, key=lambda i: len(titles[i]) + len(texts[i]))
        vectors_ND = np.empty((len(texts), 768), np.float32)
        with torch.inference_mode():
            for start in range(0, len(texts), self._batch):
                rows = list(order[start : start + self._batch])
                tokens = self._tokenizer(
                    [titles[i] for i in rows],
                    [texts[i] for i in rows],
                    padding=self._padding,
                    truncation=True,
                    max_length=256,
                    return_tensors="pt",
                )
                tokens["token_type_ids"].zero_()
                vectors_ND[rows] = self._model(**tokens).pooler_output.numpy()
        return vectors_ND


def product_rate() -> float:
    """GFLOP/s of a float32 product of BERT-base's inner size."""
    a, b = torch.randn(2048, 768), torch.randn(768, 3072)
    torch.mm(a, b)
    started = time.perf_counter()
    for _ in range(5):
        torch.mm(a, b)
    return 5 * 2 * 2048 * 768 * 3072 / (time.perf_counter() - started) / 1e9


def least_cosine(a_ND: np.ndarray, b_ND: np.ndarray) -> float:
    products_N = (a_ND * b_ND).sum(1)
    return float((products_N / np.linalg.norm(a_ND, axis=1) / np.linalg.norm(b_ND, axis=1)).min())


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--passages", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    corpus, titles, texts = passages(options.passages)
    ways: dict[str, Callable[[list[str], list[str]], np.ndarray]] = {}
    with tempfile.TemporaryDirectory() as directory:
        save_bert_base(directory)
        ways["dpr_padded"] = Peer(directory, padded=True)
        ways["sorted_fp32"] = Peer(directory, padded=False)
        for compute in ("fp32", "bf16", "int8"):
            try:
                ways[compute] = load_encoder(directory, compute, device="cpu").encode_passages
            except UsageError as error:
                print(json.dumps({"case": f"embed_{compute}", "info": True, "skipped": str(error)}))
    seconds = dict.fromkeys(ways, float("inf"))
    vectors: dict[str, np.ndarray] = {}
    for _ in range(options.rounds):
        for name, way in ways.items():
            way(titles[:2], texts[:2])
            started = time.perf_counter()
            vectors[name] = way(titles, texts)
            seconds[name] = min(seconds[name], time.perf_counter() - started)
    rate = {name: len(texts) / s for name, s in seconds.items()}
    ours = [name for name in ways if name in ("fp32", "bf16", "int8")]
    fastest = max(ours, key=rate.__getitem__)
    float32_rate = round(product_rate(), 1)
    for name in ours:
        cosine = least_cosine(vectors[name], vectors["dpr_padded"])
        for peer in ("dpr_padded", "sorted_fp32"):
            row = {
                "case": f"bert_base_{name}",
                "peer_name": peer,
                "dtype": name,
                "ours": round(rate[name], 2),
                "peer": round(rate[peer], 2),
                "unit": "passages/s",
                "ratio": round(rate[name] / rate[peer], 2),
                "same_output": cosine >= CLOSE,
                "check": f"least cosine to dpr_padded {cosine:.5f}, at least {CLOSE}",
                "corpus": corpus,
                "threads": options.threads,
                "float32_gflops": float32_rate,
            }
            print(json.dumps(row if name == fastest else {**row, "info": True}), flush=True)


if __name__ == "__main__":
    main()
