"""`python -m eval.miniature.factbook`: the index hot-swap over real sentences, at retrieval level.

    python -m eval.miniature.factbook --input factbook_leaders_by_snapshot.jsonl.gz --output DIR \\
        [--snapshots 2016-11-06 2020-11-27]

The World Factbook says who is chief of state and who is head of government of some 238 countries, at
several dates. Each date's sentences are a corpus; the questions are about offices whose holder changed
between two dates ("Who is the head of government of France?"). The frozen MiniLM searches either
corpus, and what is measured is whether a passage among the first k names the holder of the one date or
of the other (Lewis et al. 2020, section 4.5, asked of retrieval alone: no generator takes part).

Writes passages, questions and every stage below DIR, and prints the table from what `eval.run` wrote.
"""

from __future__ import annotations

import argparse
import difflib
import html
import json
import re
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from beam_jobs.options import Parser
from eval._steps import Step, StepError, run_steps
from eval.miniature.demo import summary
from rag_core.datasets.records import read_source
from rag_core.errors import DataError, UsageError, run_command

OFFICES = {"chief_of_state": "chief of state", "head_of_government": "head of government"}
DEFAULT_SNAPSHOTS = ("2016-11-06", "2020-11-27")
# Two spellings of one name ("RUHANI", "ROHANI") are no change; two people differ by more than this.
SAME_NAME = 0.75
# The Factbook writes family names in capitals, of several words some; a Roman numeral belongs to the name.
_CAPITALS = r"[^\W\d_a-z][^\W\d_a-z'’-]+(?![a-z])"
_FAMILY_NAME = re.compile(rf"\b{_CAPITALS}(?: {_CAPITALS}| [IVX]+\b)*")


def holder(sentence: str) -> str | None:
    """The family name of the first person named, as the Factbook spells it; None where there is none."""
    found = _FAMILY_NAME.search(unicodedata.normalize("NFC", html.unescape(sentence)))
    return found.group(0) if found else None


def read_snapshots(path: Path) -> dict[str, dict[tuple[str, str], str]]:
    """snapshot → (country, office) → sentence. Raises DataError naming the line."""
    snapshots: dict[str, dict[tuple[str, str], str]] = {}
    source = read_source(str(path), "factbook")
    for number, row in source.json_lines():
        for name in ("snapshot", "country", *OFFICES):
            if name not in row:
                raise source.error(number, f"not a snapshot of a country: no {name}")
            if not (isinstance(row[name], str) or (row[name] is None and name != "snapshot")):
                raise source.error(number, f"not a snapshot of a country: {name} {row[name]!r}")
        sentences = snapshots.setdefault(row["snapshot"], {})
        if not row["country"]:
            continue  # what is said of the whole world
        for office in OFFICES:
            if text := html.unescape(row[office] or "").strip():
                sentences[row["country"], office] = text
    return snapshots


def changed_offices(
    before: dict[tuple[str, str], str], after: dict[tuple[str, str], str]
) -> dict[tuple[str, str], tuple[str, str]]:
    """(country, office) → the two holders, for offices that both name and whose holders differ."""
    changed = {}
    for key in sorted(before.keys() & after.keys()):
        old, new = holder(before[key]), holder(after[key])
        if old and new and difflib.SequenceMatcher(None, _plain(old), _plain(new)).ratio() < SAME_NAME:
            changed[key] = (old, new)
    return changed


def _plain(name: str) -> str:
    """Capitals without accents, to compare spellings."""
    return "".join(c for c in unicodedata.normalize("NFD", name.upper()) if not unicodedata.combining(c))


def write_inputs(path: Path, output: Path, snapshots: Sequence[str]) -> int:
    """`passages-DATE.jsonl` and `questions-DATE.jsonl` for both dates; returns how many offices changed."""
    corpora = read_snapshots(path)
    unknown = [s for s in snapshots if s not in corpora]
    if unknown:
        raise UsageError(f"--snapshots {unknown[0]}: {path} has {', '.join(sorted(corpora))}")
    before, after = (corpora[s] for s in snapshots)
    changed = changed_offices(before, after)
    if not changed:
        raise DataError(f"{path}: no office changed its holder between {snapshots[0]} and {snapshots[1]}")
    output.mkdir(parents=True, exist_ok=True)
    for at, snapshot in enumerate(snapshots):
        passages = [
            {"passage_id": f"{country}:{office}", "title": country, "text": f"{OFFICES[office]}: {sentence}"}
            for (country, office), sentence in sorted(corpora[snapshot].items())
        ]
        questions = [
            {
                "question_id": f"{country}:{office}",
                "question": f"Who is the {OFFICES[office]} of {country}?",
                "answers": [holders[at]],
                "answer_kind": "text",
                "office": office,
            }
            for (country, office), holders in changed.items()
        ]
        _write(output / f"passages-{snapshot}.jsonl", passages)
        _write(output / f"questions-{snapshot}.jsonl", questions)
    return len(changed)


def _write(path: Path, rows: Sequence[dict]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def swap_steps(output: Path, snapshots: Sequence[str]) -> list[Step]:
    """Both corpora through split, embed and retrieve; the later one's embeddings reuse the earlier's."""
    steps: list[Step] = []

    def at(stage: str, name: str) -> str:
        return str(output / stage / name)

    def job(stage: str, name: str, *argv: str, needs: tuple[str, ...] = (), out: str) -> None:
        steps.append(Step(f"{stage}_{name}", (f"beam_jobs.{stage}", *argv, "--output", out), needs))

    first, last = snapshots
    for snapshot in snapshots:
        source = str(output / f"passages-{snapshot}.jsonl")
        job("split", snapshot, "--input", source, "--input-format", "jsonl", out=at("passages", snapshot))
        reuse = () if snapshot == first else ("--reuse", at("embeddings", first))
        needs = (f"split_{snapshot}", *((f"embed_{first}",) if reuse else ()))
        job(
            "embed", snapshot, "--passages", at("passages", snapshot), "--encoder", "minilm", *reuse,
            needs=needs, out=at("embeddings", snapshot),
        )  # fmt: skip
        asked = ("--questions", str(output / f"questions-{last}.jsonl"), "--task", "custom")
        job(
            "retrieve", snapshot, *asked, "--embeddings", at("embeddings", snapshot),
            "--question-encoder", "minilm", "--top-k", "20",
            needs=(f"embed_{snapshot}",), out=at("retrieved", snapshot),
        )  # fmt: skip
    for index in snapshots:
        for asked_of in snapshots:
            argv = ("--questions", str(output / f"questions-{asked_of}.jsonl"), "--task", "custom")
            argv += ("--retrieved", at("retrieved", index), "--passages", at("passages", index))
            name = f"{index}_asked_{asked_of}"
            command = ("eval.run", *argv, "--output", at("results", name))
            steps.append(Step(f"eval_{name}", command, (f"retrieve_{index}",)))
    return steps


def table(output: Path, snapshots: Sequence[str]) -> pd.DataFrame:
    """Rows (index, asked, k): the share of questions with the holder's name among the first k, and its
    interval, from the summaries."""
    rows = []
    for index in snapshots:
        for asked in snapshots:
            whole = summary(output, f"{index}_asked_{asked}")
            for k in (1, 5, 20):
                found = whole.loc[f"top_{k}_accuracy"]
                figures = {name: found[name] for name in ("value", "ci_low", "ci_high", "n")}
                rows.append({"index": index, "asked": asked, "k": k, **figures})
    return pd.DataFrame(rows)


def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m eval.miniature.factbook", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument(
        "--input", type=Path, required=True, help="JSON lines, gzipped or not: a country at a date"
    )
    parser.add_argument("--output", type=Path, required=True, help="a new directory")
    parser.add_argument("--snapshots", nargs=2, default=DEFAULT_SNAPSHOTS, metavar="DATE")
    args = parser.parse_args(argv)
    if args.snapshots[0] == args.snapshots[1]:
        raise UsageError("--snapshots: give two different dates")
    if args.output.is_file():
        raise UsageError(f"--output {args.output}: a file, not a directory")
    changed = write_inputs(args.input, args.output, args.snapshots)
    try:
        run_steps(swap_steps(args.output, args.snapshots), args.output / "logs")
    except StepError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    frame = table(args.output, args.snapshots)
    frame.to_parquet(args.output / "table.parquet", index=False)
    print(f"\n{changed} offices changed between {args.snapshots[0]} and {args.snapshots[1]}; "
          "holder's name among the first k passages, percent")  # fmt: skip
    for row in frame.to_dict("records"):
        shown = f"{100 * row['value']:.1f} [{100 * row['ci_low']:.1f}, {100 * row['ci_high']:.1f}]"
        print(f"  index of {row['index']}, holders of {row['asked']}, k={row['k']:<3} {shown}")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
