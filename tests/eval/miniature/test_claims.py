"""Claims against hand-made results: every kind, with values that a reader can check by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.numpy

from eval._intervals import wilson
from eval._steps import Step
from eval.miniature._claims import KINDS, claim_rows, correlation, expected, judge
from eval.miniature._figures import Figure, Reader, combined
from eval.miniature._recipes import Claim, Curve, Experiment, Heat, Line, Row, Table
from eval.miniature._recipes import Column as C
from eval.miniature._tables import FIGURES, figure_rows, heat_answer, write_rows
from rag_core.errors import DataError, UsageError
from rag_core.schemas import PASSAGES, PER_EXAMPLE_BASE, PREDICTIONS, RETRIEVED, SUMMARY, content_hash
from tests.eval.conftest import write_stage

N = 40
SIGNATURES = {"exact_match": "exact_match|v:1", "mean_log_prob": "mean_log_prob|v:1", "bleu1": "bleu1|v:1"}


def write_results(
    directory, right, *, ranks=None, log_prob=-1.0, texts=None, ids=range(N), posterior=(0.75, 0.25), depth=2
):
    """Results in which question i is right when `right(i)`; its first hit has rank ranks(i)."""
    rows = []
    for i in ids:
        row = {
            "question_id": f"q{i:02d}",
            "question": f"who is {i}?",
            "question_hash": f"h{i}",
            "status": "ok",
            "prediction": texts(i) if texts else (f"answer {i}" if right(i) else "wrong"),
            "answers": [f"answer {i}"],
            "answer_rank": ranks(i) if ranks else None,
            "passage_ids": [f"{i}:0", *(f"{99 - j}:0" for j in range(depth - 1))],
            "doc_prior": [0.5, 0.5, *[0.0] * (depth - 2)],
            "doc_posterior": [*posterior, *[0.0] * (depth - 2)],
            "exact_match": float(right(i)),
            "bleu1": float(right(i)),
            "mean_log_prob": log_prob if not callable(log_prob) else log_prob(i),
        }
        rows.append(row)
    metrics = [pa.field(name, pa.float64()) for name in SIGNATURES]
    directory.mkdir(parents=True)
    pq.write_table(
        pa.Table.from_pylist(rows, pa.schema([*PER_EXAMPLE_BASE, *metrics])),
        directory / "per_example.parquet",
    )
    hits = sum(r["exact_match"] for r in rows)
    low, high = wilson(int(hits), len(rows))
    summary = [
        {"run": directory.name, "task": "custom", "slice": slice_, "scope": "all",
         "metric": metric, "value": hits / len(rows),
         "ci_low": low, "ci_high": high, "n": len(rows), "n_missing": 0, "signature": SIGNATURES[metric]}
        for metric in SIGNATURES for slice_ in ("all", "set=even")
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(summary, SUMMARY), directory / "summary.parquet")
    manifest = {
        "job": "eval",
        "parts": [],
        "rows": len(rows),
        "content_digest": "d",
        "runs": {directory.name: {}},
    }
    (directory / "_manifest.json").write_text(json.dumps(manifest))


def reader_of(*outs, options=()):
    """A reader whose results were all made with the options."""
    steps = []
    for out in outs:
        names = [p.name for p in (out / "results").iterdir()] if (out / "results").exists() else []
        given = tuple(word.replace("OUT", str(out)) for word in options)
        own = [Step(f"eval_{n}", ("eval.run", *given, "--output", str(out / "results" / n))) for n in names]
        if (out / "predictions").exists():
            generate = (
                "beam_jobs.generate",
                "--passages",
                str(out / "passages"),
                "--output",
                str(out / "predictions"),
            )
            own.append(Step("generate", generate))
        steps.append(own)
    return Reader(outs, steps)


@pytest.fixture
def out(tmp_path):
    """rag is right on q0…q29, closed on q0…q9; rag's hit is at rank 1 (even), 3 (odd), none from q30 on."""
    questions = [
        {"question_id": f"q{i:02d}", "question": f"who is {i}?", "answers": [f"answer {i}"],
         "gold_pages": [str(i)],
         "set": "even" if i % 2 == 0 else "odd"}
        for i in range(N)
    ]  # fmt: skip
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))

    def ranks(i):
        return None if i >= 30 else 1 if i % 2 == 0 else 3

    write_results(
        tmp_path / "results" / "rag",
        lambda i: i < 30,
        ranks=ranks,
        log_prob=lambda i: -1.0 - (i == 3) * 1e-3,
        depth=3,
    )
    write_results(tmp_path / "results" / "closed", lambda i: i < 10)
    retrieved = [
        {"question_id": f"q{i:02d}", "passage_ids": ["a", "b"], "doc_scores": [math.log(4), math.log(2)],
         "log_partition": math.log(8)}
        for i in range(N)
    ]  # fmt: skip
    write_stage(tmp_path / "retrieved", "retrieve", RETRIEVED, retrieved)
    return tmp_path


OPTIONS = (
    "--questions",
    "OUT/q.jsonl",
    "--task",
    "custom",
    "--retrieved",
    "OUT/retrieved",
    "--predictions",
    "OUT/predictions",
)


def measure(out, **claim):
    claim = {"says": "x", "result": "rag", "at_least": 0.0, **claim}
    reader = reader_of(out, options=OPTIONS)
    made = Claim(**claim)
    return KINDS[made.kind].measure(reader, made, {"ks": [1, 2, 3]}), made


def test_a_value_is_the_summarys_own(out):
    found, _ = measure(out, kind="value", metric="exact_match")
    assert (found.value, (found.low, found.high), found.n) == (0.75, wilson(30, N), N)
    found, claim = measure(out, kind="value", metric="f1")
    assert judge(claim, found) == (False, "not measured: rag has no f1 on all")


def test_a_difference_is_that_of_the_comparison(out):
    found, _ = measure(out, kind="difference", metric="exact_match", baseline="closed")
    assert found.value == 0.5 and found.n == N and 0.3 < found.low < 0.5 < found.high < 0.7
    found, _ = measure(out, kind="difference", metric="exact_match", baseline="closed", slice="set=odd")
    assert found.value == 0.5 and found.n == 20, "by the test set's own column"
    found, _ = measure(
        out, kind="difference", metric="exact_match", baseline="closed", slice="answer_rank=2-5"
    )
    assert found.value == pytest.approx(10 / 15) and found.n == 15, (
        "by what the candidate found: q1, q3, … q29"
    )
    found, _ = measure(
        out, kind="difference", metric="exact_match", baseline="closed", slice="answer_rank=none"
    )
    assert (found.value, found.low, found.high, found.n) == (0.0, 0.0, 0.0, 10)
    found, claim = measure(out, kind="difference", metric="exact_match", baseline="closed", slice="set=none")
    assert judge(claim, found)[1].endswith("is undefined in one of the two, or no question is left")


def test_other_questions_are_no_comparison(out):
    write_results(out / "results" / "few", lambda i: True, ids=range(5))
    found, claim = measure(out, kind="difference", metric="exact_match", baseline="few")
    holds, why = judge(claim, found)
    assert not holds and "questions: 0 only in the baseline, 35 only in the candidate" in why


def test_recall_and_mass_at_any_k(out):
    for k, value in ((1, 15 / 40), (2, 15 / 40), (3, 30 / 40)):
        found, _ = measure(out, kind="value", metric=f"recall@{k}")
        assert found.value == value and (found.low, found.high) == wilson(round(value * N), N)
    found, _ = measure(out, kind="value", metric="mass@1")
    assert found.value == pytest.approx(0.5, abs=1e-6) and found.n == N
    assert measure(out, kind="value", metric="mass@2")[0].value == pytest.approx(0.75, abs=1e-6)
    found, _ = measure(out, kind="value", metric="recall@3", slice="set=even")
    assert (found.value, found.n) == (0.75, 20)


def test_two_figures_rise_together(out):
    for k in (1, 2, 3):
        write_results(out / "results" / f"k_{k}", lambda i, k=k: i < 10 * k)
    claim = dict(kind="together", result="k_{k}", metric="exact_match", at="ks", baseline="rag")
    found, _ = measure(out, **claim, baseline_metric="mass@{k}")
    assert found.value == pytest.approx(np.corrcoef([10, 20, 30], [0.5, 0.75, 0.75])[0, 1]) and found.n == 3
    assert correlation([[0.1, 0.2], [0.1, 0.3]]) is None and correlation([[1, 2], [2, 4]]) == pytest.approx(1)


def test_agreement_of_two_runs(out):
    found, _ = measure(out, kind="same_answers", baseline="closed")
    assert (found.value, found.n) == (0.5, N), "q0…q9 are right in both, q30…q39 wrong in both"
    found, _ = measure(out, kind="log_prob_gap", baseline="closed")
    assert found.value == pytest.approx(1e-3) and found.low is None and found.n == N


def test_nothing_agrees_with_nothing(out):
    """Two runs without answers, or of other questions, agree in nothing."""
    for name in ("mute", "dumb"):
        write_results(out / "results" / name, lambda i: False, texts=lambda i: None, log_prob=None)
    write_results(out / "results" / "few", lambda i: True, ids=range(5))
    found, _ = measure(out, kind="same_answers", result="mute", baseline="dumb")
    assert (found.value, found.n) == (0.0, N)
    found, claim = measure(out, kind="log_prob_gap", result="mute", baseline="dumb", at_most=1e-4)
    assert judge(claim, found) == (False, "not measured: no log-probability is in mute and dumb")
    found, claim = measure(out, kind="log_prob_gap", result="mute", baseline="closed")
    assert judge(claim, found)[1] == "not measured: 40 log-probabilities are in one of mute and closed only"
    for kind in ("same_answers", "log_prob_gap"):
        found, claim = measure(out, kind=kind, baseline="few")
        assert judge(claim, found)[1] == "not measured: rag and few answer other questions"


def test_a_seed_without_a_figure_leaves_none_at_all(out, tmp_path):
    two = tmp_path / "two"
    write_results(two / "results" / "rag", lambda i: True, log_prob=None)
    write_results(two / "results" / "closed", lambda i: True, log_prob=None)
    reader = reader_of(out, two, options=OPTIONS)
    assert reader.log_prob_gap("rag", "closed").value is None


def test_recall_of_more_passages_than_there_are_is_no_figure(out):
    found, claim = measure(out, kind="value", metric="mass@4")
    assert judge(claim, found) == (False, "not measured: rag has 3 passages a question: no mass@4")
    found, claim = measure(out, kind="difference", metric="recall@3", baseline="closed")
    assert judge(claim, found)[1] == "not measured: closed has 2 passages a question: no recall@3"


def test_belief_without_passages_is_no_figure(out):
    write_results(out / "results" / "none", lambda i: True, posterior=())
    found, claim = measure(out, kind="posterior_gain", result="none")
    assert judge(claim, found)[0] is False and found.value is None


def test_a_slice_that_is_none_is_no_figure(out):
    for kind in ({"kind": "difference", "baseline": "closed"}, {"kind": "value"}):
        found, claim = measure(out, **kind, metric="recall@1", slice="sort=x")
        assert judge(claim, found)[1].startswith("not measured: ") and "sort" in judge(claim, found)[1]


def test_belief_moves_to_the_gold_page(out):
    found, _ = measure(out, kind="posterior_gain")
    assert (found.value, found.n) == (0.25, N), "0.75 of the posterior, 0.5 of the prior"
    found, _ = measure(out, kind="posterior_gain", slice="set=odd")
    assert found.n == 20


def test_training_logs(out):
    for name, lines in {
        "bad": [{"step": 1, "distinct_lists": 0.9}, {"step": 2, "distinct_lists": 0.1},
                {"step": 2, "warning": "warning: retrieval has collapsed: 1 distinct set"}],
        "good": [{"step": 1, "distinct_lists": 0.8}],
    }.items():  # fmt: skip
        (out / "checkpoints" / name).mkdir(parents=True)
        (out / "checkpoints" / name / "_log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in lines))
    assert measure(out, kind="warned", result="bad")[0].value == 1
    assert measure(out, kind="warned", result="good")[0].value == 0
    found, _ = measure(out, kind="logged", result="bad", metric="distinct_lists")
    assert (found.value, found.n) == (0.1, 1)
    for kind in ("warned", "logged"):
        (out / "checkpoints" / "blind").mkdir(exist_ok=True)
        (out / "checkpoints" / "blind" / "_log.jsonl").write_text('{"step": 1, "loss": 2.0}\n')
        found, claim = measure(out, kind=kind, result="blind", metric="distinct_lists", at_most=0.0)
        assert judge(claim, found) == (False, "not measured: the log of blind has no distinct_lists")
    (out / "checkpoints" / "blind" / "_log.jsonl").write_text("[1]\n")
    with pytest.raises(DataError, match=r"blind/_log.jsonl, line 1: expected a JSON object"):
        measure(out, kind="warned", result="blind")
    found, claim = measure(out, kind="logged", result="good", metric="none")
    assert judge(claim, found) == (False, "not measured: the log of good has no none")


def test_weights_are_counted(out):
    for name, shape in (("a", (3, 4)), ("b", (2, 4))):
        (out / "checkpoints" / name / "generator").mkdir(parents=True)
        path = out / "checkpoints" / name / "generator" / "model.safetensors"
        safetensors.numpy.save_file({"w": np.zeros(shape), "v": np.zeros(5)}, path)
    found, claim = measure(
        out, kind="more_parameters", result="a", baseline="b", metric="generator", equals=0
    )
    assert (found.value, found.n) == (4, 17)
    assert judge(claim, found) == (False, "4: not 0")
    found, claim = measure(
        out, kind="more_parameters", result="a", baseline="b", metric="question_encoder", equals=0
    )
    assert judge(claim, found) == (False, "not measured: checkpoint a has no question_encoder"), "0 is not 0"


@pytest.mark.parametrize(
    "expectation, figure, holds",
    [
        ({"above": 0}, (0.1, 0.01, 0.2), True),
        ({"above": 0}, (0.1, 0.0, 0.2), False),
        ({"below": 0}, (-0.1, -0.2, -0.01), True),
        ({"at_least": 0.7}, (0.7, 0.6, 0.8), True),
        ({"at_least": 0.7}, (0.69, 0.6, 0.8), False),
        ({"at_most": 0.15}, (0.16, 0.1, 0.2), False),
        ({"above": -0.02, "below": 0.02}, (0.01, 0.0, 0.015), True),
        ({"above": -0.02, "below": 0.02}, (0.01, -0.01, 0.03), False),
        ({"above": 0}, (0.1, None, None), False),
        ({"below": 0}, (-0.1, None, None), False),
        ({"equals": 1, "tolerance": 0.01}, (0.995, None, None), True),
        ({"equals": 1}, (0.995, None, None), False),
        ({"above": 0, "at_least": 0.3}, (0.2, 0.1, 0.3), False),
        ({"at_least": 0.5}, (None, None, None), False),
    ],
)
def test_every_expectation(expectation, figure, holds):
    claim = Claim("x", "value", "r", metric="f1", **expectation)
    assert judge(claim, Figure(*figure))[0] is holds


def test_the_reason_says_what_was_found_and_what_it_means():
    claim = Claim("x", "difference", "r", above=0, at_least=0.3, if_not="It is a small world.")
    assert expected(claim) == "> 0.0, the whole interval; ≥ 30.0"
    assert judge(claim, Figure(0.2, -0.1, 0.5))[1] == (
        "20.0 [-10.0, 50.0]: the interval does not lie above 0.0, below 30.0. It is a small world."
    )
    assert judge(claim, Figure(0.4, 0.3, 0.5)) == (True, "40.0 [30.0, 50.0]")
    assert expected(Claim("x", "log_prob_gap", "r", at_most=1e-4)) == "≤ 1.0e-04"


def test_seeds_are_worlds_of_their_own(out, tmp_path):
    two = tmp_path / "two"
    write_results(two / "results" / "rag", lambda i: i < 10)
    write_results(two / "results" / "closed", lambda i: i < 10)
    reader = reader_of(out, two, options=OPTIONS)
    found = reader.value("rag", "exact_match")
    (a, b), (c, d) = wilson(30, N), wilson(10, N)
    assert found.value == 0.5 and found.n == 2 * N
    assert found.low == pytest.approx(0.5 - math.hypot(0.75 - a, 0.25 - c) / 2)
    assert found.high == pytest.approx(0.5 + math.hypot(b - 0.75, d - 0.25) / 2)
    assert reader.difference("rag", "closed", "exact_match").value == 0.25
    one = Figure(0.5, 0.4, 0.6, 3)
    assert combined([one]) is one and combined([one, Figure(None, why="w")]).why == "w"


def experiment():
    table = Table(
        "T", (C("EM", "a", "exact_match"),), (Row("ours", "rag", ("44",)), Row("theirs", None, ("45",)))
    )
    curve = Curve("F", "K", "ks", (Line("recall", "rag", "recall@{k}"),))
    claims = (
        Claim("more", "difference", "rag", "closed", "exact_match", above=0.0, paper="44 against 34"),
        Claim("much", "value", "rag", metric="exact_match", at_least=0.9),
    )
    return Experiment("E", "about", "e", (table,), (curve,), (Heat("H", "rag"),), claims)


def test_rows_of_claims_and_figures(out, tmp_path):
    write_results(out / "results" / "a_rag", lambda i: i < 20)
    reader = reader_of(out, options=OPTIONS)
    rows = claim_rows([experiment()], reader, {"ks": [1, 3]})
    assert [(r["experiment"], r["claim"], r["holds"]) for r in rows] == [
        ("e", "more", True),
        ("e", "much", False),
    ]
    assert rows[0]["paper"] == "44 against 34" and rows[1]["why"].endswith(": below 90.0")
    cells = figure_rows([experiment()], reader, {"ks": [1, 3]})
    assert [(c["row"], c["column"], c["value"], c["paper"]) for c in cells] == [
        ("ours", "EM", 0.5, "44"), ("theirs", "EM", None, "45"),
        ("recall", "1", 0.375, ""), ("recall", "3", 0.75, ""),
    ]  # fmt: skip
    write_rows(str(tmp_path / "f.parquet"), cells, FIGURES)
    assert pq.read_table(tmp_path / "f.parquet").to_pylist() == cells


def test_the_heat_map_shows_where_passages_take_turns(out):
    flat, turns = [[0.5, 0.5], [0.4, 0.6]], [[0.9, 0.1], [0.05, 0.95]]
    rows = [
        {"question_id": f"q{i:02d}", "status": "ok", "prediction": f"p {i}", "candidates": [],
         "tokens": ["a", "b"],
         "passage_ids": ["1:0", "2:0"], "doc_prior": [0.5, 0.5], "doc_posterior": [0.5, 0.5],
         "token_posterior": turns if i == 7 else flat}
        for i in range(N)
    ]  # fmt: skip
    write_stage(out / "predictions", "generate", PREDICTIONS, rows)
    passages = [
        {"passage_id": f"{i}:0", "page_id": str(i), "title": f"Title {i}", "text": "", "n_words": 0,
         "content_hash": content_hash("", "")} for i in (1, 2)
    ]  # fmt: skip
    write_stage(out / "passages", "split", PASSAGES, passages)
    found = heat_answer(Heat("H", "rag"), reader_of(out, options=OPTIONS))
    assert (found.question, found.prediction) == ("who is 7?", "p 7")
    assert found.titles == ["Title 1", "Title 2"] and np.allclose(found.posterior_TK, turns)
    odd = heat_answer(Heat("H", "rag", "set=even"), reader_of(out, options=OPTIONS))
    assert odd.prediction == "p 0", "the first of equals"


def test_an_option_that_no_step_was_given(out):
    with pytest.raises(UsageError, match="results/rag: no step makes it with --questions"):
        reader_of(out).option(0, "rag", "--questions")
