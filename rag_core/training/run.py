"""A training run from its config: claim the directory, load, train, write the checkpoint.

OUTPUT/_run.json, _config.json, _log.jsonl     first: what runs, with which settings, how it goes
OUTPUT/_work/state/step-N, _work/best          while it runs
OUTPUT/generator/, question_encoder/           the result (the best by dev EM, else the last)
OUTPUT/_last/                                  the last weights, where the best are others
OUTPUT/checkpoint.json, _manifest.json         last: the checkpoint is whole
"""

from __future__ import annotations

import hashlib
import math
import shutil
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from rag_core import files
from rag_core.checkpoints.native import save_native
from rag_core.checkpoints.store import MARKER
from rag_core.datasets import load_questions
from rag_core.decoding.labels import label_tokens
from rag_core.digest import digest_of
from rag_core.errors import DataError, UsageError
from rag_core.models import ContextFormat, Generator, RagModel, load_generator
from rag_core.outputs import check_output, refuse_overlap
from rag_core.run_dir import RunDir, claim, run_input
from rag_core.schemas import Question
from rag_core.stages import stage_manifest
from rag_core.training.config import TrainConfig
from rag_core.training.distributed import Group
from rag_core.training.examples import describe
from rag_core.training.log import Log
from rag_core.training.loop import Progress, train
from rag_core.training.loss import Batcher
from rag_core.training.retrieval import Bm25Retriever, DenseRetriever, Retriever
from rag_core.training.state import is_full, last_state, latest_state
from rag_core.training.targets import training_pairs
from rag_core.versions import package_versions

if TYPE_CHECKING:
    from rag_core.retrieval import PassageStore

LOGIC_VERSION = 1
READS = (
    "questions",
    "dev",
    "embeddings",
    "index",
    "passages",
    "answers_from",
    "generator",
    "question_encoder",
)
STAGES = {"embeddings": "embed", "index": "index", "passages": "split", "answers_from": "retrieve"}


def run_training(config: TrainConfig, *, overwrite: bool = False) -> dict[str, Any]:
    """Run a training to its end, or return at once when the same one is finished. Returns the manifest.

    Under `torchrun` the first process claims, logs and writes; all of them train.
    """
    config.check()
    if not files.is_local(config.output):
        raise UsageError(f"--output {config.output}: train to a local directory and copy it afterwards")
    check_output(config.output)
    refuse_overlap(
        config.output, {f"--{n.replace('_', '-')}": [v] for n in READS if (v := getattr(config, n))}
    )
    group = Group()
    model = build_model(config)
    claimed = _claim(config, model, overwrite) if group.is_main else None
    (finished, *_) = group.gather(claimed.finished if claimed else None)
    if finished is not None:
        shutil.rmtree(Path(config.output) / "_work", ignore_errors=True)
        return finished
    try:
        with claimed.alive() if claimed else nullcontext():
            return _run(config, model, claimed, group)
    except (OSError, SafetensorError) as error:
        if not is_full(error):
            raise
        left = last_state(Path(config.output) / "_work" / "state")
        raise UsageError(f"{config.output}: could not be written ({error}); {left}") from error


def _claim(config: TrainConfig, model: RagModel, overwrite: bool) -> RunDir:
    from rag_core.encoders.text_encoder import weights_digest

    encoder = model.question_encoder
    return claim(
        config.output,
        "train",
        logic_version=LOGIC_VERSION,
        inputs=_inputs(config),
        models={
            "generator": weights_digest(model.generator),
            "question_encoder": encoder.fingerprint if encoder is not None else None,
        },
        options={k: v for k, v in config.to_json().items() if k != "output"},
        seed=config.seed,
        overwrite=overwrite,
    )


def _run(config: TrainConfig, model: RagModel, claimed: RunDir | None, group: Group) -> dict[str, Any]:
    output, work, started = Path(config.output), Path(config.output) / "_work", time.monotonic()
    log = Log(output / "_log.jsonl" if group.is_main else None, quiet=not group.is_main)
    if group.is_main:
        resume = latest_state(work / "state") is not None
        _clear(output, resume)
        files.write_json(str(output / "_config.json"), config.to_json())
        log.start(resume=resume, tensorboard=config.tensorboard)
    loaded = load_questions(config.questions, config.task)
    examples = training_pairs(loaded.questions, config)
    if config.labels:
        model.info["text_answers"] = not all(example.is_label for example in examples)
    dev = load_dev(config) if config.dev else []
    steps = plan_steps(config, len(examples))
    cut = Batcher(model, config.max_target_length, config.labels).count_cut(examples)
    log.line(describe(loaded, examples))
    for line in plan_lines(config, len(examples), steps, cut):
        log.line(line)
    retriever = build_retriever(config, model)
    progress = train(model, examples, retriever, config, work, steps=steps, dev=dev, log=log)
    if claimed is None:
        return {"steps": progress.step, "best_step": progress.best_step, "dev_exact_match": progress.best_em}
    model.eval()
    save_native(model, str(output))
    if (work / "last").is_dir():
        shutil.rmtree(output / "_last", ignore_errors=True)
        (work / "last").rename(output / "_last")
    counts = {
        "questions": len(loaded.questions),
        "rejected": loaded.reasons,
        "examples": len(examples),
        "truncated": cut,
    }
    manifest = _finish(config, model, claimed, counts, progress, time.monotonic() - started)
    shutil.rmtree(work, ignore_errors=True)  # last: until the manifest is there, a restart goes on from it
    return manifest


def _clear(output: Path, resume: bool) -> None:
    """Take away what an earlier training left here: its marker, and if this one begins anew its results.

    Parts that this run does not write, such as a question encoder, would pass for its own.
    """
    files.delete([str(output / MARKER)])
    if not resume and (output / "_config.json").is_file():
        for name in ("generator", "question_encoder", "_last", "_tensorboard"):
            shutil.rmtree(output / name, ignore_errors=True)


def load_dev(config: TrainConfig) -> list[Question]:
    """The dev questions, at most `dev_limit`. Raises DataError when there are none."""
    dev = load_questions(config.dev, config.task)
    if not dev.questions:
        raise DataError(f"{config.dev}: no dev question ({dict(dev.reasons) or 'an empty file'})")
    return dev.questions[: config.dev_limit or None]


def plan_steps(config: TrainConfig, n_examples: int) -> int:
    """How many steps the config asks for. Raises UsageError when that is none."""
    steps = config.steps or math.ceil(config.epochs * n_examples / config.batch_size)
    if steps < 1:
        raise UsageError(f"{n_examples} examples, epochs {config.epochs}: no step to make")
    return steps


def plan_lines(config: TrainConfig, n_examples: int, steps: int, cut: dict[str, int]) -> list[str]:
    """What is about to happen, and what of it can hardly be meant."""
    epochs = steps * config.batch_size / n_examples
    lines = [
        f"plan: {steps} steps of {config.batch_size} questions ({epochs:.1f} epochs), seed {config.seed}"
    ]
    for what, n in cut.items():
        if n:
            lines.append(f"cut to fit: {n} of {n_examples} {what}")
    if config.warmup_steps >= steps:
        lines.append(f"warning: the warm-up of {config.warmup_steps} steps ends after the last one")
    if config.dev is None and (config.eval_every or config.patience):
        lines.append("warning: without --dev nothing is evaluated, and patience has no effect")
    return lines


def build_model(config: TrainConfig) -> RagModel:
    """The model to train, from the generator and question encoder the config names."""
    generator = load_generator(config.generator)
    if generator.tokenizer is None:
        raise UsageError(f"--generator {config.generator}: no tokenizer there; training needs one")
    _check_targets(config, generator)
    encoder = None
    if not config.closed_book and config.retriever == "dense":
        from rag_core.encoders import load_encoder

        encoder = load_encoder(config.question_encoder)
        if config.freeze_question_encoder:
            encoder.module.requires_grad_(False)
    length = min(config.max_context_length, generator.max_positions or config.max_context_length)
    return RagModel(
        generator,
        encoder,
        kind="closed_book" if config.closed_book else config.kind,
        n_docs=config.n_docs,
        context_format=ContextFormat(max_length=length),
        labels=config.labels,
        info={"task": config.task, "retriever": config.retriever, "preset": config.preset},
    )


def _check_targets(config: TrainConfig, generator: Generator) -> None:
    """Refuse labels that begin alike, and target lengths that the generator cannot hold."""
    try:
        label_tokens(config.labels, generator.tokenizer)
    except ValueError as error:
        raise UsageError(f"--labels: {error}") from error
    least, most = len(generator.layout.prefix) + 2, generator.max_positions or config.max_target_length
    if not config.labels and not least <= config.max_target_length <= most:
        raise UsageError(
            f"--max-target-length {config.max_target_length}: start, end and one token need {least}, "
            f"the generator holds {most}"
        )


def build_retriever(config: TrainConfig, model: RagModel) -> Retriever | None:
    """What finds the passages during training; None for closed book."""
    if config.closed_book:
        return None
    from rag_core.retrieval import Bm25Index, ExactIndex, PassageStore

    store = PassageStore.open(config.passages)
    if config.retriever == "bm25":
        return Bm25Retriever(Bm25Index.open(config.index), store)
    trained = not config.freeze_question_encoder
    where = config.embeddings or config.index
    _check_fit(model, stage_manifest(where, "embed" if config.embeddings else "index"), where)
    if config.embeddings is not None:
        from rag_core import read_embeddings

        ids, vectors_ND = read_embeddings(where)
        index: Any = ExactIndex(vectors_ND, ids)
    else:
        from rag_core.retrieval import FaissIndex

        index = FaissIndex.open(where)
        ids, vectors_ND = index.ids, index.vectors()
    _check_texts(config.passages, store, ids)
    return DenseRetriever(model.question_encoder, index, ids, vectors_ND, store, trained)


def _check_texts(passages: str, store: PassageStore, ids: Sequence[str]) -> None:
    """A thousand of the vectors' passages must have texts: those of another corpus have none."""
    try:
        store.get(ids[:: max(len(ids) // 1000, 1)])
    except DataError as error:
        raise DataError(
            f"--passages {passages}: not the passages that the vectors are of: {error}"
        ) from error


def _check_fit(model: RagModel, manifest: dict[str, Any], where: str) -> None:
    """The question encoder must belong to the encoder that made the vectors."""
    if "encoder" not in manifest:
        raise UsageError(f"{where}: an index of kind {manifest.get('kind')!r} holds no vectors to train with")
    fits = model.question_encoder.fits_passage_encoder
    made_by = manifest["encoder"].get("fingerprint")
    if fits is not None and made_by is not None and fits != made_by:
        raise UsageError(
            f"{where}: made by encoder {made_by[:12]}, the question encoder fits {fits[:12]}; "
            "embed the passages with the encoder the question encoder belongs to"
        )


def _inputs(config: TrainConfig) -> dict[str, Any]:
    """What enters the run's fingerprint: files by checksum, stages by their rows."""
    inputs: dict[str, Any] = {}
    for name in ("questions", "dev"):
        if (url := getattr(config, name)) is not None:
            inputs[name] = hashlib.sha256(files.read_bytes(url)).hexdigest()
    for name in STAGES:
        if (
            not (config.closed_book and name in ("embeddings", "index"))
            and (url := getattr(config, name)) is not None
        ):
            inputs[name] = run_input(stage_manifest(url, STAGES[name]))
    return inputs


def _finish(
    config: TrainConfig,
    model: RagModel,
    claimed: RunDir,
    counts: dict[str, Any],
    progress: Progress,
    seconds: float,
) -> dict[str, Any]:
    from rag_core.encoders.text_encoder import weights_digest

    encoder = model.question_encoder
    claimed.heartbeat()  # raises when another process has taken the directory over
    manifest = {
        **{k: claimed.run[k] for k in ("job", "fingerprint", "logic_version", "inputs", "models", "options")},
        "seed": config.seed,
        "parts": [],  # a checkpoint has no rows; what it is made of enters the digest
        "rows": 0,
        "content_digest": digest_of([weights_digest(model.generator), encoder and encoder.fingerprint]),
        **counts,
        "steps": progress.step,
        "best_step": progress.best_step,
        "dev_exact_match": progress.best_em,
        "ids_seen": progress.ids_seen,
        "versions": package_versions(),
        "seconds": round(seconds, 3),
    }
    files.write_json(files.join(config.output, "_manifest.json"), manifest)
    return manifest
