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
from collections.abc import Sequence
from typing import Any

from rag_core import files
from rag_core.command_line import Parser
from rag_core.errors import DataError, UsageError, run_command


def gather(
    paths: Sequence[str], where: Sequence[tuple[str, str]] = (), limit: int = 0
) -> list[dict[str, Any]]:
    """The rows of the files that have these values, the first `limit` (0: all), each question id once.

    DataError on a row that is no JSON object, has no id, or has the id of a different row.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        for number, line in enumerate(files.read_bytes(path).decode("utf-8").splitlines(), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DataError(f"{path}: line {number}: not JSON: {error}") from None
            name = row.get("question_id") if isinstance(row, dict) else None
            if not name:
                raise DataError(f"{path}: line {number}: no question_id")
            if found.setdefault(name, row) != row:
                raise DataError(f"{path}: line {number}: question {name!r} differs from an earlier one")
    rows = [row for row in found.values() if all(str(row.get(c)) == value for c, value in where)]
    return rows[:limit] if limit else rows


def write_questions(path: str, rows: Sequence[dict[str, Any]]) -> None:
    """JSON lines of the "custom" format, put when complete."""
    files.write_bytes(path, "".join(json.dumps(row) + "\n" for row in rows).encode())


def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m eval.miniature.gather", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("questions", nargs="+", metavar="FILE")
    parser.add_argument("--where", nargs="+", default=[], metavar="COLUMN=VALUE")
    parser.add_argument("--limit", type=int, default=0, help="the first N rows (default: all)")
    parser.add_argument("--as-predictions", action="store_true",
                        help="each question's first reference, as if it were an answer")  # fmt: skip
    parser.add_argument("--output", required=True, metavar="FILE")
    args = parser.parse_args(argv)
    conditions = []
    for text in args.where:
        column, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"--where {text}: expected COLUMN=VALUE")
        conditions.append((column, value))
    rows = gather(args.questions, conditions, args.limit)
    if not rows:
        raise DataError(f"{args.questions[0]}: no question is left ({' '.join(args.where) or 'empty'})")
    if args.as_predictions:
        rows = [{"question_id": r["question_id"], "prediction": r["answers"][0]} for r in rows]
    write_questions(args.output, rows)
    print(f"{args.output}: {len(rows):,} questions")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
