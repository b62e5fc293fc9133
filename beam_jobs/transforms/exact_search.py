"""Exact search as a pipeline: every shard against all questions, then the best k of each question.

    question parts ─▶ encode ─▶ _work/queries-*.npy ─┐
    embeddings parts (shards) ──────────────────────▶ search ─▶ top k ─▶ retrieved parts

Only ids, scores and log-partitions cross from shards to questions. A shard is a part of the
embeddings, so the cut, and with it every bit of the result, is independent of the workers.

With `fuse`, another run's passages are scored too, by the shards that hold their vectors; reciprocal
rank fusion then selects and orders, and every logit is still the dense encoder's.
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
from beam_jobs.transforms.retrieve_passages import retrieved_batch, retrieved_by_question, to_logits
from rag_core import files
from rag_core.errors import DataError
from rag_core.parts import Part, PartLog, write_part
from rag_core.run_dir import WORK
from rag_core.schemas import RETRIEVED, Question
from rag_core.stages import part_urls, read_part, vectors_of

# Per question of a part: scores and ids, best first; and scores by id of the other run's passages.
Hits = tuple[list[list[float]], list[list[str]], list[dict[str, float]]]


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
    fuse: str | None = None
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
            given = self._scores_of_others(part, queries_QD, ids, vectors_ND)
            yield part.index, (shard.index, (scores, found, given), log_z_Q)

    def others(self, source: dict[str, Any]) -> list[list[str]]:
        """What the run to fuse with found for each question of a part; nothing without one."""
        questions = questions_of(self.questions, self.task, source)
        if self.fuse is None:
            return [[] for _ in questions]
        found = retrieved_by_question(self.fuse)
        missing = [q.question_id for q in questions if q.question_id not in found]
        if missing:
            raise DataError(f"{self.fuse}: no row for question {missing[0]!r} ({len(missing)} missing)")
        return [found[q.question_id][0] for q in questions]

    def _scores_of_others(
        self, part: Part, queries_QD: np.ndarray, ids: list[str], vectors_ND: np.ndarray
    ) -> list[dict[str, float]]:
        """Exact inner products of the other run's passages that lie in this shard, by question."""
        import torch

        from rag_core.retrieval.rescore import exact_scores

        row_of = {passage_id: row for row, passage_id in enumerate(ids)} if self.fuse else {}
        mine = [[i for i in wanted if i in row_of] for wanted in self.others(part.source)]
        query_P = np.repeat(np.arange(len(mine)), [len(m) for m in mine])
        row_P = np.array([row_of[i] for m in mine for i in m], np.int64)
        queries = torch.from_numpy(queries_QD.astype(np.float64))
        scores = iter(exact_scores(queries, vectors_ND, query_P, row_P).tolist())
        return [{i: next(scores) for i in m} for m in mine]

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
        scores, ids = source["scores"], source["ids"]
        if self.fuse is not None:
            scores, ids = self._fused(questions, source)
        logits = to_logits(scores, self.score_scale)
        yield retrieved_batch([q.question_id for q in questions], ids, logits, source["log_partition"])

    def _fused(
        self, questions: list[Question], source: dict[str, Any]
    ) -> tuple[list[list[float]], list[list[str]]]:
        from rag_core.retrieval import reciprocal_rank_fusion

        scores, chosen = [], []
        for n, (question, others) in enumerate(zip(questions, self.others(source))):
            known = {**dict(zip(source["ids"][n], source["scores"][n])), **source["given"][n]}
            strangers = [i for i in others if i not in known]
            if strangers:
                raise DataError(
                    f"{self.fuse}: passage {strangers[0]!r} of question {question.question_id!r} "
                    f"is not in {self.embeddings}"
                )
            _, best = reciprocal_rank_fusion([source["ids"][n], others], self.top_k)
            chosen.append(best)
            scores.append([known[i] for i in best])
        return scores, chosen


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
            given = [{**a, **b} for a, b in zip(merged[2], hits[2])]
            merged = ([scores for scores, _ in pairs], [ids for _, ids in pairs], given)
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
        index, ((scores, ids, given), log_partition) = element
        merged = {"scores": scores, "ids": ids, "given": given, "log_partition": log_partition}
        source = {**self._parts[index].source, **merged}
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
