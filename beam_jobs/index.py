"""Build an index: FAISS over embeddings, or BM25 over passages.

python -m beam_jobs.index --embeddings embeddings/ --kind flat --output index/
python -m beam_jobs.index --passages passages/ --kind bm25 --output bm25/
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from shlex import quote

import apache_beam as beam

from beam_jobs.options import job_parser, run_job
from beam_jobs.transforms.build_index import BuildIndex, IndexTask, shards_of
from beam_jobs.transforms.parts import FinishRun
from beam_jobs.transforms.stage import StagePlan, run_stage
from rag_core.errors import DataError, UsageError
from rag_core.parts import Part
from rag_core.run_dir import RunDir, run_input
from rag_core.stages import stage_manifest

LOGIC_VERSION = 1
FAISS_KINDS = ("flat", "hnsw", "sq8", "hnsw_sq8", "ivf_pq")

DESCRIPTION = """Build an index that lives in memory.

A whole test set needs none: `beam_jobs.retrieve --embeddings` searches exactly by streaming the vectors
once. An index is for training, where questions come a few at a time, and for serving."""


def parser() -> argparse.ArgumentParser:
    p = job_parser("index", DESCRIPTION)
    p.add_argument("--embeddings", metavar="DIR", help="run directory of beam_jobs.embed (FAISS kinds)")
    p.add_argument("--passages", metavar="DIR", help="run directory of beam_jobs.split (bm25)")
    p.add_argument("--kind", required=True, choices=(*FAISS_KINDS, "bm25"))
    return p


def make_plan(args: argparse.Namespace) -> StagePlan:
    lexical = args.kind == "bm25"
    source = args.passages if lexical else args.embeddings
    if not source or (args.embeddings if lexical else args.passages):
        raise UsageError(
            f"--kind {args.kind} needs {'--passages' if lexical else '--embeddings'} and nothing else"
        )
    manifest = stage_manifest(source, "split" if lexical else "embed")
    if not manifest["rows"]:
        raise DataError(f"{source}: no rows to index")
    extra = {"kind": args.kind, "rows_indexed": manifest["rows"]}
    if not lexical:
        extra |= {"encoder": manifest["encoder"], "passages": manifest["inputs"]["passages"]}
    encoder = "--question-encoder minilm " if not lexical else ""
    return StagePlan(
        job="index",
        logic_version=LOGIC_VERSION,
        inputs={"source": run_input(manifest)},
        models={} if lexical else {"encoder": manifest["encoder"]["fingerprint"]},
        options={"kind": args.kind},
        parts=[Part(0, {"source": source})],
        worker=None,
        unit="passages",
        extra=extra,
        next_step=f"python -m beam_jobs.retrieve --index {quote(args.output)} {encoder}"
        "--questions FILE --task TASK --output RETRIEVED",
    )


def build_pipeline(pipeline: beam.Pipeline, plan: StagePlan, run: RunDir) -> None:
    """One part: the whole index, merged from shards where its kind allows."""
    kind, source = plan.options["kind"], plan.parts[0].source["source"]
    task = IndexTask(run.output, run.fingerprint, kind, source, shards_of(kind, source))
    reports = pipeline | "Build" >> BuildIndex(task)
    _ = reports | "Finish" >> FinishRun(run.output, run.run, len(plan.parts), plan.extra)


def run(argv: Sequence[str] | None = None) -> int:
    """Run the job; see `--help`."""
    return run_stage(parser(), make_plan, argv, build_pipeline)


if __name__ == "__main__":
    run_job(run)
