"""Embed passages with a frozen passage encoder.

python -m beam_jobs.embed --passages passages/ --encoder minilm --output embeddings/
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from shlex import quote

from beam_jobs.handlers import shared_encoder
from beam_jobs.options import job_parser, run_job
from beam_jobs.transforms.embed_passages import EmbedWorker, reused_and_computed, tokens_and_padding
from beam_jobs.transforms.progress import log
from beam_jobs.transforms.stage import StagePlan, run_stage
from rag_core.encoders.locate import locate
from rag_core.errors import DataError, UsageError
from rag_core.parts import Part
from rag_core.run_dir import read_run, run_input
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
    locate(args.encoder)  # a name that is none is told before data is looked at
    manifest = stage_manifest(args.passages, "split")
    if not manifest["rows"]:
        raise DataError(f"{args.passages}: no passages")
    old = stage_manifest(args.reuse, "embed") if args.reuse is not None else None
    compute = _chosen_compute(args, old) if args.compute == "auto" else args.compute
    encoder = shared_encoder(args.encoder, compute)
    fingerprint = encoder.loaded_fingerprint
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
    if old is not None:
        _check_reusable(args.reuse, old, fingerprint, {"dtype": args.dtype, "compute": compute})
        inputs["reuse"] = run_input(old)
    return StagePlan(
        job="embed",
        logic_version=LOGIC_VERSION,
        inputs=inputs,
        models={"encoder": fingerprint},
        options={"dtype": args.dtype, "compute": compute},
        parts=row_group_parts(args.passages),
        worker=EmbedWorker(args.encoder, compute, args.dtype, encoder.dim, args.reuse, fingerprint),
        unit="passages",
        next_step=f"python -m beam_jobs.index --embeddings {quote(args.output)} --kind flat --output INDEX",
        extra={"encoder": about},
        describe=reused_and_computed if args.reuse else tokens_and_padding,
    )


def _chosen_compute(args: argparse.Namespace, old: dict | None) -> str:
    """What a measurement says is fastest here.

    A run that was begun goes on with what it began with, and one that reuses vectors with what made them.
    """
    if not args.runs_here:
        raise UsageError("--compute auto measures this machine, not the workers: give fp32, bf16 or int8")
    begun = None if args.overwrite or args.dry_run else read_run(args.output)
    for run in (begun, old):
        if run and run["job"] == "embed":
            return run["options"]["compute"]
    from rag_core.encoders.compute import fastest_compute

    compute = fastest_compute(args.encoder)
    log.info("--compute auto: %s is the fastest here", compute)
    return compute


def _check_reusable(directory: str, manifest: dict, fingerprint: str, options: dict) -> None:
    """UsageError unless a run's vectors may be copied: same encoder, same numbers."""
    if manifest["encoder"]["fingerprint"] != fingerprint:
        raise UsageError(
            f"--reuse {directory}: made by encoder {manifest['encoder']['name']!r}, another than this one"
        )
    if manifest["options"] != options:
        made, wanted = (
            ", ".join(f"--{k} {v}" for k, v in sorted(o.items())) for o in (manifest["options"], options)
        )
        raise UsageError(f"--reuse {directory}: made with {made}, this run has {wanted}")


def row_group_parts(directory: str) -> list[Part]:
    """One part a row group of the passages: cut by the input, never by the number of workers."""
    return [Part(i, {"url": url, "row_groups": [g]}) for i, (url, g) in enumerate(row_groups(directory))]


def run(argv: Sequence[str] | None = None) -> int:
    """Run the job; see `--help`."""
    return run_stage(parser(), make_plan, argv)


if __name__ == "__main__":
    run_job(run)
