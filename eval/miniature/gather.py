"""`python -m eval.miniature.gather`: questions of several files, or some of one, as one file.

A job reads one questions file and takes seconds to start: sets that are answered alike are put together,
and scored apart. A row that comes twice, word for word, is written once.

    python -m eval.miniature.gather qa.jsonl fever3.jsonl --output all.jsonl
    python -m eval.miniature.gather qa.jsonl --where set=plain --limit 300 --output plain.jsonl
    python -m eval.miniature.gather clue.jsonl --as-predictions --output gold.jsonl   # the first references
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from typing import Any

from rag_core import files
from rag_core.command_line import Parser
from rag_core.datasets.records import read_source
from rag_core.errors import DataError, UsageError, run_command


def gather(
    paths: Sequence[str], where: Sequence[tuple[str, str]] = (), limit: int = 0
) -> list[dict[str, Any]]:
    """The rows of the files that have these values, the first `limit` (0: all), each question id once.

    DataError on a row that is no JSON object, has no id, or has the id of a different row.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        source = read_source(path, "custom")
        for number, row in source.json_lines():
            name = row.get("question_id")
            if name is None or name == "":
                raise source.error(number, "no question_id")
            if not isinstance(name, str | int):
                raise source.error(number, f"question_id {name!r}: expected a text or a number")
            if found.setdefault(str(name), row) != row:
                raise source.error(number, f"question {name!r} differs from an earlier one")
    rows = [row for row in found.values() if all(str(row.get(c)) == value for c, value in where)]
    return rows[:limit] if limit else rows


def as_predictions(rows: Sequence[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """Each question's first reference as its prediction. DataError where it has none."""
    for row in rows:
        if not isinstance(row.get("answers"), list) or not row["answers"]:
            raise DataError(f"{path}: question {row['question_id']!r} has no answers")
    return [{"question_id": row["question_id"], "prediction": row["answers"][0]} for row in rows]


def check_not_read(output: str, inputs: Sequence[str]) -> None:
    """UsageError where a command would write over what it reads."""
    if files.is_local(output) and os.path.realpath(output) in map(os.path.realpath, inputs):
        raise UsageError(f"--output {output}: is read too; give another file")


def write_questions(path: str, rows: Sequence[dict[str, Any]]) -> None:
    """JSON lines of the "custom" format, put when complete."""
    files.write_bytes(path, "".join(json.dumps(row) + "\n" for row in rows).encode())


def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m eval.miniature.gather", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("questions", nargs="+", metavar="FILE")
    parser.add_argument("--where", nargs="+", default=[], metavar="COLUMN=VALUE")
    parser.add_argument("--limit", type=int, help="the first N rows (default: all)")
    parser.add_argument("--as-predictions", action="store_true",
                        help="each question's first reference, as if it were an answer")  # fmt: skip
    parser.add_argument("--output", required=True, metavar="FILE")
    args = parser.parse_args(argv)
    if args.limit is not None and args.limit < 1:
        raise UsageError(f"--limit {args.limit}: must be at least 1")
    check_not_read(args.output, args.questions)
    conditions = []
    for text in args.where:
        column, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"--where {text}: expected COLUMN=VALUE")
        conditions.append((column, value))
    rows = gather(args.questions, conditions, args.limit or 0)
    if not rows:
        raise DataError(f"{args.questions[0]}: no question is left ({' '.join(args.where) or 'empty'})")
    if args.as_predictions:
        rows = as_predictions(rows, ", ".join(args.questions))
    write_questions(args.output, rows)
    print(f"{args.output}: {len(rows):,} questions")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
