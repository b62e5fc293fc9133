"""Pairwise human judgement: blinded sheets, and the paper's Table 4 from what comes back.

    python -m eval.human sheet --a results/bart --b results/rag --n 452 --annotators 3 --output judging
    python -m eval.human aggregate judgements-*.jsonl --key judging/key.json

`sheet` writes for each annotator one offline HTML page and the same as CSV, and `key.json`, which undoes the
blinding and is for the experimenter alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from beam_jobs.options import HelpFormatter, Parser, register_file_systems
from eval._human_judgements import OPTIONS, read_judgements, read_key
from eval._human_sheets import CRITERIA, Item, Pair, csv_sheet, html_sheet, make_items, make_key, sample
from eval._human_table import aggregate, as_lines
from eval._paired import NotComparable, Results, load_results, split_run
from rag_core import files
from rag_core.errors import EXIT_NOT_COMPARABLE, DataError, UsageError, run_command

_GOLD_OPTIONS = OPTIONS[:4]
_VOTES = pa.schema(
    [(name, pa.string()) for name in ("criterion", "pair")]
    + [(option, pa.int64()) for option in OPTIONS]
    + [("majority", pa.string())]
)


def parser() -> Parser:
    p = Parser(
        prog="python -m eval.human", description=__doc__, formatter_class=HelpFormatter, allow_abbrev=False
    )
    commands = p.add_subparsers(dest="command", required=True, metavar="sheet|aggregate")
    style: dict[str, Any] = {"formatter_class": HelpFormatter, "allow_abbrev": False}
    s = commands.add_parser("sheet", help="write blinded sheets and their key", **style)
    s.add_argument("--a", required=True, metavar="DIR[:RUN]", help="results of the one system")
    s.add_argument("--b", required=True, metavar="DIR[:RUN]", help="results of the other, same questions")
    s.add_argument(
        "--names", nargs=2, metavar="NAME", help="of the systems, in the table (default: the runs')"
    )
    s.add_argument("--n", type=int, metavar="N", help="pairs to draw (default: all; the paper: 452)")
    s.add_argument(
        "--annotators", type=int, default=3, metavar="N", help="one sheet each, over the same pairs"
    )
    s.add_argument("--gold", metavar="FILE", help="JSON lines: id, question, a, b, factuality, specificity")
    s.add_argument("--seed", type=int, default=0, help="of the draw, the order and the sides")
    s.add_argument("--output", required=True, metavar="DIR")
    a = commands.add_parser("aggregate", help="Table 4 from judgements", **style)
    a.add_argument("judgements", nargs="+", metavar="FILE", help="JSON lines, JSON or CSV")
    a.add_argument("--key", metavar="FILE", help="key.json of the sheets")
    a.add_argument("--min-gold", type=float, default=0.0, metavar="SHARE",
                   help="leave out annotators with fewer gold questions right")  # fmt: skip
    a.add_argument("--json", metavar="FILE", help="write everything as JSON")
    a.add_argument("--markdown", metavar="FILE", help="write the table")
    a.add_argument("--parquet", metavar="FILE", help="write the votes of each pair")
    return p


def pairs_of(a: Results, b: Results) -> tuple[list[Pair], dict[str, int]]:
    """Pairs of both runs' answers by question id, and counts: left out without an answer; equal answers.

    Equal answers stay in: the shares are of all questions. Raises NotComparable when the questions differ.
    Settings may: they are what is judged.
    """
    if set(a.rows.index) != set(b.rows.index):
        odd = sorted(set(a.rows.index) ^ set(b.rows.index))
        raise NotComparable(f"{len(odd)} questions are in one run only, such as {odd[0]!r}")
    other = b.rows.loc[a.rows.index]
    changed = a.rows.index[a.rows.question_hash != other.question_hash]
    if len(changed):
        raise NotComparable(f"{len(changed)} questions or references differ, such as {changed[0]!r}")
    pairs, counts = [], {"left out without an answer": 0, "with equal answers": 0}
    both = zip(
        a.rows.index, a.rows.question, a.rows.status, a.rows.prediction, other.status, other.prediction
    )
    for name, question, status_a, text_a, status_b, text_b in both:
        if (status_a, status_b) != ("ok", "ok"):
            counts["left out without an answer"] += 1
            continue
        counts["with equal answers"] += text_a == text_b
        pairs.append(Pair(name, question, text_a, text_b))
    return pairs, counts


def read_gold(path: str) -> list[Pair]:
    """Gold questions: two texts whose right judgement is known. DataError naming file and line."""
    pairs = []
    with files.open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            where = f"{path}: line {number}"
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{where}: not valid JSON: {error}") from None
            if not isinstance(row, dict) or not all(
                isinstance(row.get(n), str) for n in ("question", "a", "b")
            ):
                raise DataError(f"{where}: expected texts question, a, b")
            right = {c: row[c] if isinstance(row[c], list) else [row[c]] for c in CRITERIA if row.get(c)}
            wrong = [o for options in right.values() for o in options if o not in _GOLD_OPTIONS]
            if wrong or not right:
                found = repr(wrong[0]) if wrong else "nothing"
                expected = f"{' or '.join(CRITERIA)} with {', '.join(_GOLD_OPTIONS)}"
                raise DataError(f"{where}: expected {expected}, found {found}")
            gold = {name: tuple(options) for name, options in right.items()}
            pairs.append(Pair(f"gold:{row.get('id', number)}", row["question"], row["a"], row["b"], gold))
    ids = [p.pair_id for p in pairs]
    if len(set(ids)) < len(ids):
        raise DataError(f"{path}: an id is there twice")
    return pairs


def sheet(args: argparse.Namespace) -> int:
    """Write the sheets; an output whose key is another one's is refused, since judgements would be lost."""
    if args.annotators < 1 or (args.n is not None and args.n < 1):
        raise UsageError("--annotators and --n must be at least 1")
    a, b = (load_results(*split_run(argument)) for argument in (args.a, args.b))
    pairs, counts = pairs_of(a, b)
    chosen = sample(pairs, args.n, args.seed)
    if not chosen:
        raise UsageError(f"no pair to judge: {counts}")
    gold = read_gold(args.gold) if args.gold else []
    sheets: list[Sequence[Item]] = [
        make_items([*chosen, *gold], i, args.seed) for i in range(args.annotators)
    ]
    names = tuple(args.names or (a.run, b.run))
    if names[0] == names[1]:
        raise UsageError(f"both systems are called {names[0]!r}; give --names")
    key = make_key(sheets, names)
    url = files.join(args.output, "key.json")
    if files.exists(url) and files.read_json(url) != key:
        raise UsageError(f"{args.output}: holds sheets of another draw; judgements of them would be lost")
    if not files.exists(url) and files.entries(args.output):
        raise UsageError(f"{args.output}: not empty, and no key.json in it")
    files.write_json(url, key)
    for number, items in enumerate(sheets, 1):
        annotator = f"annotator-{number}"
        files.write_bytes(
            files.join(args.output, f"sheet-{number}.html"), html_sheet(items, annotator).encode()
        )
        # The mark of UTF-8 at the start is what makes spreadsheets read it as such.
        files.write_bytes(
            files.join(args.output, f"sheet-{number}.csv"), csv_sheet(items, annotator).encode("utf-8-sig")
        )
    print(f"{len(chosen)} of {len(pairs)} pairs, {len(gold)} gold questions, {args.annotators} annotators; "
          + ", ".join(f"{n} {what}" for what, n in counts.items()))  # fmt: skip
    print(f"{args.output}  next: hand out sheet-N.html or sheet-N.csv, keep key.json")
    return 0


def table(args: argparse.Namespace) -> int:
    """Print Table 4 and what the gold questions show; write what was asked for."""
    if not 0 <= args.min_gold <= 1:
        raise UsageError(f"--min-gold {args.min_gold}: must lie between 0 and 1")
    found = read_judgements(args.judgements, read_key(args.key) if args.key else None)
    result = aggregate(found, args.min_gold)
    if args.json:
        files.write_json(args.json, result)
    if args.markdown:
        files.write_bytes(args.markdown, ("\n".join(as_lines(result, markdown=True)) + "\n").encode())
    if args.parquet:
        with files.put(args.parquet) as stream:
            pq.write_table(pa.Table.from_pylist(result["pairs"], _VOTES), stream)
    print("\n".join(as_lines(result)))
    print(", ".join(f"{n} {what}" for what, n in result["counts"].items()))
    for name, criterion in result["criteria"].items():
        votes = criterion["pairs_by_votes"]
        if len(votes) > 1:
            print(
                f"{name}: pairs by number of judgements: " + ", ".join(f"{k}: {n}" for k, n in votes.items())
            )
    for person in result["annotators"]:
        gold, first = person["gold"], person["first_preferred"]
        print(f"{person['annotator']}: {person['judged']} judged"
              + (f", gold {gold['count']} of {gold['n']}" if gold["n"] else "")
              + (f", first text preferred {first['count']} of {first['n']}" if first["n"] else "")
              + (", left out" if person["removed"] else ""))  # fmt: skip
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    args = parser().parse_args(argv)
    register_file_systems()
    try:
        return {"sheet": sheet, "aggregate": table}[args.command](args)
    except NotComparable as error:
        print(f"not comparable: {error}")
        return EXIT_NOT_COMPARABLE


if __name__ == "__main__":
    raise SystemExit(run_command(main))
