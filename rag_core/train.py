"""`python -m rag_core.train`: train a question encoder and a generator through the RAG marginal.

    python -m rag_core.train --preset tiny --task custom --questions train.jsonl \\
        --embeddings EMBEDDINGS --passages PASSAGES --output CHECKPOINT

The same command started again goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from shlex import quote
from typing import Any

from rag_core.command_line import Parser
from rag_core.errors import run_command
from rag_core.training.config import TrainConfig, load_file, resolve

HELP = {
    "preset": "settings from rag_core/presets, such as tiny or nq",
    "questions": "training questions (a file or URL in the task's format)",
    "dev": "dev questions; the best checkpoint by exact match is kept",
    "generator": "mini-bart, a directory, gs://, s3:// or org/name",
    "question_encoder": "minilm, a directory or a checkpoint",
    "closed_book": "train the bare generator, without retrieval",
    "output": "the checkpoint's directory: new, or a run of the same settings to go on with",
    "batch_size": "questions per step",
    "micro_batch_size": "questions through the model at once (0: all of the step)",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train, and say where the checkpoint is."""
    config, overwrite = parse(argv)
    from rag_core.training.run import run_training

    manifest = run_training(config, overwrite=overwrite)
    em = manifest["dev_exact_match"]
    print(
        f"checkpoint: {config.output} ({manifest['steps']} steps"
        + (f", dev EM {100 * em:.1f} at step {manifest['best_step']})" if em is not None else ")")
    )
    for line in next_steps(config):
        print(line)
    return 0


def next_steps(config: TrainConfig) -> list[str]:
    """What to do with the checkpoint: a trained question encoder retrieves anew before it is answered."""
    asked = f"--questions FILE --task {config.task}"
    answer = f"python -m beam_jobs.generate {asked} --checkpoint {quote(config.output)}"
    if config.closed_book:
        return [f"next: {answer} --closed-book --output PREDICTIONS"]
    kind = "embeddings" if config.embeddings else "index"
    where = f"--{kind} {quote(str(config.embeddings or config.index))}"
    dense = f" --question-encoder {quote(config.output)}" if config.retriever == "dense" else ""
    return [
        f"next: python -m beam_jobs.retrieve {asked}{dense} {where} --output RETRIEVED",
        f"then: {answer} --retrieved RETRIEVED --passages {quote(str(config.passages))} --output PREDICTIONS",
    ]


def parse(argv: Sequence[str] | None) -> tuple[TrainConfig, bool]:
    """The resolved config (defaults < preset < config file < command line), and `--overwrite`."""
    parser = Parser(prog="python -m rag_core.train", description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--config", help="a TOML or JSON file of settings")
    parser.add_argument("--overwrite", action="store_true", help="replace a run of other settings")
    for f in fields(TrainConfig):
        flag = "--" + f.name.replace("_", "-")
        options: dict[str, Any] = {"dest": f.name, "default": argparse.SUPPRESS, "help": HELP.get(f.name)}
        if f.type == "bool":
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, **options)
        elif f.type.startswith("tuple"):
            parser.add_argument(flag, nargs="+", **options)
        else:
            kind = next(k for n, k in (("int", int), ("float", float), ("str", str)) if n in f.type)
            parser.add_argument(flag, type=kind, **options)
    given = vars(parser.parse_args(argv))
    path, overwrite = given.pop("config"), given.pop("overwrite")
    return resolve([*([load_file(path)] if path else []), given]), overwrite


if __name__ == "__main__":
    sys.exit(run_command(main))
