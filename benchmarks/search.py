"""Exact search against FAISS's flat index: same vectors, same threads, top 100.

    python -m benchmarks.search [--passages 200000] [--questions 2048] [--threads N]

Vectors are seeded Gaussians of 768 numbers, where nothing is easy to leave out. Both sides search the
same arrays in memory, by turns; the best round counts. Checked: our ids are those of a float64
reference (on 128 questions); where FAISS gives other ids, their exact scores lie within its float32
error of the 100th (counted). `search_half` shows that cost is linear in passages; `memory` is what the
process grew by during our search of vectors that are in memory already, against one block of vectors and the
results (`tests/rag_core/retrieval/test_memory.py` asserts it for a run that is streamed).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time

import faiss
import numpy as np
import torch

from rag_core.retrieval import ExactIndex
from rag_core.retrieval.first_pass import float32_margin, upper_norms
from rag_core.retrieval.vectors import BLOCK_ROWS

DIM, TOP_K = 768, 100
CHECKED = 128


def reference_ids(queries_QD: np.ndarray, vectors_ND: np.ndarray, ids: list[str]) -> list[list[str]]:
    """Float64 products, sorted by (-score, id)."""
    scores_QN = np.empty((len(queries_QD), len(vectors_ND)))
    for start in range(0, len(vectors_ND), 8192):
        rows_ND = vectors_ND[start : start + 8192].astype(np.float64)
        scores_QN[:, start : start + 8192] = queries_QD.astype(np.float64) @ rows_ND.T
    best = []
    for scores_N in scores_QN:
        near = np.flatnonzero(scores_N >= np.partition(scores_N, -TOP_K)[-TOP_K])
        best.append([i for _, i in sorted((-scores_N[r], ids[r]) for r in near)[:TOP_K]])
    return best


def differences(
    found: list[list[str]], rows_QK: np.ndarray, queries_QD: np.ndarray, vectors_ND: np.ndarray
) -> tuple[int, bool]:
    """Hits of FAISS that are not ours, and whether float32 rounding explains every one of them."""
    count, explained = 0, True
    for query_D, ours, theirs in zip(queries_QD, found, rows_QK.tolist()):
        ours_rows = [int(name) for name in ours]
        others = sorted(set(theirs) ^ set(ours_rows))
        if not others:
            continue
        count += len(others) // 2
        rows = others + [ours_rows[-1]]
        scores = vectors_ND[rows].astype(np.float64) @ query_D.astype(np.float64)
        bound = 2 * float32_margin(DIM) * np.linalg.norm(query_D) * upper_norms(vectors_ND[rows]).max()
        explained &= bool((np.abs(scores - scores[-1]) <= bound).all())
    return count, explained


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1 << 20)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--passages", type=int, default=200_000)
    parser.add_argument("--questions", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    faiss.omp_set_num_threads(options.threads)
    rng = np.random.default_rng(0)
    vectors_ND = rng.standard_normal((options.passages, DIM), dtype=np.float32)
    queries_QD = rng.standard_normal((options.questions, DIM), dtype=np.float32)
    # Row numbers as ids of one width, so that their order is the rows' own.
    ids = [f"{i:09d}" for i in range(options.passages)]
    index = ExactIndex(vectors_ND, ids)
    half = ExactIndex(vectors_ND[: options.passages // 2], ids[: options.passages // 2])
    before = peak_mib()
    found = index.search(queries_QD, TOP_K)[1]
    growth = peak_mib() - before
    flat = faiss.IndexFlatIP(DIM)
    flat.add(vectors_ND)
    seconds = dict.fromkeys(("ours", "half", "faiss"), float("inf"))
    for _ in range(options.rounds):
        for name, search in (("ours", index.search), ("half", half.search), ("faiss", flat.search)):
            started = time.perf_counter()
            result = search(queries_QD, TOP_K)
            seconds[name] = min(seconds[name], time.perf_counter() - started)
            if name == "faiss":
                rows_QK = result[1]
    right = reference_ids(queries_QD[:CHECKED], vectors_ND, ids) == found[:CHECKED]
    count, explained = differences(found, rows_QK, queries_QD, vectors_ND)
    flop = 2 * options.passages * options.questions * DIM
    common = {"dtype": "float32", "unit": "GFLOP/s", "threads": options.threads}
    rows = [
        {
            "case": f"search_{options.passages}x{options.questions}",
            "peer_name": "faiss_flat",
            "ours": round(flop / seconds["ours"] / 1e9, 1),
            "peer": round(flop / seconds["faiss"] / 1e9, 1),
            "ratio": round(seconds["faiss"] / seconds["ours"], 2),
            "same_output": right and explained,
            "check": f"ids of {CHECKED} questions are the float64 reference's: {right}; {count} of "
            f"{options.questions * TOP_K} hits differ in FAISS, all within its float32 error: {explained}",
            "seconds": round(seconds["ours"], 3),
            "peer_seconds": round(seconds["faiss"], 3),
            **common,
        },
        {
            "case": "search_half",
            "peer_name": "ours_whole",
            "ours": round(flop / 2 / seconds["half"] / 1e9, 1),
            "peer": round(flop / seconds["ours"] / 1e9, 1),
            "ratio": round(seconds["ours"] / seconds["half"], 2),
            "same_output": None,
            "check": "twice the passages, at most twice the time",
            "info": True,
            **common,
        },
    ]
    # What the results are as Python objects: a float, a shared string, and their places in lists.
    results_mib = options.questions * TOP_K * 40 / (1 << 20)
    block_mib = min(BLOCK_ROWS, options.passages) * DIM * 4 / (1 << 20)
    rows.append(
        {
            "case": "memory",
            "peer_name": "block_and_results",
            "dtype": "float32",
            "ours": round(growth, 1),
            "peer": round(block_mib + results_mib, 1),
            "unit": "MiB",
            "ratio": round((block_mib + results_mib) / max(growth, 1e-9), 2),
            "same_output": None,
            "check": "growth of the process during our search",
            "info": True,
        }
    )
    for row in rows:
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
