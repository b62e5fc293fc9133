"""Cutting an article into passages of 100 words.

Words are what `str.split()` separates, not tokens of a tokeniser: a lone "(" is a word, U+00A0
separates, U+200B does not.

* `disjoint`: Lewis et al. (2020), section 3: disjoint 100-word chunks of the text. The last one is as
  short as it is; the title stands in its own column.
* `dpr`: the rule behind `psgs_w100.tsv` (Karpukhin et al. 2020), reconstructed from its rows: the
  title's words come first, and a short last passage is filled up from the article's beginning.
"""

from __future__ import annotations

from typing import Literal

Mode = Literal["disjoint", "dpr"]


def split_words(title: str, text: str, words: int = 100, mode: Mode = "disjoint") -> list[str]:
    """The passages of one article, in order, each `words` words joined by single spaces.

    The title is part of the passages in `dpr` only, where its words count as the text's first: a title
    alone makes a passage there. In `dpr`, an article of fewer than `words` words is repeated until the
    passage is full. What has no words has no passage.

    Raises `ValueError` for `words` < 1 or another mode.
    """
    if words < 1:
        raise ValueError(f"words must be at least 1, got {words}")
    if mode not in ("disjoint", "dpr"):
        raise ValueError(f'mode must be "disjoint" or "dpr", got {mode!r}')
    tokens = text.split()
    if mode == "dpr" and (tokens := title.split() + tokens):
        tokens += _fill(tokens, -len(tokens) % words)
    return [" ".join(tokens[i : i + words]) for i in range(0, len(tokens), words)]


def _fill(tokens: list[str], missing: int) -> list[str]:
    """The first `missing` words of the article read round and round."""
    rounds = -(-missing // len(tokens))
    return (tokens * rounds)[:missing]
