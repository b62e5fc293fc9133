"""`python -m eval.miniature.collapse`: a task that retrieval cannot help with, to see it collapse.

    python -m eval.miniature.collapse --questions train.jsonl --output collapse.jsonl

Every answer becomes one of a few words that depends on the question alone (its question word). The generator
reads it off the question; no passage is better than another, so that the marginal's gradient says nothing
about retrieval, and a question encoder with a high learning rate drifts to where all questions are alike
(Lewis et al. 2020, appendix H).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from eval._slices import question_word
from eval.miniature.gather import check_not_read, gather, write_questions
from rag_core.command_line import Parser
from rag_core.errors import DataError, run_command

ANSWERS = {"who": "person", "where": "place", "when": "year"}
_OTHER = "thing"


def without_use_of_passages(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The questions of kind text, with answers that their first question word decides, and no gold."""
    out = []
    for row in rows:
        if row.get("answer_kind", "text") == "text":
            answer = ANSWERS.get(question_word(row["question"]), _OTHER)
            out.append({"question_id": row["question_id"], "question": row["question"], "answers": [answer]})
    return out


def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m eval.miniature.collapse", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--questions", required=True, metavar="FILE", help="train questions")
    parser.add_argument("--output", required=True, metavar="FILE")
    args = parser.parse_args(argv)
    check_not_read(args.output, [args.questions])
    read = gather([args.questions])
    for row in read:
        if not isinstance(row.get("question"), str):
            raise DataError(f"{args.questions}: question {row['question_id']!r} has no question")
    rows = without_use_of_passages(read)
    if not rows:
        raise DataError(f"{args.questions}: no question has an answer of kind text")
    write_questions(args.output, rows)
    print(f"{args.output}: {len(rows):,} questions, {len(ANSWERS) + 1} answers")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
