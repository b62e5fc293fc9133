"""`make demo`: the whole chain on a small world, from a Wikipedia dump to answers and a table.

    python -m eval.miniature.demo --output demo-out

dump → passages → embeddings → index → a short fine-tuning → retrieve → generate → eval, for a
closed-book generator, frozen retrieval, RAG-Token and RAG-Sequence; then the index of 2016 is
exchanged for that of 2018, and the answers change. Every step is a command that a user could type.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from beam_jobs.options import Parser
from eval._steps import Step, StepError, run_steps
from eval.miniature.world import MIN_ARTICLES
from rag_core.errors import UsageError, run_command
from rag_core.stages import read_table

YEARS = ("2016", "2018")
ROWS = {
    "closed_book": "closed-book",
    "frozen": "frozen retrieval",
    "rag_token": "RAG-Token",
    "rag_sequence": "RAG-Sequence",
}
COLUMNS = {"exact_match": "EM", "f1": "F1", "top_5_gold_page": "top-5 page"}


def demo_steps(out: Path, articles: int, steps: int, seed: int) -> list[Step]:
    """Every command of the demo, in an order in which each finds its inputs."""

    def at(stage: str, name: str) -> str:
        return str(out / stage / name)

    def questions(name: str) -> tuple[str, ...]:
        return (
            "--questions",
            str(out / "questions" / "world" / "questions" / f"{name}.jsonl"),
            "--task",
            "custom",
        )

    def job(name: str, *argv: str, output: str) -> tuple[str, ...]:
        return f"beam_jobs.{name}", *argv, "--output", output

    world = out / "questions" / "world"
    plan = [
        Step(
            "world",
            (
                "eval.miniature.world",
                "--output",
                str(world),
                "--articles",
                str(articles),
                "--seed",
                str(seed),
            ),
        )
    ]
    for year in YEARS:
        dump = str(world / f"dump-{year}.xml.bz2")
        passages, embeddings = at("passages", year), at("embeddings", year)
        plan += [
            Step(f"split_{year}", job("split", "--input", dump, output=passages), ("world",)),
            Step(
                f"embed_{year}",
                job("embed", "--passages", passages, "--encoder", "minilm", output=embeddings),
                (f"split_{year}",),
            ),
        ]
    passages, embeddings = at("passages", "2016"), at("embeddings", "2016")
    common = ("rag_core.train", "--preset", "tiny", *questions("train"), "--seed", str(seed))
    plan += [
        Step(
            "train_rag",
            (
                *common,
                "--kind",
                "token",
                "--steps",
                str(steps),
                "--embeddings",
                embeddings,
                "--passages",
                passages,
            )
            + ("--output", at("checkpoints", "rag")),
            ("embed_2016",),
            threads=2,  # the longest step, for most of its time alone
        ),
        Step(
            "train_closed_book",
            (*common, "--closed-book", "--steps", str(steps), "--output", at("checkpoints", "closed_book")),
            ("world",),
        ),
        Step(
            "index_2016",
            job("index", "--embeddings", embeddings, "--kind", "flat", output=at("index", "2016")),
            ("embed_2016",),
        ),
        Step(
            "bm25_2016",
            job("index", "--passages", passages, "--kind", "bm25", output=at("index", "bm25_2016")),
            ("split_2016",),
        ),
    ]
    encoders = {"frozen": "minilm", "trained": at("checkpoints", "rag")}
    for name, encoder in encoders.items():
        needs = ("index_2016",) if name == "frozen" else ("index_2016", "train_rag")
        search = ("--index", at("index", "2016"), "--question-encoder", encoder, "--top-k", "20")
        plan.append(
            Step(
                f"retrieve_{name}",
                job("retrieve", *questions("test"), *search, output=at("retrieved", name)),
                needs,
            )
        )
    for year in YEARS:
        search = (
            "--embeddings",
            at("embeddings", year),
            "--question-encoder",
            encoders["trained"],
            "--top-k",
            "20",
        )
        plan.append(
            Step(
                f"retrieve_swap_{year}",
                job("retrieve", *questions("leaders_2016"), *search, output=at("retrieved", f"swap_{year}")),
                ("train_rag", f"embed_{year}"),
            )
        )

    def generate(name: str, asked: str, *argv: str, needs: tuple[str, ...]) -> Step:
        return Step(
            f"generate_{name}",
            job("generate", *questions(asked), *argv, output=at("predictions", name)),
            needs,
        )

    def given(retrieved: str, year: str = "2016") -> tuple[str, ...]:
        return "--retrieved", at("retrieved", retrieved), "--passages", at("passages", year), "--n-docs", "5"

    rag = ("--checkpoint", at("checkpoints", "rag"))
    closed = ("--checkpoint", at("checkpoints", "closed_book"), "--closed-book")
    plan += [
        generate("closed_book", "test", *closed, needs=("train_closed_book",)),
        generate(
            "frozen",
            "test",
            *rag,
            "--kind",
            "token",
            *given("frozen"),
            needs=("train_rag", "retrieve_frozen"),
        ),
        generate(
            "rag_token", "test", *rag, "--kind", "token", *given("trained"), needs=("retrieve_trained",)
        ),
        generate(
            "rag_sequence", "test", *rag, "--kind", "sequence", *given("trained"), needs=("retrieve_trained",)
        ),
    ]
    for year in YEARS:
        swap = given(f"swap_{year}", year)
        plan.append(
            generate(
                f"swap_{year}",
                "leaders_2016",
                *rag,
                "--kind",
                "token",
                *swap,
                needs=(f"retrieve_swap_{year}",),
            )
        )

    def score(name: str, asked: str, *argv: str, needs: tuple[str, ...]) -> Step:
        return Step(
            f"eval_{name}", ("eval.run", *questions(asked), *argv, "--output", at("results", name)), needs
        )

    for name, retrieved in (
        ("closed_book", None),
        ("frozen", "frozen"),
        ("rag_token", "trained"),
        ("rag_sequence", "trained"),
    ):
        found = ("--retrieved", at("retrieved", retrieved)) if retrieved else ()
        plan.append(
            score(name, "test", "--predictions", at("predictions", name), *found, needs=(f"generate_{name}",))
        )
    for index in YEARS:
        for asked in YEARS:
            predictions = ("--predictions", at("predictions", f"swap_{index}"))
            name = f"swap_index_{index}_asked_{asked}"
            plan.append(score(name, f"leaders_{asked}", *predictions, needs=(f"generate_swap_{index}",)))
    return plan


def summary(out: Path, name: str) -> pd.DataFrame:
    """A result's summary over the whole test set, by metric."""
    frame = pd.read_parquet(out / "results" / name / "summary.parquet")
    return frame[(frame["slice"] == "all") & (frame["scope"] == "all")].set_index("metric")


def show_table(out: Path) -> None:
    """The table, from what `eval.run` wrote."""
    first = summary(out, "rag_token")
    print(
        f"\n{int(first.loc['exact_match', 'n'])} questions about entities never seen in training, "
        "in percent with 95% intervals"
    )
    print(f"{'':<18}" + "".join(f"{title:>24}" for title in COLUMNS.values()))
    for name, title in ROWS.items():
        rows = summary(out, name)
        print(f"{title:<18}" + "".join(f"{_cell(rows, metric):>24}" for metric in COLUMNS))


def _cell(rows: pd.DataFrame, metric: str) -> str:
    if metric not in rows.index:
        return "–"
    row = rows.loc[metric]
    return f"{100 * row['value']:.1f} [{100 * row['ci_low']:.1f}, {100 * row['ci_high']:.1f}]"


def show_swap(out: Path) -> None:
    """Index {2016, 2018} × answers of {2016, 2018}: exact match on office holders who changed."""
    print("\nExchanging the index, same model: EM on offices whose holder changed")
    print(f"{'':<18}" + "".join(f"{'answers of ' + year:>24}" for year in YEARS))
    for index in YEARS:
        cells = (_cell(summary(out, f"swap_index_{index}_asked_{asked}"), "exact_match") for asked in YEARS)
        print(f"{'index of ' + index:<18}" + "".join(f"{cell:>24}" for cell in cells))


def show_answers(out: Path, count: int = 3) -> None:
    """Some answered questions with the passage that the posterior says they rest on."""
    answered = pd.read_parquet(out / "results" / "rag_token" / "per_example.parquet")
    passages = read_table(str(out / "passages" / "2016")).to_pandas().set_index("passage_id")
    right = answered[answered["exact_match"] == 1]
    print("\nAnswers and what they rest on (p = posterior of the passage)")
    for row in right.iloc[:: max(1, len(right) // count)].head(count).itertuples():
        best = max(range(len(row.doc_posterior)), key=lambda i: row.doc_posterior[i])
        passage = passages.loc[row.passage_ids[best]]
        print(f"  Q  {row.question}\n  A  {row.prediction}")
        print(f"     {passage['title']} (p = {row.doc_posterior[best]:.2f}): {passage['text'][:160]} …")


def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(
        prog="python -m eval.miniature.demo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", default="demo-out", metavar="DIR")
    parser.add_argument("--articles", type=int, default=1000, help="size of the world")
    parser.add_argument("--steps", type=int, default=100, help="steps of fine-tuning")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    if args.articles < MIN_ARTICLES:
        raise UsageError(f"--articles {args.articles}: a world needs at least {MIN_ARTICLES}")
    if args.steps < 1:
        raise UsageError(f"--steps {args.steps}: must be at least 1")
    out = Path(args.output)
    started = time.monotonic()
    try:
        seconds = run_steps(demo_steps(out, args.articles, args.steps, args.seed), out / "logs")
    except StepError as error:
        print(f"error: {error}")
        return error.exit_code
    (out / "seconds.json").write_text(json.dumps(seconds, indent=2) + "\n")
    show_table(out)
    show_swap(out)
    show_answers(out)
    print(f"\n{time.monotonic() - started:.0f} s. Everything is Parquet below {out}/; open it:")
    print("  import pandas as pd")
    print(
        f'  pd.read_parquet("{out}/results/rag_token/per_example.parquet").sort_values("f1")'
        '[["question", "prediction", "answers"]].head()'
    )
    print(f'  pd.read_parquet("{out}/passages/2016")')
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
