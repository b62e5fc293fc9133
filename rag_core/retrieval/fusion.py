"""Reciprocal rank fusion of runs (Cormack, Clarke, Büttcher, SIGIR 2009)."""

from __future__ import annotations

from collections.abc import Sequence

# The constant of the paper: how little the first ranks stand out.
RANK_CONSTANT = 60


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[str]], k: int, *, rank_constant: int = RANK_CONSTANT
) -> tuple[list[float], list[str]]:
    """Fuse one query's rankings, each a list of ids with the best first: `(scores, ids)` of the best k.

    A passage scores Σ 1/(rank_constant + rank) over the rankings that hold it, ranks from 1; order is
    (-score, id). The scores select and are no logits of p(z|x): take those from the dense encoder.
    Raises ValueError when a ranking holds an id twice.
    """
    scores: dict[str, list[float]] = {}
    for ranking in rankings:
        if len(set(ranking)) != len(ranking):
            raise ValueError("a ranking holds a passage twice; ids must be unique")
        for rank, passage_id in enumerate(ranking, 1):
            scores.setdefault(passage_id, []).append(1.0 / (rank_constant + rank))
    # Summed in one order, so that the order of the rankings does not show in the last bit.
    totals = {passage_id: sum(sorted(parts)) for passage_id, parts in scores.items()}
    best = sorted(totals.items(), key=lambda hit: (-hit[1], hit[0]))[:k]
    return [score for _, score in best], [passage_id for passage_id, _ in best]
