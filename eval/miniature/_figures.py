"""Figures with 95% intervals, read from the Parquet of a run: values, paired differences, agreement.

Several seeds are several worlds: a figure over them is the mean of theirs, and its interval is put together
from theirs as independent errors (MOVER: Zou and Donner 2008, Statistics in Medicine 27). It says how sure
the questions make us; what another training would give is not in it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from eval._gold import page_of
from eval._intervals import around, id_hashes, wilson
from eval._paired import NotComparable, Results, check_comparable, load_results
from eval._significance import paired_interval
from eval._slices import question_word, rank_slice, read_own_columns
from eval._steps import Step
from eval.compare import SEED, compare_metric
from eval.metrics.base import mean
from eval.metrics.retrieval_mass import mass_of
from eval.miniature._expand import option_of, output_of
from rag_core.datasets import load_questions
from rag_core.datasets.records import read_source
from rag_core.errors import UsageError
from rag_core.stages import read_table

AT_K = re.compile(r"(recall|mass)@(\d+)")
"""`recall@K`: the answer (without texts: gold) is among the first K. `mass@K`: p(z|x) of the
first K over the whole corpus."""


@dataclass(frozen=True)
class Figure:
    """A value with its 95% interval and the number of questions behind it; None where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    why: str = ""
    """Why there is no value."""


class _NoSlice(UsageError):
    """The test set has no such column."""


WATCHED = "distinct_lists"
"""What a training log has of every training whose retrieval is watched for collapse."""


@dataclass
class Reader:
    """The finished runs below one directory a seed, and the steps that made them."""

    outs: Sequence[Path]
    steps: Sequence[Sequence[Step]]
    _kept: dict[tuple[int, str], Results] = field(default_factory=dict)

    def over_seeds(self, one: Callable[[int], Figure]) -> Figure:
        """The figure of every seed, put together."""
        try:
            return combined([one(seed) for seed in range(len(self.outs))])
        except _NoSlice as error:
            return Figure(None, why=str(error))

    def results(self, seed: int, name: str) -> Results:
        """The results `NAME`, loaded once."""
        if (seed, name) not in self._kept:
            self._kept[seed, name] = load_results(str(self.outs[seed] / "results" / name))
        return self._kept[seed, name]

    def option(self, seed: int, name: str, option: str) -> str:
        """What the step that made the results was given."""
        return self.maker_option(seed, str(self.outs[seed] / "results" / name), option)

    def maker_option(self, seed: int, output: str, option: str) -> str:
        """What the step that made a directory was given. UsageError where it was not."""
        step = next((s for s in self.steps[seed] if output_of(s) == output), None)
        found = None if step is None else option_of(step, option)
        if found is None:
            raise UsageError(f"{output}: no step makes it with {option}")
        return found

    def value(self, name: str, metric: str, slice_: str = "all") -> Figure:
        """A metric of results, over all seeds."""
        return self.over_seeds(lambda seed: self._value(seed, name, metric, slice_))

    def difference(self, name: str, baseline: str, metric: str, slice_: str = "all") -> Figure:
        """What results have more of a metric than others over the same questions, paired, over all seeds."""
        return self.over_seeds(lambda seed: self._difference(seed, name, baseline, metric, slice_))

    def _value(self, seed: int, name: str, metric: str, slice_: str) -> Figure:
        results = self.results(seed, name)
        if AT_K.fullmatch(metric):
            if why := self._too_few(seed, name, metric):
                return Figure(None, why=why)
            rows = self._with(seed, name, metric).rows
            return mean_figure(rows.loc[self.inside(seed, name, slice_)][metric].dropna())
        s = results.summary
        found = s[(s.metric == metric) & (s.slice == slice_) & (s.scope == "all")]
        if found.empty or pd.isna(found.iloc[0].value):
            return Figure(None, why=f"{name} has no {metric} on {slice_}")
        row = found.iloc[0]
        low, high = (None if pd.isna(v) else float(v) for v in (row.ci_low, row.ci_high))
        return Figure(float(row.value), low, high, int(row.n))

    def _too_few(self, seed: int, name: str, metric: str) -> str:
        """Why there is no figure at K: no question has K passages."""
        match = AT_K.fullmatch(metric)
        depth = max(map(len, self.results(seed, name).rows.passage_ids), default=0) if match else 0
        few = match is not None and int(match[2]) > depth
        return f"{name} has {depth} passages a question: no {metric}" if few else ""

    def _difference(self, seed: int, name: str, baseline: str, metric: str, slice_: str) -> Figure:
        if why := self._too_few(seed, name, metric) or self._too_few(seed, baseline, metric):
            return Figure(None, why=why)
        after, before = self._with(seed, name, metric), self._with(seed, baseline, metric)
        try:
            check_comparable(before, after, ("predictions", "retrieved"))
        except NotComparable as error:
            return Figure(None, why=f"{name} and {baseline}: {error}")
        if not all(metric in r.rows.columns or metric in r.signatures for r in (before, after)):
            return Figure(None, why=f"{metric} is not in both {name} and {baseline}")
        ids = self.inside(seed, name, slice_)
        found = compare_metric(*(replace(r, rows=r.rows.loc[ids]) for r in (before, after)), metric)
        if found.difference is None:
            return Figure(None, why=f"{metric} is undefined in one of the two, or no question is left")
        return Figure(found.difference, found.ci_low, found.ci_high, found.n)

    def _with(self, seed: int, name: str, metric: str) -> Results:
        """The results with a column for a metric at K, which `eval.run` does not write for every K."""
        results = self.results(seed, name)
        match = AT_K.fullmatch(metric)
        if match is None or metric in results.rows.columns:
            return results
        k = int(match[2])
        rows = results.rows.copy()
        if match[1] == "recall":
            hits = (rows.answer_rank <= k).astype(float)
            ranked = [c for c in ("top_1_accuracy", "top_1_gold_passage", "top_1_gold_page") if c in rows]
            rows[metric] = hits.where(rows[ranked[0]].notna()) if ranked else hits
        else:
            columns = ["question_id", "doc_scores", "log_partition"]
            table = read_table(self.option(seed, name, "--retrieved"), columns).to_pylist()
            masses = {r["question_id"]: mass_of(r["doc_scores"][:k], r["log_partition"]) for r in table}
            rows[metric] = [masses.get(i) for i in rows.index]
        self._kept[seed, name] = replace(results, rows=rows)
        return self._kept[seed, name]

    def inside(self, seed: int, name: str, slice_: str) -> pd.Index:
        """The ids of a slice, by what these results found or by the test set's own column."""
        rows = self.results(seed, name).rows
        column, _, wanted = slice_.partition("=")
        ranks = [None if pd.isna(r) else int(r) for r in rows.answer_rank]
        if slice_ == "all":
            return rows.index
        if column == "answer_rank":
            labels = [rank_slice(rank) for rank in ranks]
        elif column == "answer_in_passages":
            labels = ["no" if rank is None else "yes" for rank in ranks]
        elif column == "question_word":
            labels = [question_word(question) for question in rows.question]
        else:
            path, task = (self.option(seed, name, o) for o in ("--questions", "--task"))
            try:
                own = read_own_columns(path, task, [column])[column]
            except UsageError as error:
                raise _NoSlice(f"slice {slice_}: {error}") from None
            labels = [own.get(i) for i in rows.index]
        return rows.index[[label == wanted for label in labels]]

    def same_answers(self, name: str, other: str) -> Figure:
        """The share of questions with the same prediction in both; no prediction is the same as none."""

        def one(seed: int) -> Figure:
            a, b = self.results(seed, name).rows, self.results(seed, other).rows
            if not a.index.equals(b.index):
                return Figure(None, why=f"{name} and {other} answer other questions")
            return mean_figure((a.prediction.notna() & (a.prediction == b.prediction)).astype(float))

        return self.over_seeds(one)

    def log_prob_gap(self, name: str, other: str) -> Figure:
        """The largest difference of a question's log-probability; nats, no interval."""

        def one(seed: int) -> Figure:
            a, b = (self.results(seed, n).rows["mean_log_prob"] for n in (name, other))
            if not a.index.equals(b.index):
                return Figure(None, why=f"{name} and {other} answer other questions")
            if alone := int((a.isna() != b.isna()).sum()):
                return Figure(None, why=f"{alone} log-probabilities are in one of {name} and {other} only")
            gaps = (a - b).abs().dropna()
            if not len(gaps):
                return Figure(None, why=f"no log-probability is in {name} and {other}")
            return Figure(float(gaps.max()), n=len(gaps))

        figures = [one(seed) for seed in range(len(self.outs))]
        missing = next((f for f in figures if f.value is None), None)
        return missing or Figure(max(f.value for f in figures), n=sum(f.n for f in figures))

    def posterior_gain(self, name: str, slice_: str = "all") -> Figure:
        """How much more of p(z|x,y) than of p(z|x) lies on passages of the gold pages, where one was read."""

        def one(seed: int) -> Figure:
            path, task = (self.option(seed, name, o) for o in ("--questions", "--task"))
            gold = {q.question_id: set(q.gold_pages or ()) for q in load_questions(path, task).questions}
            rows = self.results(seed, name).rows.loc[self.inside(seed, name, slice_)]
            gains = {}
            for row in rows.itertuples():
                inside = [page_of(i) in gold.get(row.Index, ()) for i in row.passage_ids]
                if any(inside) and len(row.doc_posterior) >= len(inside):
                    pairs = zip(inside, row.doc_posterior, row.doc_prior)
                    gains[row.Index] = math.fsum(post - prior for is_in, post, prior in pairs if is_in)
            return mean_figure(pd.Series(gains, dtype=float))

        return self.over_seeds(one)

    def records(self, seed: int, checkpoint: str) -> list[dict[str, Any]]:
        """The training log of a checkpoint. DataError where it cannot be read."""
        source = read_source(str(self.outs[seed] / "checkpoints" / checkpoint / "_log.jsonl"), "log")
        return [record for _, record in source.json_lines()]

    def logged(self, checkpoint: str, name: str) -> Figure:
        """The last figure of a name in a training log; its mean over the seeds; `n`: trainings."""
        found = [[r[name] for r in self.records(s, checkpoint) if name in r] for s in range(len(self.outs))]
        if not all(found):
            return Figure(None, why=f"the log of {checkpoint} has no {name}")
        return Figure(mean(f[-1] for f in found), n=len(found))

    def warned(self, checkpoint: str) -> Figure:
        """The share of seeds whose training log warns of collapsed retrieval, where it was watched."""
        logs = [self.records(seed, checkpoint) for seed in range(len(self.outs))]
        if not all(any(WATCHED in r for r in log) for log in logs):
            return Figure(None, why=f"the log of {checkpoint} has no {WATCHED}")
        return Figure(mean(float(any("collapsed" in r.get("warning", "") for r in log)) for log in logs),
                      n=len(logs))  # fmt: skip

    def more_parameters(self, checkpoint: str, other: str, part: str) -> Figure:
        """How many weights a checkpoint's part has more than another's; `n`: how many it has."""
        counts = [[self.parameters(s, c, part) for c in (checkpoint, other)] for s in range(len(self.outs))]
        for pair in counts:
            for name, count in zip((checkpoint, other), pair):
                if not count:
                    return Figure(None, why=f"checkpoint {name} has no {part}")
        most = max(counts, key=lambda pair: abs(pair[0] - pair[1]))
        return Figure(float(most[0] - most[1]), n=most[0])

    def parameters(self, seed: int, checkpoint: str, part: str) -> int:
        """The number of weights of a checkpoint's part (generator, question_encoder); 0 where it has none."""
        from safetensors import safe_open

        total = 0
        for path in sorted((self.outs[seed] / "checkpoints" / checkpoint / part).rglob("*.safetensors")):
            with safe_open(path, "numpy") as tensors:
                total += sum(math.prod(tensors.get_slice(k).get_shape()) for k in tensors.keys())
        return total


def mean_figure(values: pd.Series) -> Figure:
    """The mean of a value for each question id: Wilson's interval for 0/1, else the Poisson bootstrap's."""
    if not len(values):
        return Figure(None, why="no question is in the slice")
    numbers = values.to_numpy(np.float64)
    value = mean(numbers)
    if set(np.unique(numbers)) <= {0.0, 1.0}:
        low, high = wilson(int(numbers.sum()), len(numbers))
    else:
        interval = paired_interval(numbers, id_hashes(list(values.index), SEED))
        low, high = around(interval, value) or (None, None)
    return Figure(value, low, high, len(numbers))


def combined(figures: Sequence[Figure]) -> Figure:
    """The mean of independent figures, with its interval by MOVER; one figure is itself."""
    if len(figures) == 1:
        return figures[0]
    for figure in figures:
        if figure.value is None:
            return figure
    n, value = len(figures), mean(f.value for f in figures)
    if any(f.low is None or f.high is None for f in figures):
        return Figure(value, n=sum(f.n for f in figures))
    down = math.sqrt(math.fsum((f.value - f.low) ** 2 for f in figures)) / n
    up = math.sqrt(math.fsum((f.high - f.value) ** 2 for f in figures)) / n
    return Figure(value, value - down, value + up, sum(f.n for f in figures))
