"""Exact search as a pipeline: every shard against all questions, then the best k of each question.

    question parts ─▶ encode ─▶ _work/queries-*.npy ─┐
    embeddings parts (shards) ──────────────────────▶ search ─▶ top k ─▶ retrieved parts

Only ids, scores and log-partitions cross from shards to questions. A shard is a part of the
embeddings, so the cut, and with it every bit of the result, is independent of the workers.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from beam_jobs.handlers import once_per_process, shared_encoder
from beam_jobs.options import register_file_systems
from beam_jobs.transforms.questions import questions_of
from beam_jobs.transforms.retrieve_passages import retrieved_batch, to_logits
from rag_core import files
from rag_core.errors import DataError
from rag_core.parts import Part, PartLog, write_part
from rag_core.run_dir import WORK
from rag_core.schemas import RETRIEVED
from rag_core.stages import part_urls, read_part, vectors_of

# One shard's answer for one question part: shard number → per question (scores, ids), and logsumexps.
Hits = tuple[list[list[float]], list[list[str]]]


@dataclass(frozen=True)
class ExactSearch:
    """What exact search depends on; the plain functions of each step are its methods."""

    questions: str
    task: str
    question_encoder: str
    embeddings: str
    top_k: int
    score_scale: float
    question_parts: tuple[Part, ...] = field(repr=False)
    output: str = ""
    fingerprint: str = ""
    """Both known once the output is claimed."""

    def encode(self, part: Part) -> int:
        """Encode one part of the questions into `_work/`; once, whatever the number of workers."""
        url = self._queries_url(part.index)
        if not files.exists(url):
            encoder = shared_encoder(self.question_encoder)
            texts = [q.question for q in questions_of(self.questions, self.task, part.source)]
            buffer = io.BytesIO()
            np.save(buffer, encoder.encode_questions(texts), allow_pickle=False)
            files.write_bytes(url, buffer.getvalue())
        return part.index

    def _queries_url(self, index: int) -> str:
        return files.join(self.output, WORK, f"queries-{self.fingerprint[:12]}-{index:05d}.npy")

    def search(self, shard: Part) -> Iterator[tuple[int, tuple[int, Hits, np.ndarray]]]:
        """All questions against one shard, as (question part, (shard, hits, logsumexps))."""
        from rag_core.retrieval import ExactIndex

        batches = list(read_part(shard.source["url"], ["passage_id", "vector"]))
        ids = [i for batch in batches for i in batch.column("passage_id").to_pylist()]
        vectors_ND = np.concatenate([vectors_of(batch) for batch in batches])
        index = ExactIndex(vectors_ND, ids)
        urls = tuple(self._queries_url(part.index) for part in self.question_parts)
        for part, queries_QD in zip(self.question_parts, _queries(urls)):
            scores, found, log_z_Q = index.search(queries_QD, self.top_k, True, self.score_scale)
            yield part.index, (shard.index, (scores, found), log_z_Q)

    @property
    def schema(self) -> pa.Schema:
        return RETRIEVED

    def setup(self) -> None:
        """Nothing to load: the merged hits are in the part's source."""

    def rows(self, source: dict[str, Any], log: PartLog) -> Iterator[pa.RecordBatch]:
        """`PartWorker.rows` over merged hits: one row a question."""
        questions = questions_of(self.questions, self.task, source)
        log.read += len(questions)
        log.written += len(questions)
        scores = to_logits(source["scores"], self.score_scale)
        yield retrieved_batch(
            [q.question_id for q in questions], source["ids"], scores, source["log_partition"]
        )


@once_per_process
def _queries(urls: tuple[str, ...]) -> list[np.ndarray]:
    """All question vectors, part by part."""
    return [np.load(io.BytesIO(files.read_bytes(url)), allow_pickle=False) for url in urls]


class TopKFn(beam.CombineFn):
    """Merge shards' answers for one question part: best k by (-score, id), log-partitions by shard.

    The log-partitions are only added up at the end and in the order of the shards, so that the sum
    does not depend on which worker merged what first.
    """

    def __init__(self, k: int) -> None:
        self._k = k

    def create_accumulator(self) -> tuple[Hits | None, dict[int, np.ndarray]]:
        return None, {}

    def add_input(self, accumulator, element):
        shard, hits, log_z_Q = element
        return self.merge_accumulators([accumulator, (hits, {shard: log_z_Q})])

    def merge_accumulators(self, accumulators: Iterable[Any]):
        from rag_core.retrieval import merge_topk

        merged: Hits | None = None
        log_z: dict[int, np.ndarray] = {}
        for hits, by_shard in accumulators:
            if log_z.keys() & by_shard.keys():
                raise DataError(f"shard {min(log_z.keys() & by_shard.keys())} answered twice")
            log_z = {**log_z, **by_shard}
            if hits is None:
                continue
            if merged is None:
                merged = hits
                continue
            pairs = [
                merge_topk([(a, b), (c, d)], self._k)
                for a, b, c, d in zip(merged[0], merged[1], hits[0], hits[1])
            ]
            merged = ([scores for scores, _ in pairs], [ids for _, ids in pairs])
        return merged, log_z

    def extract_output(self, accumulator) -> tuple[Hits, list[float]]:
        merged, log_z = accumulator
        assert merged is not None
        return merged, log_sum_exp([log_z[shard] for shard in sorted(log_z)])


def log_sum_exp(parts: list[np.ndarray]) -> list[float]:
    """Column-wise logsumexp of equally long arrays, exactly rounded sums, -inf for nothing."""
    stacked_SQ = np.stack(parts)
    high_Q = stacked_SQ.max(axis=0)
    sums = (math.fsum(np.exp(column - high)) for column, high in zip(stacked_SQ.T, high_Q))
    return [float(high + math.log(total)) for high, total in zip(high_Q, sums)]


class _EncodeFn(beam.DoFn):
    def __init__(self, search: ExactSearch) -> None:
        self._search = search

    def process(self, part: Part):
        register_file_systems()
        yield self._search.encode(part)


class _ShardFn(beam.DoFn):
    def __init__(self, search: ExactSearch) -> None:
        self._search = search

    def process(self, shard: Part, encoded: list[int]):
        register_file_systems()
        assert len(encoded) == len(self._search.question_parts)
        yield from self._search.search(shard)


class _WriteFn(beam.DoFn):
    def __init__(self, search: ExactSearch) -> None:
        self._search = search
        self._parts = {part.index: part for part in search.question_parts}

    def process(self, element):
        register_file_systems()
        index, ((scores, ids), log_partition) = element
        source = {**self._parts[index].source, "scores": scores, "ids": ids, "log_partition": log_partition}
        yield write_part(self._search.output, Part(index, source), self._search, self._search.fingerprint)


class SearchShards(beam.PTransform):
    """Shards → reports of the retrieved parts."""

    def __init__(self, search: ExactSearch) -> None:
        super().__init__()
        self._search = search
        self._shards = [Part(i, {"url": url}) for i, url in enumerate(part_urls(search.embeddings))]

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        encoded = (
            pipeline
            | "Questions" >> beam.Create(self._search.question_parts)
            | "SpreadQuestions" >> beam.Reshuffle()
            | "Encode" >> beam.ParDo(_EncodeFn(self._search))
        )
        return (
            pipeline
            | "Shards" >> beam.Create(self._shards)
            | "SpreadShards" >> beam.Reshuffle()
            | "Search" >> beam.ParDo(_ShardFn(self._search), encoded=beam.pvalue.AsList(encoded))
            | "TopK" >> beam.CombinePerKey(TopKFn(self._search.top_k))
            | "Write" >> beam.ParDo(_WriteFn(self._search))
        )
