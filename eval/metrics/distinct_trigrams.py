"""Distinct trigrams: the share of different trigrams among all of a whole set of outputs.

    D = |set of trigrams| / number of trigrams, over all outputs together (Lewis et al. 2020, Table 5)

Not the mean of the outputs' own ratios, and divided by trigrams, not by words (Li et al. 2016). Tokens are
split at white space, case and Unicode form kept (the paper names no tokeniser). An output of fewer than
three tokens adds nothing; without any trigram the value is undefined (None). Each trigram becomes a 64-bit
key, so that sets merge over parts; two different ones among 20 million share a key with probability 10⁻⁵.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from typing import Any

from eval.metrics.base import Metric, Statistics

_MASK = (1 << 64) - 1
_PRIME = 0x100000001B3


class DistinctNgrams(Metric):
    """Statistics: the keys of the example's n-grams, as many as it has."""

    needs_references = False
    defined_over_nothing = True
    width = 0

    def __init__(self, name: str = "distinct_trigrams", n: int = 3, lowercase: bool = False) -> None:
        self.name, self.n, self.lowercase = name, n, lowercase
        case = "lc" if lowercase else "mixed"
        self.options = f"n:{n}|tok:whitespace|case:{case}|distinct/total-over-set"

    def statistics(self, prediction: str, references: Any) -> Statistics:
        tokens = (prediction.lower() if self.lowercase else prediction).split()
        hashes = [_token_hash(token) for token in tokens]
        keys = []
        for i in range(len(hashes) - self.n + 1):
            key = 0
            for value in hashes[i : i + self.n]:
                key = (key * _PRIME + value) & _MASK
            keys.append(key)
        return tuple(keys)

    def missing(self, references: Any) -> Statistics:
        return ()

    def example(self, statistics: Statistics) -> float | None:
        return self.total([statistics])

    def total(self, rows: Sequence[Statistics]) -> float | None:
        total = sum(map(len, rows))
        return len(set().union(*rows)) / total if total else None

    def details(self, rows: Sequence[Statistics]) -> dict[str, int]:
        return {"distinct": len(set().union(*rows)), "total": sum(map(len, rows))}


@functools.lru_cache(maxsize=1 << 17)
def _token_hash(token: str) -> int:
    digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
