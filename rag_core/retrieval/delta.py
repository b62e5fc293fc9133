"""Passages added and removed over an index that stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rag_core.retrieval.topk import merge_topk


class DeltaIndex:
    """A base index, less some passages, plus those of further indexes: searched as one.

    `additions` come oldest first: a passage of an addition replaces one of the same id in the base and
    in earlier additions, so that a changed passage needs no removal. `removed` are ids that no longer
    exist anywhere. All must hold vectors of one encoder. An addition is the index of a delta run; it
    must know its ids (`.ids`).
    """

    def __init__(self, base: Any, additions: Sequence[Any] = (), removed: Iterable[str] = ()) -> None:
        self._layers = [base, *additions]
        if len({layer.dim for layer in self._layers}) > 1:
            raise ValueError(f"indexes of dimensions {[layer.dim for layer in self._layers]}; need one")
        self._hidden = hidden_ids([layer.ids for layer in additions], removed)

    @property
    def dim(self) -> int:
        return self._layers[0].dim

    def search(self, queries_QD: Any, k: int) -> tuple[list[list[float]], list[list[str]]]:
        """The k best passages over all layers: `(scores, ids)`, by (-score, id)."""
        found = [self._search_layer(*layer, queries_QD, k) for layer in zip(self._layers, self._hidden)]
        merged = [
            merge_topk([(scores[q], ids[q]) for scores, ids in found], k) for q in range(len(queries_QD))
        ]
        return [scores for scores, _ in merged], [ids for _, ids in merged]

    @staticmethod
    def _search_layer(
        layer: Any, hidden: set[str], queries_QD: Any, k: int
    ) -> tuple[list[list[float]], list[list[str]]]:
        """A layer's k best visible passages: asked for more where hidden ones took their places."""
        wanted = k
        while True:
            scores, ids = layer.search(queries_QD, wanted)
            visible = [
                [(s, i) for s, i in zip(*hits) if i not in hidden] for hits in zip(scores, ids, strict=True)
            ]
            short = any(len(v) < k and len(i) == wanted for v, i in zip(visible, ids, strict=True))
            if not short or k == 0:
                return [[s for s, _ in v[:k]] for v in visible], [[i for _, i in v[:k]] for v in visible]
            wanted *= 2


def hidden_ids(additions: Sequence[Iterable[str]], removed: Iterable[str]) -> list[set[str]]:
    """Per layer, base first, the ids that must not come from it: removed ones, and those of later layers.

    `additions` are the ids of each addition, oldest first.
    """
    hidden = [set(removed)]
    for ids in reversed(additions):
        hidden.insert(0, hidden[0].union(ids))
    return hidden
