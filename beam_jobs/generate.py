"""Answer questions with a RAG checkpoint.

    python -m beam_jobs.generate --questions test.jsonl --task custom --checkpoint checkpoint/ \\
        --retrieved retrieved/ --passages passages/ --output predictions/
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from shlex import quote
from typing import Any

from beam_jobs.handlers import shared_model
from beam_jobs.options import job_parser, run_job
from beam_jobs.transforms.generate_answers import GenerateWorker
from beam_jobs.transforms.questions import question_parts, questions_input
from beam_jobs.transforms.stage import StagePlan, run_stage
from rag_core.datasets import TASKS
from rag_core.digest import file_digest
from rag_core.errors import UsageError
from rag_core.parts import Part
from rag_core.run_dir import run_input
from rag_core.stages import stage_manifest
from rag_core.training.config import load_preset

LOGIC_VERSION = 2
QUESTIONS_PER_PART = 128

DESCRIPTION = """Answer questions: RAG-Token, RAG-Sequence, or the bare generator.

One of three inputs: --retrieved with --passages; --given-contexts (rows with `ctxs`); --closed-book."""


def parser() -> argparse.ArgumentParser:
    p = job_parser("generate", DESCRIPTION)
    p.add_argument("--questions", required=True, metavar="FILE")
    p.add_argument("--task", required=True, choices=TASKS)
    p.add_argument(
        "--checkpoint", required=True, metavar="DIR|NAME", help="RAG checkpoint, or a bare generator"
    )
    p.add_argument("--retrieved", metavar="DIR", help="run directory of beam_jobs.retrieve")
    p.add_argument("--passages", metavar="DIR", help="run directory of beam_jobs.split")
    p.add_argument("--given-contexts", action="store_true", help="passages stand in the questions file")
    p.add_argument("--closed-book", action="store_true", help="no passages")
    p.add_argument("--preset", help="a task's settings for what is not given below, such as nq or msmarco")
    p.add_argument("--kind", choices=("sequence", "token"), help="the marginal; default: the checkpoint's")
    p.add_argument("--n-docs", type=int, help="passages a question; default: the checkpoint's")
    p.add_argument("--decoding", choices=("greedy", "beam", "thorough", "fast"), help="default: by kind")
    p.add_argument(
        "--compute",
        choices=("fp32", "bf16", "int8"),
        default="fp32",
        help="bf16 where the machine multiplies it in hardware; int8: the generator's encoder, on a CPU",
    )
    p.add_argument("--num-beams", type=int, help="default: 1")
    p.add_argument("--max-length", type=int, help="tokens of an answer, start and end included; default: 50")
    p.add_argument("--min-length", type=int, help="likewise; default: 0")
    p.add_argument("--length-penalty", type=float, help="default: 1.0")
    p.add_argument("--no-repeat-ngram-size", type=int, help="default: 0, which allows all")
    p.add_argument("--num-return-sequences", type=int, help="candidates kept a question; default: 1")
    p.add_argument(
        "--labels",
        nargs="+",
        metavar="LABEL",
        help="answer with one of these; default: the checkpoint's labels",
    )
    return p


def make_plan(args: argparse.Namespace) -> StagePlan:
    from rag_core.decoding import DecodingConfig
    from rag_core.decoding.labels import label_tokens

    sources = [bool(args.retrieved), args.given_contexts, args.closed_book]
    if sum(sources) != 1:
        raise UsageError("give exactly one of --retrieved, --given-contexts, --closed-book")
    if bool(args.retrieved) != bool(args.passages):
        raise UsageError("--retrieved and --passages belong together")
    settings = _settings(args)
    if settings["n_docs"] is not None and settings["n_docs"] < 1:
        raise UsageError(f"--n-docs {settings['n_docs']}: must be at least 1")
    kind = settings.pop("kind")
    kind = "closed_book" if args.closed_book else kind
    model = shared_model(args.checkpoint, kind, args.compute)
    if model.generator.tokenizer is None:
        raise UsageError(f"--checkpoint {args.checkpoint}: its generator has no tokenizer; answers need one")
    if model.kind == "closed_book" and not args.closed_book:
        raise UsageError(
            f"--checkpoint {args.checkpoint}: trained closed-book, it would leave the passages unread; "
            "give --closed-book, or --kind to read them"
        )
    n_docs = settings.pop("n_docs") or model.n_docs
    labels = tuple(args.labels) if args.labels else None
    try:
        config = DecodingConfig(**settings, allowed_answers=labels)
        config = config.resolved(model.kind, model.target_layout)
        label_tokens(labels or model.labels, model.generator.tokenizer)
    except ValueError as error:
        raise UsageError(str(error)) from error
    most = model.generator.max_positions
    if most is not None and config.max_length > most + 1:
        raise UsageError(f"--max-length {config.max_length}: the generator holds {most + 1}")
    inputs = {"questions": questions_input(args.questions, args.task)}
    if args.retrieved:
        inputs["retrieved"] = run_input(stage_manifest(args.retrieved, "retrieve"))
        inputs["passages"] = run_input(stage_manifest(args.passages, "split"))
    if args.given_contexts:
        inputs["contexts"] = file_digest(args.questions)
    decoding = config.to_json()
    worker = GenerateWorker(
        questions=args.questions,
        task=args.task,
        checkpoint=args.checkpoint,
        kind=kind,
        compute=args.compute,
        retrieved=args.retrieved,
        passages=args.passages,
        given_contexts=args.given_contexts,
        n_docs=n_docs,
        decoding=decoding,
        fingerprint=model.fingerprint,
    )
    parts: list[Part] = question_parts(args.questions, args.task, QUESTIONS_PER_PART)
    return StagePlan(
        job="generate",
        logic_version=LOGIC_VERSION,
        inputs=inputs,
        models={"checkpoint": model.fingerprint},
        options={
            "kind": model.kind,
            "n_docs": n_docs,
            "compute": args.compute,
            "decoding": decoding,
            "labels": list(labels or model.labels),
        },
        parts=parts,
        worker=worker,
        unit="questions",
        next_step=f"python -m eval.run --predictions {quote(args.output)} "
        f"--questions {quote(args.questions)} --task {args.task} --output RESULTS",
    )


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    """What decides the decoding: the command line, else the preset, else the defaults."""
    names = ("kind", "n_docs", "decoding", "num_beams", "max_length", "min_length", "length_penalty")
    names += ("no_repeat_ngram_size", "num_return_sequences")
    preset: dict[str, Any] = {}
    if args.preset is not None:
        preset = load_preset(args.preset, "generate")
        if args.kind == "token":
            preset = load_preset(args.preset, "generate_token") or preset
        if args.closed_book:
            preset = {k: v for k, v in preset.items() if k not in ("kind", "n_docs", "decoding")}
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    return {"kind": None, "n_docs": None, **preset, **given}


def run(argv: Sequence[str] | None = None) -> int:
    """Run the job; see `--help`."""
    return run_stage(parser(), make_plan, argv)


if __name__ == "__main__":
    run_job(run)
