"""Embed passages with a frozen passage encoder.

python -m beam_jobs.embed --passages passages/ --encoder minilm --output embeddings/
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from shlex import quote

from beam_jobs.handlers import shared_encoder
from beam_jobs.options import job_parser, run_job
from beam_jobs.transforms.embed_passages import EmbedWorker
from beam_jobs.transforms.stage import StagePlan, run_stage
from rag_core.errors import DataError, UsageError
from rag_core.parts import Part
from rag_core.run_dir import run_input
from rag_core.stages import row_groups, stage_manifest

LOGIC_VERSION = 1

DESCRIPTION = """Embed passages: one vector a passage, in the order of the passages.

--encoder: minilm (built in), a directory saved by transformers or by this suite, gs:// or s3://, or a
hub id of the form org/name."""


def parser() -> argparse.ArgumentParser:
    p = job_parser("embed", DESCRIPTION)
    p.add_argument("--passages", required=True, metavar="DIR", help="run directory of beam_jobs.split")
    p.add_argument(
        "--reuse", metavar="DIR", help="earlier embeddings: copy the vectors of unchanged passages"
    )
    p.add_argument("--encoder", required=True, metavar="NAME|DIR|URL", help="passage encoder")
    p.add_argument(
        "--dtype", choices=("float32", "float16"), default="float32", help="numbers in the Parquet"
    )
    p.add_argument(
        "--compute", choices=("fp32", "bf16", "int8"), default="fp32", help="numbers in the products"
    )
    return p


def make_plan(args: argparse.Namespace) -> StagePlan:
    encoder = shared_encoder(args.encoder, args.compute)
    manifest = stage_manifest(args.passages, "split")
    if not manifest["rows"]:
        raise DataError(f"{args.passages}: no passages")
    fingerprint = encoder.fingerprint  # reads all weights: once is enough
    about = {
        "name": args.encoder,
        "fingerprint": fingerprint,
        "fits_passage_encoder": encoder.fits_passage_encoder,
        "score_scale": encoder.score_scale,
        "max_length": encoder.max_length,
        "dim": encoder.dim,
    }
    inputs = {"passages": run_input(manifest)}
    if args.reuse:
        inputs["reuse"] = run_input(_reusable(args.reuse, fingerprint, args.dtype, args.compute))
    return StagePlan(
        job="embed",
        logic_version=LOGIC_VERSION,
        inputs=inputs,
        models={"encoder": fingerprint},
        options={"dtype": args.dtype, "compute": args.compute},
        parts=row_group_parts(args.passages),
        worker=EmbedWorker(args.encoder, args.compute, args.dtype, encoder.dim, args.reuse),
        unit="passages",
        next_step=f"python -m beam_jobs.index --embeddings {quote(args.output)} --kind flat --output INDEX",
        extra={"encoder": about},
    )


def _reusable(directory: str, fingerprint: str, dtype: str, compute: str) -> dict:
    """The manifest of a run whose vectors may be copied: same encoder, same numbers. Else UsageError."""
    manifest = stage_manifest(directory, "embed")
    if manifest["encoder"]["fingerprint"] != fingerprint:
        raise UsageError(
            f"--reuse {directory}: made by encoder {manifest['encoder']['name']!r}, another than this one"
        )
    if manifest["options"] != {"compute": compute, "dtype": dtype}:
        raise UsageError(
            f"--reuse {directory}: made with {manifest['options']}, this run has {dtype}, {compute}"
        )
    return manifest


def row_group_parts(directory: str) -> list[Part]:
    """One part a row group of the passages: cut by the input, never by the number of workers."""
    return [Part(i, {"url": url, "row_groups": [g]}) for i, (url, g) in enumerate(row_groups(directory))]


def run(argv: Sequence[str] | None = None) -> int:
    """Run the job; see `--help`."""
    return run_stage(parser(), make_plan, argv)


if __name__ == "__main__":
    run_job(run)
