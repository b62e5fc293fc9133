"""Find passages for every question of a test set: exactly, through FAISS, or by BM25.

    python -m beam_jobs.retrieve --questions test.jsonl --task custom --question-encoder minilm \\
        --embeddings embeddings/ --top-k 100 --output retrieved/
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

import apache_beam as beam

from beam_jobs.handlers import shared_encoder
from beam_jobs.options import job_parser, run_job
from beam_jobs.transforms.exact_search import ExactSearch, SearchShards, read_removed
from beam_jobs.transforms.parts import FinishRun
from beam_jobs.transforms.questions import question_parts, questions_input
from beam_jobs.transforms.retrieve_passages import IndexSearchWorker, check_fit
from beam_jobs.transforms.stage import StagePlan, build_part_pipeline, run_stage
from rag_core.datasets import TASKS
from rag_core.digest import digest_of
from rag_core.errors import DataError, UsageError
from rag_core.parts import PartWorker
from rag_core.run_dir import RunDir, run_input
from rag_core.stages import stage_manifest

LOGIC_VERSION = 1
QUESTIONS_PER_PART = 1024

DESCRIPTION = """Find passages for questions.

--embeddings DIR: exact search over all vectors, with the log-partition of the prior over the corpus.
--embeddings BASE DELTA …: passages of a later run are added, or replace those of the same id.
--removed FILE: ids of passages, one a line, that are left out (exact search only).
--fuse DIR: fuse it with another run (BM25's, say) by reciprocal ranks; the logits stay the encoder's.
--index DIR: a FAISS or BM25 index made by beam_jobs.index (BM25 takes no --question-encoder)."""


def parser() -> argparse.ArgumentParser:
    p = job_parser("retrieve", DESCRIPTION)
    p.add_argument("--questions", required=True, metavar="FILE")
    p.add_argument("--task", required=True, choices=TASKS, help="format of the questions")
    p.add_argument(
        "--question-encoder",
        metavar="NAME|DIR|URL",
        help="minilm, a directory, a RAG checkpoint, a URL, org/name",
    )
    p.add_argument("--index", metavar="DIR", help="run directory of beam_jobs.index")
    p.add_argument(
        "--embeddings", metavar="DIR", nargs="+", help="run directories of beam_jobs.embed: exact search"
    )
    p.add_argument("--removed", metavar="FILE", help="passage ids that no longer exist, one a line")
    p.add_argument("--fuse", metavar="DIR", help="another retrieved run, fused with this exact search")
    p.add_argument(
        "--exclude-self", action="store_true", help="leave out the passage whose id is the question's"
    )
    p.add_argument("--top-k", type=int, default=100, help="passages a question")
    return p


def make_plan(args: argparse.Namespace) -> StagePlan:
    if args.top_k < 1:
        raise UsageError(f"--top-k {args.top_k}: must be at least 1")
    if bool(args.index) == bool(args.embeddings):
        raise UsageError("give either --index or --embeddings")
    if args.fuse and not args.embeddings:
        raise UsageError("--fuse needs --embeddings: what only the other run found is scored by its vectors")
    if args.removed and not args.embeddings:
        raise UsageError("--removed needs --embeddings: an index is built anew instead")
    return _exact_plan(args) if args.embeddings else _index_plan(args)


def _exact_plan(args: argparse.Namespace) -> StagePlan:
    if not args.question_encoder:
        raise UsageError("--embeddings needs --question-encoder")
    encoder = shared_encoder(args.question_encoder)
    manifests = [stage_manifest(run, "embed") for run in args.embeddings]
    manifest, deltas = manifests[0], manifests[1:]
    if not manifest["rows"]:
        raise DataError(f"{args.embeddings[0]}: no vectors")
    for run, delta in zip(args.embeddings[1:], deltas):
        if delta["encoder"]["fingerprint"] != manifest["encoder"]["fingerprint"]:
            raise UsageError(f"{run} was embedded by another encoder than {args.embeddings[0]}")
    removed = read_removed(args.removed) if args.removed else ()
    extra = {
        "kind": "exact",
        "scores": {"kind": "dense_logits", "score_scale": encoder.score_scale},
        "encoder_fit": check_fit(args.question_encoder, manifest["encoder"]),
    }
    search = ExactSearch(
        questions=args.questions,
        task=args.task,
        question_encoder=args.question_encoder,
        encoder_fingerprint=encoder.loaded_fingerprint,
        embeddings=tuple(args.embeddings),
        top_k=args.top_k,
        score_scale=encoder.score_scale,
        question_parts=tuple(question_parts(args.questions, args.task, QUESTIONS_PER_PART)),
        fuse=args.fuse,
        removed=args.removed,
        exclude_self=args.exclude_self,
    )
    inputs: dict[str, Any] = {"embeddings": run_input(manifest)}
    if deltas:
        inputs["deltas"] = [run_input(delta) for delta in deltas]
    if removed:
        inputs["removed"] = {"ids": len(removed), "content_digest": digest_of(removed)}
    if args.fuse:
        inputs["fuse"] = run_input(stage_manifest(args.fuse, "retrieve"))
        extra["kind"] = "fused"
    return _plan(args, inputs, {"question_encoder": encoder.loaded_fingerprint}, search, extra)


def _index_plan(args: argparse.Namespace) -> StagePlan:
    manifest = stage_manifest(args.index, "index")
    inputs, models = {"index": run_input(manifest)}, {}
    if manifest["kind"] == "bm25":
        if args.question_encoder:
            raise UsageError(f"{args.index} is a BM25 index; it takes no --question-encoder")
        extra = {"kind": "bm25", "scores": {"kind": "bm25"}}
    else:
        if not args.question_encoder:
            raise UsageError(f"{args.index} holds vectors; give --question-encoder")
        encoder = shared_encoder(args.question_encoder)
        models = {"question_encoder": encoder.loaded_fingerprint}
        extra = {
            "kind": manifest["kind"],
            "scores": {"kind": "dense_logits", "score_scale": encoder.score_scale},
            "encoder_fit": check_fit(args.question_encoder, manifest["encoder"]),
        }
    worker = IndexSearchWorker(
        args.questions,
        args.task,
        args.index,
        args.question_encoder,
        args.top_k,
        args.exclude_self,
        models.get("question_encoder", ""),
    )
    return _plan(args, inputs, models, worker, extra)


def _plan(args: argparse.Namespace, inputs: dict, models: dict, worker: PartWorker, extra: dict) -> StagePlan:
    options = {"top_k": args.top_k, "kind": extra["kind"]}
    if args.exclude_self:
        options["exclude_self"] = True
    return StagePlan(
        job="retrieve",
        logic_version=LOGIC_VERSION,
        inputs={**inputs, "questions": questions_input(args.questions, args.task)},
        models=models,
        options=options,
        parts=question_parts(args.questions, args.task, QUESTIONS_PER_PART),
        worker=worker,
        unit="questions",
        extra=extra,
        next_step=f"python -m eval.run --retrieved {quote(args.output)} --questions {quote(args.questions)} "
        f"--task {args.task} --output RESULTS",
    )


def build_pipeline(pipeline: beam.Pipeline, plan: StagePlan, run: RunDir) -> None:
    """Over an index, part by part; exactly, shard by shard and then the best k of each question."""
    if not isinstance(plan.worker, ExactSearch):
        build_part_pipeline(pipeline, plan, run)
        return
    search = replace(plan.worker, output=run.output, fingerprint=run.fingerprint)
    reports = pipeline | "Retrieve" >> SearchShards(search)
    _ = reports | "Finish" >> FinishRun(run.output, run.run, len(plan.parts), plan.extra)


def run(argv: Sequence[str] | None = None) -> int:
    """Run the job; see `--help`."""
    return run_stage(parser(), make_plan, argv, build_pipeline)


if __name__ == "__main__":
    run_job(run)
