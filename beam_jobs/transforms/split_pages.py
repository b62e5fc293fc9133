"""What split does with a part: pages or rows in, passages out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rag_core.corpora import READERS, read_text_file
from rag_core.errors import DataError
from rag_core.parts import PartLog
from rag_core.passages import split_words
from rag_core.schemas import PASSAGES, content_hash
from rag_core.wiki import PageIds, read_articles

BATCH_ROWS = 1024


@dataclass(frozen=True)
class SplitWorker:
    """`PartWorker` of the split job."""

    input_format: str
    words: int
    mode: str
    lang: str
    namespaces: tuple[int, ...]
    keep_redirects: bool
    keep_disambiguation: bool
    keep_lists: bool
    min_words: int

    @property
    def schema(self) -> pa.Schema:
        return PASSAGES

    def setup(self) -> None:
        """Nothing to load."""

    def rows(self, source: dict[str, Any], log: PartLog) -> Iterator[pa.RecordBatch]:
        if self.input_format == "wikipedia":
            return batches(self._wikipedia(source, log))
        if self.input_format == "text":
            return batches(self._text(source, log))
        return batches(self._passages(source, log))

    def _wikipedia(self, source: dict[str, Any], log: PartLog) -> Iterator[dict[str, Any]]:
        counts: Counter[str] = Counter()
        lost: Counter[str] = Counter()
        articles = read_articles(
            source["url"],
            namespaces=self.namespaces,
            keep_redirects=self.keep_redirects,
            keep_disambiguation=self.keep_disambiguation,
            keep_lists=self.keep_lists,
            lang=self.lang,
            min_words=self.min_words,
            counts=counts,
            on_bad_page=lambda page, reason: log.reject(
                f"page {page.page_id} {page.title}", "bad_page", reason
            ),
            lost_templates=lost,
            **_range(source),
        )
        seen: set[str] = set()
        for article in articles:
            if article.page_id in seen:
                log.reject(page_name(source, article), "repeated_id")
                counts["written"] -= 1
                continue
            seen.add(article.page_id)
            yield from self._cut(article.page_id, article.title, article.text)
        log.read, log.written = counts.pop("read", 0), counts.pop("written", 0)
        counts.pop("bad", None)  # each is a dead letter
        log.skipped.update(counts)
        log.stats["lost_templates"] += sum(lost.values())

    def _text(self, source: dict[str, Any], log: PartLog) -> Iterator[dict[str, Any]]:
        for url in source["urls"]:
            log.read += 1
            try:
                title, text = read_text_file(url)
            except DataError as error:
                log.reject(url, "not_utf8", str(error))
                continue
            if len(text.split()) < max(1, self.min_words):
                log.skipped["short"] += 1
                continue
            log.written += 1
            yield from self._cut(url[len(source["root"]) :], title, text)

    def _cut(self, page_id: str, title: str, text: str) -> Iterator[dict[str, Any]]:
        for ordinal, passage in enumerate(split_words(title, text, self.words, self.mode)):
            yield row(f"{page_id}:{ordinal}", page_id, title, passage)

    def _passages(self, source: dict[str, Any], log: PartLog) -> Iterator[dict[str, Any]]:
        for passage in READERS[self.input_format](source["url"], log):
            if len(passage.text.split()) < self.min_words:
                log.skipped["short"] += 1
                continue
            log.written += 1
            yield row(passage.passage_id, None, passage.title, passage.text)


def _range(source: dict[str, Any]) -> dict[str, Any]:
    """Where to read in a multistream file, and the ids that its index promises there."""
    if "range" not in source:
        return {}
    return {"byte_range": tuple(source["range"]), "expected_ids": PageIds(source["pages"], source["ids"])}


def page_name(source: dict[str, Any], page: Any) -> str:
    """How a page is named in the dead letters: file, id, title."""
    return f"{source['url']}: page {page.page_id} {page.title}".rstrip()


def row(passage_id: str, page_id: str | None, title: str, text: str) -> dict[str, Any]:
    """A row of the passages stage."""
    return {
        "passage_id": passage_id,
        "page_id": page_id,
        "title": title,
        "text": text,
        "n_words": len(text.split()),
        "content_hash": content_hash(title, text),
    }


def batches(rows: Iterable[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    """Rows of the passages stage, `BATCH_ROWS` to a batch."""
    waiting: list[dict[str, Any]] = []
    for item in rows:
        waiting.append(item)
        if len(waiting) == BATCH_ROWS:
            yield pa.RecordBatch.from_pylist(waiting, PASSAGES)
            waiting = []
    if waiting:
        yield pa.RecordBatch.from_pylist(waiting, PASSAGES)
