"""The generator's input: `title / text // question`, one row per retrieved passage.

The right mode keeps the question's own characters and cuts the *passage* when the row is too long;
the passage's tokens are cached, because training and decoding meet the same passages again and again.
`compat="huggingface"` rebuilds what `transformers.RagRetriever` feeds its generator, bit for bit: the
question as its question encoder's tokenizer decodes it, double spaces squeezed once, the row padded
to `max_length` and cut on the right, where the question stands.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rag_core.models.tokenizer import TextTokenizer
from rag_core.schemas import Passage

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class ContextFormat:
    """How a context is written. `max_length` counts tokens, special ones included."""

    title_sep: str = " / "
    doc_sep: str = " // "
    prefix: str = ""
    max_length: int = 300
    compat: str | None = None

    def __post_init__(self) -> None:
        if self.compat not in (None, "huggingface"):
            raise ValueError(f"compat {self.compat!r}; right: None or 'huggingface'")
        if self.max_length < 1:
            raise ValueError(f"max_length {self.max_length}; right: at least 1")


class ContextBuilder:
    """Builds contexts with one tokenizer and one format; keeps the tokens of recent passages.

    `n_truncated` counts the contexts whose passage was cut, `n_truncated_questions` the questions that
    had to be cut because they alone exceed `max_length` (nothing else ever shortens a question).
    """

    def __init__(self, tokenizer: TextTokenizer, format: ContextFormat | None = None, cache: int = 200_000):
        self.tokenizer = tokenizer
        self.format = format or ContextFormat()
        self.n_truncated = 0
        self.n_truncated_questions = 0
        self._cache: OrderedDict[tuple[str, str, str], np.ndarray] = OrderedDict()
        self._cache_size = cache

    def build(self, passages: Sequence[Passage], question: str) -> list[list[int]]:
        """One row of token ids per passage: `<s> title / text // question </s>`.

        Without passages the one row is the question alone (closed book).
        """
        if self.format.compat == "huggingface":
            return [self._huggingface_row(p, question) for p in passages]
        return self.join(self.passage_ids(passages), *self.question_ids([question]))

    def question_ids(self, questions: Sequence[str]) -> list[list[int]]:
        """The question's part of a row, separator included: tokens of ` // question`."""
        return self.tokenizer.encode([self.format.doc_sep + q for q in questions])

    def closed_book(self, question: str) -> list[int]:
        """The row of a question without passages."""
        room = self.format.max_length - len(self.tokenizer.before) - len(self.tokenizer.after)
        (ids,) = self.tokenizer.encode([self.format.prefix + question])
        self.n_truncated_questions += len(ids) > room
        return [*self.tokenizer.before, *ids[:room], *self.tokenizer.after]

    def passage_ids(self, passages: Sequence[Passage]) -> list[np.ndarray]:
        """Tokens of `title / text` for each passage, from the cache where they are known."""
        keys = [(p.passage_id, p.title, p.text) for p in passages]
        new = [p for p, key in zip(passages, keys) if key not in self._cache]
        if new:
            texts = [self.format.prefix + p.title + self.format.title_sep + p.text for p in new]
            for passage, ids in zip(new, self.tokenizer.encode(texts)):
                key = (passage.passage_id, passage.title, passage.text)
                self._cache[key] = np.asarray(ids, dtype=np.int32)
        found = []
        for key in keys:
            self._cache.move_to_end(key)
            found.append(self._cache[key])
        while len(self._cache) > max(self._cache_size, len(keys)):
            self._cache.popitem(last=False)
        return found

    def join(self, passages: Sequence[np.ndarray], question: Sequence[int]) -> list[list[int]]:
        """Rows from tokenised pieces; the passage gives way, the question never does while it fits."""
        before, after = self.tokenizer.before, self.tokenizer.after
        room = self.format.max_length - len(before) - len(after)
        if len(question) > room:
            self.n_truncated_questions += 1
            question = question[:room]
        room -= len(question)
        self.n_truncated += sum(len(p) > room for p in passages)
        return [[*before, *p[:room].tolist(), *question, *after] for p in passages]

    def _huggingface_row(self, passage: Passage, question: str) -> list[int]:
        form = self.format
        title = passage.title.removeprefix('"').removesuffix('"')
        text = form.prefix + title + form.title_sep + passage.text + form.doc_sep + question
        (ids,) = self.tokenizer.encode([text.replace("  ", " ")])
        before, after = self.tokenizer.before, self.tokenizer.after
        room = form.max_length - len(before) - len(after)
        self.n_truncated_questions += len(ids) > room
        return [*before, *ids[:room], *after]


def build_contexts(
    passages: Sequence[Passage],
    question: str,
    tokenizer: TextTokenizer,
    format: ContextFormat | None = None,
) -> list[list[int]]:
    """Token ids of `title / text // question`, one row per passage; see `ContextBuilder`.

    With `compat="huggingface"` give the question as the question encoder's tokenizer decodes it
    (`decode(encode(question), skip_special_tokens=True)`): that is what their retriever does.
    """
    return ContextBuilder(tokenizer, format).build(passages, question)


def pad_rows(rows: Sequence[Sequence[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of ids as input_ids_NS and attention_mask_NS, padded on the right to the longest."""
    import torch

    width = max((len(r) for r in rows), default=1)
    ids_NS = np.full((len(rows), width), pad, dtype=np.int64)
    mask_NS = np.zeros((len(rows), width), dtype=np.int64)
    for i, row in enumerate(rows):
        ids_NS[i, : len(row)] = row
        mask_NS[i, : len(row)] = 1
    return torch.from_numpy(ids_NS), torch.from_numpy(mask_NS)
