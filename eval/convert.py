"""Results in the formats of other tools, and theirs in ours.

    python -m eval.convert to-trec   --retrieved DIR --output run.trec
    python -m eval.convert to-dpr    --retrieved DIR --passages DIR --questions FILE --task T --output F
    python -m eval.convert to-kilt   --predictions DIR|FILE --questions FILE --task T --output F.jsonl
    python -m eval.convert to-squad  --predictions DIR|FILE --output predictions.json
    python -m eval.convert to-tsv    --predictions DIR|FILE --output predictions.tsv
    python -m eval.convert to-psgs   --passages DIR --output psgs.tsv
    python -m eval.convert from-trec --input run.trec --output retrieved.parquet
    python -m eval.convert from-dpr  --input run.json --task T --output retrieved.parquet

`from-…` write one Parquet file that `eval.run --retrieved` takes. An output that exists is refused.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from beam_jobs.options import HelpFormatter, Parser, register_file_systems
from eval._gold import page_of
from eval._join import join_by_id
from eval._predictions import read_predictions, read_retrieved
from rag_core import files
from rag_core.answers import has_answer
from rag_core.datasets import TASKS, load_questions
from rag_core.errors import DataError, UsageError, run_command
from rag_core.schemas import RETRIEVED
from rag_core.stages import read_table


def to_trec(args: argparse.Namespace) -> bytes:
    """`qid Q0 passage rank score tag`, ranks from 1. An id with white space has no place in the format.

    TREC's tools order by score and read no ranks. The scores of a fused run are logits of the encoder,
    its order is another: where a run's scores rise anywhere, every score is written as 1/rank.
    """
    lines = []
    rows = read_retrieved(args.retrieved).to_pylist()
    fused = any(a < b for row in rows for a, b in itertools.pairwise(row["doc_scores"]))
    for row in rows:
        for rank, (passage, score) in enumerate(zip(row["passage_ids"], row["doc_scores"]), 1):
            score = 1 / rank if fused else score
            for name in (row["question_id"], passage):
                if len(name.split()) != 1:
                    raise DataError(f"{args.retrieved}: id {name!r} cannot be written in TREC's format")
            lines.append(f"{row['question_id']} Q0 {passage} {rank} {score!r} ragline\n")
    return "".join(lines).encode()


def to_dpr(args: argparse.Namespace) -> bytes:
    """DPR's retriever output: question, answers and `ctxs` with id, title, text, score, has_answer."""
    from rag_core.retrieval import PassageStore

    store = PassageStore.open(args.passages)
    questions = load_questions(args.questions, args.task).questions
    joined = join_by_id(args.retrieved, read_retrieved(args.retrieved), questions, ("passage_ids",))
    rows = joined.take([q.question_id for q in questions], ("passage_ids", "doc_scores"))
    out = []
    for question, ids, scores in zip(questions, rows["passage_ids"], rows["doc_scores"]):
        match = "regex" if question.answer_kind == "regex" else "string"
        found = zip(store.get(ids or []), scores or [])
        contexts = [
            {
                "id": passage.passage_id,
                "title": passage.title,
                "text": passage.text,
                "score": score,
                "has_answer": has_answer(passage.text, question.answers, match),
            }
            for passage, score in found
        ]
        out.append({"question": question.question, "answers": list(question.answers), "ctxs": contexts})
    return (json.dumps(out, ensure_ascii=False, indent=1) + "\n").encode()


def to_kilt(args: argparse.Namespace) -> bytes:
    """KILT's prediction lines for every question of the set; a missing prediction is an empty answer."""
    questions = load_questions(args.questions, args.task).questions
    joined = join_by_id(args.predictions, read_predictions(args.predictions), questions, ("prediction",))
    rows = joined.take([q.question_id for q in questions], ("prediction", "passage_ids"))
    lines = []
    for question, answer, ids in zip(questions, rows["prediction"], rows["passage_ids"]):
        pages = dict.fromkeys(page_of(i) for i in ids or [])
        output = {"answer": answer or "", "provenance": [{"wikipedia_id": page} for page in pages]}
        lines.append({"id": question.question_id, "input": question.question, "output": [output]})
    return _lines(lines)


def to_squad(args: argparse.Namespace) -> bytes:
    """`{id: answer}`, as SQuAD's script reads it; questions without a prediction are left out."""
    return (json.dumps(dict(_answers(args.predictions)), ensure_ascii=False, indent=1) + "\n").encode()


def to_psgs(args: argparse.Namespace) -> bytes:
    """`id TAB text TAB title` with a header, the layout of psgs_w100; white space in a cell is one space."""
    table = read_table(args.passages, ["passage_id", "text", "title"])
    rows = [("id", "text", "title"), *zip(*(column.to_pylist() for column in table.columns))]
    return "".join("\t".join(" ".join(cell.split()) for cell in row) + "\n" for row in rows).encode()


def to_tsv(args: argparse.Namespace) -> bytes:
    """`question_id TAB prediction` with a header; tabs and line ends in a text become spaces."""
    rows = [("question_id", "prediction"), *_answers(args.predictions)]
    return "".join("\t".join(" ".join(cell.split()) for cell in row) + "\n" for row in rows).encode()


def from_trec(args: argparse.Namespace) -> bytes:
    """A TREC run, ordered by (−score, id) whatever its ranks say; scores are kept as doc_scores."""
    found: dict[str, dict[str, float]] = {}
    for number, line in enumerate(files.read_bytes(args.input).decode("utf-8").split("\n"), 1):
        if not line.strip():
            continue
        cells = line.split()
        where = f"{args.input}, line {number}"
        if len(cells) < 5:
            raise DataError(f"{where}: expected qid Q0 passage rank score tag")
        question, _, passage, _, score = cells[:5]
        _add(where, question, found.setdefault(question, {}), passage, score)
    rows = []
    for question, scores in found.items():
        ranking = sorted(scores, key=lambda passage: (-scores[passage], passage))
        rows.append((question, ranking, [scores[passage] for passage in ranking]))
    return _retrieved(rows)


def _add(where: str, question: str, scores: dict[str, float], passage: str, score: Any) -> None:
    """One passage of a ranking. DataError for a score that is no number, and for a passage that is there."""
    try:
        value = float(score)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{where}: score {score!r}: expected a finite number")
    if passage in scores:
        raise DataError(f"{where}: passage {passage} is there twice for question {question}")
    scores[passage] = value


def from_dpr(args: argparse.Namespace) -> bytes:
    """DPR's retriever output; its questions have no ids: they are `{task}-{place}`, as the loader's."""
    rows = []
    for number, row in enumerate(files.read_json(args.input), 1):
        if not isinstance(row, dict) or not isinstance(row.get("ctxs"), list):
            raise DataError(f"{args.input}, record {number}: expected question, answers and ctxs")
        name = str(row.get("id", f"{args.task}-{number}"))
        scores: dict[str, float] = {}
        for rank, context in enumerate(row["ctxs"], 1):
            where = f"{args.input}, record {number}, passage {rank}"
            if not isinstance(context, dict) or "id" not in context:
                raise DataError(f"{where}: expected id and score")
            _add(where, name, scores, str(context["id"]), context.get("score", 0))
        rows.append((name, list(scores), list(scores.values())))
    return _retrieved(rows)


def _answers(path: str) -> Iterator[tuple[str, str]]:
    table = read_predictions(path)
    for name, answer in zip(table["question_id"].to_pylist(), table["prediction"].to_pylist()):
        if name is None:
            raise DataError(f"{path}: predictions have no ids")
        if answer is not None:
            yield name, answer


def _retrieved(rows: Any) -> bytes:
    columns = ("question_id", "passage_ids", "doc_scores")
    table = pa.Table.from_pylist([dict(zip(columns, row)) for row in rows], RETRIEVED)
    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


_TO: dict[str, tuple[Callable[[argparse.Namespace], bytes], str]] = {
    "to-trec": (to_trec, "retrieved"),
    "to-dpr": (to_dpr, "retrieved passages questions task"),
    "to-kilt": (to_kilt, "predictions questions task"),
    "to-squad": (to_squad, "predictions"),
    "to-tsv": (to_tsv, "predictions"),
    "to-psgs": (to_psgs, "passages"),
    "from-trec": (from_trec, "input"),
    "from-dpr": (from_dpr, "input task"),
}


def parser() -> Parser:
    p = Parser(
        prog="python -m eval.convert", description=__doc__, formatter_class=HelpFormatter, allow_abbrev=False
    )
    commands = p.add_subparsers(dest="command", required=True, metavar="FORMAT")
    for name, (convert, needs) in _TO.items():
        about = (convert.__doc__ or "").partition("\n")[0]
        command = commands.add_parser(name, help=about, prog=f"python -m eval.convert {name}")
        for option in needs.split():
            choices = {"choices": TASKS, "metavar": "TASK"} if option == "task" else {}
            command.add_argument(f"--{option}", required=True, **choices)
        command.add_argument("--output", required=True, metavar="FILE")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns 0. Raises UsageError (2) and DataError (3)."""
    args = parser().parse_args(argv)
    register_file_systems()
    if files.exists(args.output) or files.list_tree(args.output):
        raise UsageError(f"--output {args.output}: exists; name a new file")
    data = _TO[args.command][0](args)
    files.write_bytes(args.output, data)
    print(f"{args.output}: {len(data):,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
