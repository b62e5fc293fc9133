"""`python -m eval.miniature.null_document`: an empty passage beside the K that were retrieved.

The paper tried a document that stands for "no useful passage", with a learned score, and dropped it, because
it changed nothing (section 2.2, appendix). Here it is a passage without title and text in a corpus of its own
copy, and a retrieved run in which every question has it:

    python -m eval.miniature.null_document --checkpoint C --dev dev.jsonl --dev-retrieved R --retrieved R \\
        --passages P --n-docs 5 --output DIR       # DIR/passages, DIR/retrieved: for beam_jobs.generate

Its logit is the question's K-th best plus a bias: the one under which the dev answers are likeliest, the
model as it is (`--bias` fixes it). Shapes: B questions, K passages and the empty one, T target positions.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rag_core import files
from rag_core.command_line import Parser
from rag_core.datasets import load_questions
from rag_core.errors import DataError, UsageError, run_command
from rag_core.parts import Part, PartLog, write_part
from rag_core.run_dir import claim, finish_run, run_input
from rag_core.schemas import PASSAGES, RETRIEVED, Passage, content_hash
from rag_core.stages import read_table, stage_manifest

if TYPE_CHECKING:
    import torch

    from rag_core.models import RagModel
    from rag_core.schemas import Question

NULL_ID = "null:0"
BIASES = tuple(b / 2 for b in range(-16, 17))
"""Candidates for the bias, in nats: from e⁻⁸ to e⁸ times the weight of the K-th passage."""
LEARNED = "bias.json"


@dataclass(frozen=True)
class Table:
    """A worker that has its one part already."""

    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def setup(self) -> None:
        pass

    def rows(self, source: dict[str, Any], log: PartLog) -> Iterator[pa.RecordBatch]:
        log.read = log.written = len(self.table)
        yield from self.table.to_batches()


def with_null(row: dict[str, Any], n_docs: int, bias: float) -> dict[str, Any]:
    """A row of `retrieved`: its first `n_docs` passages and the empty one, best first.

    A question without any passage has the empty one alone.
    """
    scores, ids = list(row["doc_scores"][:n_docs]), list(row["passage_ids"][:n_docs])
    scores.append((scores[-1] if scores else 0.0) + bias)
    ids.append(NULL_ID)
    order = sorted(range(len(ids)), key=lambda i: (-scores[i], i))
    return {
        "question_id": row["question_id"],
        "passage_ids": [ids[i] for i in order],
        "doc_scores": [scores[i] for i in order],
        "log_partition": None,
    }


def likeliest_bias(log_probs_BKT: torch.Tensor, scores_BK: torch.Tensor, scored_BT: torch.Tensor,
                   kind: str) -> tuple[float, list[float]]:  # fmt: skip
    """The bias of `BIASES` with the highest log-likelihood of the targets, and the mean of each, in nats.

    The last of the K+1 columns is the empty passage, its score that of the passage before it.
    """
    from rag_core.models import marginals

    marginal = marginals.token_log_likelihood if kind == "token" else marginals.sequence_log_likelihood
    means = []
    for bias in BIASES:
        moved_BK = scores_BK.clone()
        moved_BK[:, -1] += bias
        prior_BK = marginals.doc_log_prior(moved_BK)
        means.append(float(marginal(log_probs_BKT, prior_BK, scored_BT).mean()))
    return BIASES[max(range(len(means)), key=means.__getitem__)], means


def learn_bias(
    model: RagModel, dev: Sequence[Question], retrieved: str, passages: str, n_docs: int
) -> tuple[float, dict[str, Any]]:
    """`likeliest_bias` of the dev questions with answers of kind text and `n_docs` passages; and the
    likelihood by bias, how many questions those were, how many have fewer passages."""
    import torch

    from rag_core.retrieval import PassageStore
    from rag_core.training.loss import Batcher
    from rag_core.training.retrieval import Retrieved

    dev = [q for q in dev if q.answer_kind == "text"]
    if not dev:
        raise DataError("no dev question has an answer of kind text")
    found = {r["question_id"]: r for r in read_table(retrieved).to_pylist()}
    for q in dev:
        if q.question_id not in found:
            raise DataError(f"{retrieved}: no row for question {q.question_id!r}")
    whole = [q for q in dev if len(found[q.question_id]["passage_ids"]) >= n_docs]
    if not whole:
        raise DataError(f"{retrieved}: no dev question has {n_docs} passages")
    store, batcher = PassageStore.open(passages), Batcher(model, 64)
    pieces = []
    for at in range(0, len(whole), 16):
        part = whole[at : at + 16]
        rows = [found[q.question_id] for q in part]
        texts = [[*store.get(r["passage_ids"][:n_docs]), Passage(NULL_ID, "", "")] for r in rows]
        scores = [[*r["doc_scores"][:n_docs], r["doc_scores"][n_docs - 1]] for r in rows]
        ids = [[p.passage_id for p in t] for t in texts]
        given = Retrieved(ids, texts, torch.tensor(scores, dtype=torch.float32))
        with torch.no_grad():
            contexts = model.encode(*batcher.contexts([q.question for q in part], given))
            labels_BT = batcher.labels_BT([q.answers[0] for q in part])
            pieces.append((*model.target_log_probs(contexts, labels_BT), given.doc_scores_BK))
    width = max(log_probs.shape[2] for log_probs, _, _ in pieces)
    pad = torch.nn.functional.pad
    log_probs_BKT = torch.cat([pad(p, (0, width - p.shape[2])) for p, _, _ in pieces])
    scored_BT = torch.cat([pad(s, (0, width - s.shape[1])) for _, s, _ in pieces])
    scores_BK = torch.cat([s for _, _, s in pieces])
    bias, means = likeliest_bias(log_probs_BKT, scores_BK, scored_BT, model.kind)
    return bias, {
        "dev_log_likelihood": means,
        "biases": list(BIASES),
        "dev_questions": len(whole),
        "dev_with_too_few_passages": len(dev) - len(whole),
    }


def write_run(
    output: str, job: str, table: pa.Table, inputs: dict[str, Any], options: dict[str, Any]
) -> None:
    """A finished run directory of one part."""
    run = claim(output, job, logic_version=1, inputs=inputs, models={}, options=options, overwrite=True)
    if run.finished is None:
        with run.alive():
            report = write_part(output, Part(0, {}), Table(table), run.fingerprint)
            finish_run(output, run.run, [report], 1, {"made_by": "eval.miniature.null_document"})


def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m eval.miniature.null_document", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--checkpoint", required=True, metavar="DIR")
    parser.add_argument(
        "--dev", required=True, metavar="FILE", help="questions (custom) to learn the bias on"
    )
    parser.add_argument("--dev-retrieved", required=True, metavar="DIR")
    parser.add_argument("--retrieved", required=True, metavar="DIR")
    parser.add_argument("--passages", required=True, metavar="DIR")
    parser.add_argument("--n-docs", type=int, required=True)
    parser.add_argument("--bias", type=float, help="fixed, instead of learned")
    parser.add_argument("--output", required=True, metavar="DIR")
    args = parser.parse_args(argv)
    if args.n_docs < 1:
        raise UsageError(f"--n-docs {args.n_docs}: must be at least 1")
    if args.bias is not None and not math.isfinite(args.bias):
        raise UsageError(f"--bias {args.bias}: expected a finite number")
    outputs = [os.path.realpath(os.path.join(args.output, name)) for name in ("passages", "retrieved")]
    for path in (args.retrieved, args.dev_retrieved, args.passages):
        if os.path.realpath(path) in outputs:
            raise UsageError(f"--output {args.output}: {path} is read")
    given = {"retrieved": run_input(stage_manifest(args.retrieved, "retrieve")),
             "passages": run_input(stage_manifest(args.passages, "split"))}  # fmt: skip
    own = read_table(args.passages)
    if pc.is_in(pa.scalar(NULL_ID), own["passage_id"]).as_py():
        raise UsageError(f"{args.passages}: has the passage {NULL_ID!r} already")
    bias, learned = args.bias, {}
    if bias is None:
        from rag_core.models import RagModel

        dev = load_questions(args.dev, "custom").questions
        model = RagModel.from_pretrained(args.checkpoint)
        bias, learned = learn_bias(model, dev, args.dev_retrieved, args.passages, args.n_docs)
    empty = {"passage_id": NULL_ID, "page_id": None, "title": "", "text": "", "n_words": 0,
             "content_hash": content_hash("", "")}  # fmt: skip
    passages = pa.concat_tables([own, pa.Table.from_pylist([empty], PASSAGES)])
    rows = [with_null(row, args.n_docs, bias) for row in read_table(args.retrieved).to_pylist()]
    options = {"n_docs": args.n_docs, "bias": bias}
    write_run(files.join(args.output, "passages"), "split", passages, {"passages": given["passages"]}, {})
    retrieved = pa.Table.from_pylist(rows, RETRIEVED)
    write_run(files.join(args.output, "retrieved"), "retrieve", retrieved, given, options)
    about = {**options, "learned": args.bias is None, **learned}
    Path(args.output, LEARNED).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    print(f"{args.output}: {len(rows):,} questions, bias {bias:+.1f} nats")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
