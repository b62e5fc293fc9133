"""Embed passages with a frozen passage encoder.

python -m beam_jobs.embed --passages passages/ --encoder minilm --output embeddings/
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from shlex import quote

from beam_jobs.handlers import shared_encoder
from beam_jobs.options import job_parser, run_job
from beam_jobs.transforms.embed_passages import EmbedWorker, tokens_and_padding
from beam_jobs.transforms.progress import log
from beam_jobs.transforms.stage import StagePlan, run_stage
from rag_core import files
from rag_core.errors import DataError, UsageError
from rag_core.parts import Part
from rag_core.run_dir import run_input
from rag_core.stages import row_groups, stage_manifest

LOGIC_VERSION = 2

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
        "--compute",
        choices=("fp32", "bf16", "int8", "auto"),
        default="fp32",
        help="numbers in the products; auto: the fastest here, by a measurement of seconds",
    )
    return p


def make_plan(args: argparse.Namespace) -> StagePlan:
    manifest = stage_manifest(args.passages, "split")
    if not manifest["rows"]:
        raise DataError(f"{args.passages}: no passages")
    compute = _chosen_compute(args) if args.compute == "auto" else args.compute
    encoder = shared_encoder(args.encoder, compute)
    fingerprint = encoder.fingerprint  # reads all weights: once is enough
    about = {
        "name": args.encoder,
        "fingerprint": fingerprint,
        "fits_passage_encoder": encoder.fits_passage_encoder,
        "score_scale": encoder.score_scale,
        "max_length": encoder.max_length,
        "dim": encoder.dim,
        "token_budget": encoder.token_budget,
    }
    inputs = {"passages": run_input(manifest)}
    if args.reuse:
        inputs["reuse"] = run_input(_reusable(args.reuse, fingerprint, args.dtype, compute))
    return StagePlan(
        job="embed",
        logic_version=LOGIC_VERSION,
        inputs=inputs,
        models={"encoder": fingerprint},
        options={"dtype": args.dtype, "compute": compute},
        parts=row_group_parts(args.passages),
        worker=EmbedWorker(args.encoder, compute, args.dtype, encoder.dim, args.reuse),
        unit="passages",
        next_step=f"python -m beam_jobs.index --embeddings {quote(args.output)} --kind flat --output INDEX",
        extra={"encoder": about},
        describe=tokens_and_padding,
    )


def _chosen_compute(args: argparse.Namespace) -> str:
    """What a measurement says is fastest here; a run that was begun goes on with what it began with."""
    if not args.runs_here:
        raise UsageError("--compute auto measures this machine, not the workers: give fp32, bf16 or int8")
    run_file = files.join(args.output, "_run.json")
    if files.exists(run_file) and not args.overwrite:
        options = files.read_json(run_file).get("options", {})
        if options.get("compute") in ("fp32", "bf16", "int8"):
            return options["compute"]
    from rag_core.encoders.compute import fastest_compute

    compute = fastest_compute(args.encoder)
    log.info("--compute auto: %s is the fastest here", compute)
    return compute


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
