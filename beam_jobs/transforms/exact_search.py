"""Exact search as a pipeline: every shard against all questions, then the best k of each question.

    question parts ─▶ encode ─▶ _work/queries-*.npy ─┐
    embeddings parts (shards) ──────────────────────▶ search ─▶ top k ─▶ retrieved parts

Only ids, scores and log-partitions cross from shards to questions. A shard is a part of the
embeddings, so the cut, and with it every bit of the result, is independent of the workers.

Further runs (`deltas`) add and replace passages, and a list removes some: what is hidden is left out
of each shard before the search, so ids, scores and log-partitions are those of the corpus as it now is.

With `fuse`, another run's passages are scored too, by the shards that hold their vectors; reciprocal
rank fusion then selects and orders, and every logit is still the dense encoder's.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from beam_jobs.handlers import check_unchanged, once_per_process, shared_encoder
from beam_jobs.options import register_file_systems
from beam_jobs.transforms.counters import count_report
from beam_jobs.transforms.parts import patiently
from beam_jobs.transforms.questions import log_rejected, questions_of
from beam_jobs.transforms.retrieve_passages import (
    retrieved_batch,
    retrieved_by_question,
    to_logits,
    without_self,
)
from rag_core import files
from rag_core.errors import DataError, UsageError
from rag_core.parts import Part, PartLog, write_part
from rag_core.run_dir import WORK
from rag_core.schemas import RETRIEVED, Question
from rag_core.stages import part_urls, read_table

if TYPE_CHECKING:
    from rag_core.retrieval.vectors import Block

# Per question of a part: scores and ids, best first; and scores by id of the other run's passages.
Hits = tuple[list[list[float]], list[list[str]], list[dict[str, float]]]


@dataclass(frozen=True)
class ExactSearch:
    """What exact search depends on; the plain functions of each step are its methods."""

    questions: str
    task: str
    question_encoder: str
    embeddings: tuple[str, ...]
    """The base, then delta runs, oldest first."""
    top_k: int
    score_scale: float
    question_parts: tuple[Part, ...] = field(repr=False)
    fuse: str | None = None
    removed: str | None = None
    """File of the ids of passages that no longer exist."""
    exclude_self: bool = False
    encoder_fingerprint: str = ""
    output: str = ""
    fingerprint: str = ""
    """Both known once the output is claimed."""

    def encode(self, part: Part) -> int:
        """Encode one part of the questions into `_work/`; once, whatever the number of workers."""
        url = self._queries_url(part.index)
        if not files.exists(url):
            encoder = shared_encoder(self.question_encoder)
            check_unchanged(self.question_encoder, encoder.loaded_fingerprint, self.encoder_fingerprint)
            texts = [q.question for q in questions_of(self.questions, self.task, part.source)]
            buffer = io.BytesIO()
            np.save(buffer, encoder.encode_questions(texts), allow_pickle=False)
            files.write_bytes(url, buffer.getvalue())
        return part.index

    def _queries_url(self, index: int) -> str:
        return files.join(self.output, WORK, f"queries-{self.fingerprint[:12]}-{index:05d}.npy")

    @property
    def depth(self) -> int:
        """Hits that each shard gives: one more where a question's own passage is taken out later."""
        return self.top_k + self.exclude_self

    def shards(self) -> list[Part]:
        """The parts of all runs, the base's first."""
        urls = [(layer, url) for layer, run in enumerate(self.embeddings) for url in part_urls(run)]
        return [Part(i, {"url": url, "layer": layer}) for i, (layer, url) in enumerate(urls)]

    def search(self, shard: Part) -> Iterator[tuple[int, tuple[int, Hits, np.ndarray]]]:
        """All questions against one shard, as (question part, (shard, hits, logsumexps)).

        Memory: a block of vectors, the shard's ids, and the results.
        """
        from rag_core.retrieval.vectors import shard_blocks

        vectors_of_parts = _queries(tuple(self._queries_url(part.index) for part in self.question_parts))
        ids: list[str] = []
        searches = [
            ShardSearch(queries_QD, self.others(part.source), self.depth, self.score_scale, ids)
            for part, queries_QD in zip(self.question_parts, vectors_of_parts)
        ]
        hidden = _hidden(self.removed, *self.embeddings)[shard.source["layer"]]
        for names, block in shard_blocks(shard.source["url"], hidden):
            ids.extend(names)
            for search in searches:
                search.add(block, names)
        for part, search in zip(self.question_parts, searches):
            yield part.index, (shard.index, search.hits(), search.log_z_Q)

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
        log_rejected(self.questions, self.task, source, log)
        names = [q.question_id for q in questions]
        scores, ids = source["scores"], source["ids"]
        if self.exclude_self:
            scores, ids = without_self(names, scores, ids, self.top_k)
        if self.fuse is not None:
            scores, ids = self._fused(questions, {**source, "scores": scores, "ids": ids})
        logits = to_logits(scores, self.score_scale)
        yield retrieved_batch(names, ids, logits, source["log_partition"])

    def _fused(
        self, questions: list[Question], source: dict[str, Any]
    ) -> tuple[list[list[float]], list[list[str]]]:
        from rag_core.retrieval import reciprocal_rank_fusion

        scores, chosen = [], []
        for n, (question, others) in enumerate(zip(questions, self.others(source))):
            known = {**dict(zip(source["ids"][n], source["scores"][n])), **source["given"][n]}
            if self.exclude_self:
                others = [i for i in others if i != question.question_id]
            strangers = [i for i in others if i not in known]
            if strangers:
                raise DataError(
                    f"{self.fuse}: passage {strangers[0]!r} of question {question.question_id!r} "
                    f"is not in {', '.join(self.embeddings)}"
                )
            _, best = reciprocal_rank_fusion([source["ids"][n], others], self.top_k)
            chosen.append(best)
            scores.append([known[i] for i in best])
        return scores, chosen


class ShardSearch:
    """The questions of one part against one shard, block by block."""

    def __init__(
        self, queries_QD: np.ndarray, others: list[list[str]], k: int, score_scale: float, ids: list[str]
    ) -> None:
        """`others`: what another run found for each question. `ids`: the shard's, growing with its blocks."""
        from rag_core.retrieval.first_pass import Queries
        from rag_core.retrieval.scan import Scan
        from rag_core.retrieval.topk import RunningTopK

        self._queries = Queries(queries_QD)
        self._top = RunningTopK(len(queries_QD), k, lambda rows: [ids[row] for row in rows.tolist()])
        self._scan = Scan(self._queries, self._top, score_scale=score_scale)
        self._askers: dict[str, list[int]] = {}
        for question, wanted in enumerate(others):
            for passage_id in wanted:
                self._askers.setdefault(passage_id, []).append(question)
        self._given: list[dict[str, float]] = [{} for _ in others]

    def add(self, block: Block, names: list[str]) -> None:
        """Search a block whose rows have these ids; score what the other run found of it."""
        from rag_core.retrieval.rescore import exact_scores

        self._scan.add(block)
        if not self._askers:
            return
        pairs = sorted((q, row) for row, name in enumerate(names) for q in self._askers.get(name, ()))
        query_P, row_P = np.array(pairs, np.int64).reshape(-1, 2).T
        scores_P = exact_scores(self._queries.float64_QD, block.vectors_ND, query_P, row_P.copy())
        for (question, row), score in zip(pairs, scores_P.tolist()):
            self._given[question][names[row]] = score

    def hits(self) -> Hits:
        return (*self._top.results(), self._given)

    @property
    def log_z_Q(self) -> np.ndarray:
        return self._scan.log_z_Q


def read_removed(url: str) -> tuple[str, ...]:
    """Passage ids of a text file, one a line, sorted. An id that no run holds takes nothing away."""
    if not files.exists(url):
        raise UsageError(f"--removed {url}: no such file")
    with files.open_text(url) as stream:
        return tuple(sorted({line.strip() for line in stream} - {""}))


@once_per_process
def _hidden(removed: str | None, _base: str, *deltas: str) -> list[set[str]]:
    """Per run, the ids of passages that later runs replace or that the file `removed` names."""
    from rag_core.retrieval.delta import hidden_ids

    added = [read_table(run, ["passage_id"]).column("passage_id").to_pylist() for run in deltas]
    return hidden_ids(added, read_removed(removed) if removed else ())


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
    low_Q = np.where(np.isneginf(high_Q), 0.0, high_Q)
    sums = (math.fsum(np.exp(column - high)) for column, high in zip(stacked_SQ.T, low_Q))
    return [float(low + math.log(total)) if total else -math.inf for low, total in zip(low_Q, sums)]


class _EncodeFn(beam.DoFn):
    def __init__(self, search: ExactSearch) -> None:
        self._search = search

    def process(self, part: Part):
        register_file_systems()
        yield patiently(self._search.encode, part)


class _ShardFn(beam.DoFn):
    def __init__(self, search: ExactSearch) -> None:
        self._search = search

    def process(self, shard: Part, encoded: list[int]):
        register_file_systems()
        assert len(encoded) == len(self._search.question_parts)
        yield from patiently(lambda: list(self._search.search(shard)))


class _WriteFn(beam.DoFn):
    def __init__(self, search: ExactSearch) -> None:
        self._search = search
        self._parts = {part.index: part for part in search.question_parts}

    def process(self, element):
        register_file_systems()
        index, ((scores, ids, given), log_partition) = element
        merged = {"scores": scores, "ids": ids, "given": given, "log_partition": log_partition}
        source = {**self._parts[index].source, **merged}
        part = Part(index, source)
        search = self._search
        yield count_report(patiently(write_part, search.output, part, search, search.fingerprint))


class SearchShards(beam.PTransform):
    """Shards → reports of the retrieved parts."""

    def __init__(self, search: ExactSearch) -> None:
        super().__init__()
        self._search = search

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        encoded = (
            pipeline
            | "Questions" >> beam.Create(self._search.question_parts)
            | "SpreadQuestions" >> beam.Reshuffle()
            | "Encode" >> beam.ParDo(_EncodeFn(self._search))
        )
        return (
            pipeline
            | "Shards" >> beam.Create(self._search.shards())
            | "SpreadShards" >> beam.Reshuffle()
            | "Search" >> beam.ParDo(_ShardFn(self._search), encoded=beam.pvalue.AsList(encoded))
            | "TopK" >> beam.CombinePerKey(TopKFn(self._search.depth))
            | "Write" >> beam.ParDo(_WriteFn(self._search))
        )
