"""The experiments' TOML: every one makes a plan, and whatever is wrong with one is a clear error."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval._steps import Step
from eval.miniature._expand import Piece as P
from eval.miniature._expand import Scope, make_steps, needed, option_of, ordered, output_of
from eval.miniature._plan import make_plan, sizes_of
from eval.miniature._recipes import Common, StepRecipe, read_book
from rag_core.errors import UsageError

COMMON = """
order = ["a"]
[sizes.quick]
seeds = 1
ks = [1, 2]
[sizes.full]
seeds = 3
ks = [1, 2, 5]
[let]
ask = "--questions {out}/q"
[axis.kind.token]
way = "--kind token --greedy"
[axis.kind.sequence]
way = "--kind sequence"
[[step]]
name = "world"
command = "m.world --seed {seed} --output {out}/q"
[[step]]
name = "shared"
command = "m.shared --output {base}/shared"
[[step]]
name = "eval_{kind}_{k}"
each = { kind = ["token", "sequence"], k = "ks" }
command = "m.eval {ask} {kind.way} --with {base}/shared --k {k} --output {out}/results/{kind}_{k}"
"""
ONE = """
title = "A"
about = "What it is."
[[claim]]
says = "with {ks.last}"
kind = "difference"
result = "token_{ks.last}"
baseline = "token_{ks.first}"
metric = "exact_match"
above = 0
"""


@pytest.fixture
def recipes(tmp_path):
    def write(common: str = COMMON, **experiments: str):
        (tmp_path / "common.toml").write_text(common)
        for name, text in (experiments or {"a": ONE}).items():
            (tmp_path / f"{name}.toml").write_text(text)
        return read_book(tmp_path)

    return write


def plan(book, out, size="quick", only=(), seeds=(0,)):
    return make_plan(book, sizes_of(book, size), out, seeds, only)


@pytest.mark.parametrize("size", ("quick", "full"))
def test_the_shipped_experiments_make_a_plan(size, tmp_path):
    book = read_book()
    experiments, (steps,) = plan(book, tmp_path, size)
    assert [e.name for e in experiments] == [e.name for e in book.experiments] and len(steps) > 100
    seen = set()
    for step in steps:
        assert set(step.needs) <= seen
        assert not [word for word in step.argv if "{" in word or "}" in word]
        seen.add(step.name)
    by_name = {step.name: step for step in steps}
    trained = by_name["train_trained_token"]
    assert {"forms", "world", "embed_2016", "split_2016"} == set(trained.needs)
    assert "NOT ENOUGH INFO" in trained.argv, "a quoted label stays one word"
    assert "--reuse" in by_name["embed_2018"].argv
    models = [s for s in steps if s.name.startswith("train_") and s.name != "train_collapse"]
    assert len(models) == 7, "one model a variant for all tasks"


@pytest.mark.parametrize("experiment", [e.name for e in read_book().experiments])
def test_every_experiment_alone_has_what_it_needs_and_no_more(experiment, tmp_path):
    book = read_book()
    (chosen,), (steps,) = plan(book, tmp_path, only=(experiment,))
    _, (whole,) = plan(book, tmp_path)
    assert chosen.name == experiment and 0 < len(steps) < len(whole)
    wanted = {need for step in steps for need in step.needs}
    last = [s for s in steps if s.name not in wanted]
    assert all("/results/" in s.argv[-1] or "/checkpoints/" in s.argv[-1] for s in last)


@pytest.mark.parametrize("size", ("quick", "full"))
def test_what_is_compared_was_trained_and_asked_alike(size, tmp_path):
    """No baseline trains less, on other questions, or reads fewer passages than what is held against it."""
    book = read_book()
    experiments, (steps,) = plan(book, tmp_path, size)
    by_name, by_output = {s.name: s for s in steps}, {output_of(s): s for s in steps}
    trained = [s for s in steps if s.name.startswith("train_") and s.name != "train_collapse"]
    for option in ("--preset", "--questions", "--generator", "--steps", "--max-target-length", "--seed"):
        assert len({option_of(s, option) for s in trained}) == 1, option
    assert len({option_of(s, "--n-docs") for s in trained} - {None}) == 1, "closed book reads none"
    for e in experiments:
        for claim in e.claim:
            if claim.kind != "difference" or claim.result.startswith(("k_", "qa_null")):
                continue  # K is what is compared; and a null document stands beside the K
            two = [by_name[f"eval_{r}"] for r in (claim.result, claim.baseline) if f"eval_{r}" in by_name]
            for option in ("--questions", "--metrics"):
                assert len({option_of(s, option) for s in two}) <= 1, claim.says
            answered = [by_output.get(option_of(s, "--predictions")) for s in two]
            for option in ("--n-docs", "--num-beams", "--max-length"):
                given = {option_of(s, option) for s in answered if s is not None} - {None}
                assert len(given) <= 1, (claim.says, option)


def test_hot_swap_trains_one_model(tmp_path):
    _, (steps,) = plan(read_book(), tmp_path, only=("hot_swap",))
    assert [s.name for s in steps if s.name.startswith("train_")] == ["train_trained_token"]


def test_templates_are_filled(recipes, tmp_path):
    experiments, (steps,) = plan(recipes(), tmp_path / "with space")
    out = str(tmp_path / "with space" / "seed-0")
    assert [s.name for s in steps] == ["world", "shared", "eval_token_1", "eval_token_2"]
    shared = str(tmp_path / "with space" / "shared")
    assert steps[3].argv == (
        "m.eval", "--questions", f"{out}/q", "--kind", "token", "--greedy", "--with", shared, "--k", "2",
        "--output", f"{out}/results/token_2",
    )  # fmt: skip
    assert steps[3].needs == ("world", "shared")
    (claim,) = experiments[0].claim
    assert (claim.says, claim.result, claim.baseline) == ("with 2", "token_2", "token_1")
    _, plans = plan(recipes(), tmp_path, "full", seeds=(4, 5))
    assert [s.name for s in plans[1]] == ["world.5", "shared", "eval_token_1.5", "eval_token_5.5"]
    assert plans[1][2].needs == ("world.5", "shared") and "5" in plans[1][0].argv
    assert plans[0][1] == plans[1][1], "what all seeds share is made once"


def test_words_and_lists():
    scope = Scope({"a": P("x {b}"), "b": "y z", "l": [1, 2], "e": P(""), "in.y z": P("deep")}, "here")
    assert scope.words("m {a} {e} '{b}' p{b}") == ["m", "x", "y z", "y z", "py z"]
    assert scope.words("f/{l*} {l.last} {l.but_last} {in.{b}}") == ["f/1", "f/2", "2", "1", "deep"]


@pytest.mark.parametrize(
    "common, one, message",
    [
        (COMMON.replace("[let]", "[lets]"), ONE, "common.toml: unknown key 'lets'"),
        (COMMON.replace("command = \"m.world", "comand = \"m.world"), ONE, r"unknown key 'step\[1\].comand'"),
        (COMMON, ONE.replace("says", "sais"), r"a.toml: unknown key 'claim\[1\].sais'"),
        (COMMON, ONE.replace("above = 0", ""), "expects nothing"),
        (COMMON, ONE.replace("above = 0", "above = 'x'"), r"claim\[1\].above = 'x': expected a number"),
        (COMMON, ONE.replace('"difference"', '"diff"'), "unknown kind 'diff'; kinds: value, difference"),
        (COMMON, ONE.replace('baseline = "token_{ks.first}"', ""), "kind 'difference' needs baseline"),
        (COMMON, ONE.replace("exact_match", "exact"), "unknown metric 'exact'"),
        (COMMON, ONE.replace("token_{ks.last}", "token_9"), "no step makes results/token_9"),
        (COMMON, ONE + 'steps = ["x"]', r"unknown key 'claim\[1\].steps'"),
        (COMMON, 'steps = ["x"]' + ONE, "no step is called 'x'"),
        (COMMON.replace("{ask} {kind.way}", "{aks}"), ONE, "{aks} is unknown; known: ask"),
        (COMMON.replace("{out}/q\"\n[axis", "{out}/r\"\n[axis"), ONE, "reads .*/r, which no step makes"),
        (COMMON.replace('["token", "sequence"], k', '["tokn"], k'), ONE, "'tokn' is no value of axis kind"),
        (COMMON.replace('k = "ks"', 'k = "kz"'), ONE, "each.k = 'kz': expected a list"),
        (COMMON.replace('name = "world"', 'name = "world"\nneeds = ["none"]'), ONE,
         "needs 'none', which is no step"),
        (COMMON.replace('name = "world"', 'name = "world"\nneeds = ["eval_token_1"]'), ONE,
         "steps need each other: world → eval_token_1 → world"),
        (COMMON.replace('ask = "', 'ask = "{ask} '), ONE, "ask → ask is a circle"),
        (COMMON.replace("ks = [1, 2, 5]", ""), ONE, "sizes.full has other keys than sizes.quick"),
        (COMMON.replace('order = ["a"]', 'order = ["a", "b"]'), ONE, "expected each of a once"),
        (COMMON.replace("--output {out}/q", "--out {out}/q"), ONE, "step world has no --output"),
        (COMMON.replace("{kind}_{k}\"\neach", "{kind}\"\neach"), ONE, "two steps are called 'eval_token'"),
        (COMMON.replace('name = "world"', 'name = "../world"'), ONE, "step '../world': a name is of letters"),
        (COMMON.replace('name = "world"', 'name = ""'), ONE, "step '': a name is of letters"),
        ("order = [", ONE, "common.toml: not valid TOML"),
        (COMMON.replace('order = ["a"]', "order = 1"), ONE, "order = 1: expected each of a once"),
        (COMMON.replace("[axis.kind.token]\n", '[axis]\nkind = "x"\n[axis.other.token]\n').replace(
            "[axis.kind.sequence]", "[axis.other.sequence]"), ONE, "axis.kind: expected tables"),
        (COMMON.replace("[sizes.full]", "[sizes.half]"), ONE, "sizes.full is missing"),
        (COMMON.replace("seeds = ", "seed_s = "), ONE, "sizes.quick.seeds is missing"),
        (COMMON.replace("seeds = 1", "seeds = 0"), ONE, "sizes.quick.seeds = 0: expected"),
        (COMMON.replace("seeds = 1", "seeds = nan"), ONE, "sizes.quick.seeds = nan: expected"),
        (COMMON, ONE.replace("above = 0", "above = nan"), r"claim\[1\].above = nan: expected a number"),
        (COMMON, ONE + "tolerance = 0.1", "claim 'with {ks.last}' has a tolerance, but no equals"),
        (COMMON, ONE + "tolerance = -0.1\nequals = 1", "claim 'with {ks.last}': tolerance = -0.1 is below 0"),
        (COMMON, ONE + 'at = "ks"', "claim 'with 2': kind 'difference' takes no at"),
        (COMMON, ONE.replace('"difference"', '"log_prob_gap"').replace('metric = "exact_match"', ""),
         "kind 'log_prob_gap' has no interval: above cannot hold"),
        (COMMON.replace("--with {base}", "--n-docs {k} --retrieved {out}/results/none --with {base}")
         + '[[step]]\nname = "find"\ncommand = "m.find --top-k 1 --output {out}/results/none"\n', ONE,
         "eval_token_2 reads 2 passages a question, find keeps 1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(recipes, tmp_path, common, one, message):
    with pytest.raises(UsageError, match=message.replace("{", r"\{") if r"\[" not in message else message):
        plan(recipes(common, a=one), tmp_path)


def test_rows_of_the_paper_fit_their_columns(recipes):
    table = """
[[table]]
title = "T"
column = [{ head = "x", set = "token", metric = "exact_match" }]
row = [{ name = "r", paper = ["1", "2"] }]
"""
    with pytest.raises(UsageError, match="row 'r': 2 figures of the paper for 1 columns"):
        recipes(a=ONE + table)


TWICE = """
[[table]]
title = "T"
column = [{ head = "x", set = "token", metric = "exact_match" }]
row = [{ name = "r" }]
[[table]]
title = "U"
column = [{ head = "x", set = "token", metric = "exact_match" }]
row = [{ name = "r" }]
[[curve]]
title = "C"
x = "K"
at = "ks"
line = [
    { name = "l", result = "token_{k}", metric = "f1" }, { name = "m", result = "token_{k}", metric = "f1" },
]
"""


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('"U"', '"T"', "'T' is the title of two"),
        ('"C"', '"T"', "'T' is the title of two"),
        ('{ head = "x", set = "token", metric = "exact_match" }',
         '{ head = "x", set = "a", metric = "f1" }, { head = "x", set = "b", metric = "f1" }',
         "table 'T': two columns are called 'x'"),
        ('row = [{ name = "r" }]', 'row = [{ name = "r" }, { name = "r", paper = ["1"] }]',
         "table 'T': two rows are called 'r'"),
        ('name = "m"', 'name = "l"', "figure 'C': two lines are called 'l'"),
    ],
)  # fmt: skip
def test_nothing_on_the_page_hides_another(recipes, old, new, message):
    recipes(a=ONE + TWICE)
    with pytest.raises(UsageError, match=message):
        recipes(a=ONE + TWICE.replace(old, new))


def test_the_shipped_experiments_say_why_where_it_is_known():
    """Effects of the paper that have not appeared here carry their reason."""
    claims = {c.says: c for e in read_book().experiments for c in e.claim}
    assert claims["Clues: RAG-Sequence is more diverse than RAG-Token"].if_not


def test_the_directory_that_one_stands_in_is_a_directory(recipes):
    """`--output .`: paths below it begin with no dot, and steps need each other all the same."""
    for output in (Path("."), Path("..")):
        _, (steps,) = plan(recipes(), output)
        assert steps[3].needs == ("world", "shared")


def test_sizes_change_by_name(recipes):
    book = recipes(COMMON.replace("ks = ", "rate = 0.5\nks = "))
    sizes = sizes_of(book, "quick", ["ks=3,4", "seeds=2", "rate=1"])
    assert sizes == {"seeds": 2, "ks": [3, 4], "rate": 1.0}
    for change, message in (
        ("k=1", "no such size; there are seeds, rate, ks"),
        ("seeds=x", "expected a value like 1"),
        ("seeds", "expected a value like 1"),
        ("seeds=0", "must be above 0"),
        ("seeds=-1", "must be above 0"),
        ("ks=1,0", "must be above 0"),
        ("ks=", "expected a value like"),
        ("ks=1,,2", "expected a value like"),
        ("rate=nan", "must be above 0"),
        ("rate=inf", "must be above 0"),
    ):
        with pytest.raises(UsageError, match=message):
            sizes_of(book, "quick", [change])
    with pytest.raises(UsageError, match="--only b: no such experiment; there are a"):
        book.chosen(["b"])


def test_order_and_closure():
    steps = [Step("c", (), ("b",)), Step("a", ()), Step("b", (), ("a",)), Step("d", ())]
    assert [s.name for s in ordered(steps, "f")] == ["a", "b", "c", "d"]
    assert [s.name for s in needed(ordered(steps, "f"), ["b"])] == ["a", "b"]


def test_two_steps_never_write_to_one_place(tmp_path):
    common = Common(
        {"quick": {}}, (StepRecipe("a", "m --output {out}/x"), StepRecipe("b", "m --output {out}/x"))
    )
    with pytest.raises(UsageError, match="steps a and b write to"):
        make_steps(common, {}, tmp_path, 0, "f")
