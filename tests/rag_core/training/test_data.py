"""Order, pairs, configs, the collapse monitor: the parts of training that need no model."""

import tomllib
from collections import Counter
from dataclasses import replace

import pytest
import torch

from rag_core import DecodingConfig
from rag_core.errors import DataError, UsageError
from rag_core.models.target_layout import TargetLayout
from rag_core.schemas import Question
from rag_core.training.config import PRESETS, TrainConfig, load_preset, resolve
from rag_core.training.examples import batch_indices
from rag_core.training.monitor import CollapseMonitor
from rag_core.training.optimizer import learning_rate_factor
from rag_core.training.run import plan_steps
from rag_core.training.targets import expand_regex, make_examples, regex_targets


@pytest.mark.parametrize("n, batch", [(64, 4), (10, 4), (3, 8), (7, 7)])
def test_every_epoch_holds_every_example_once(n, batch):
    epochs = 3
    stream = [i for step in range(-(-epochs * n // batch)) for i in batch_indices(n, batch, 5, step)]
    for e in range(epochs):
        assert sorted(stream[e * n : (e + 1) * n]) == list(range(n))
    assert len({tuple(stream[e * n : (e + 1) * n]) for e in range(epochs)}) == epochs or n == 1


def test_order_is_a_function_of_seed_and_step():
    assert batch_indices(64, 4, 0, 7) == batch_indices(64, 4, 0, 7)
    assert batch_indices(64, 4, 0, 7) != batch_indices(64, 4, 1, 7)


def test_pairs_by_rule_and_empty_answers():
    questions = [
        Question("a", "x?", ("one", "two", "one")),
        Question("b", "y?", (" ", "three")),
        Question("c", "z?", ("",)),
    ]
    assert [(e.question_id, e.target) for e in make_examples(questions, "each")] == [
        ("a", "one"), ("a", "two"), ("b", "three"),
    ]  # fmt: skip
    assert [e.target for e in make_examples(questions, "first")] == ["one", "three"]
    with pytest.raises(DataError, match="no training pair in 1 questions"):
        make_examples(questions[2:], "each")
    with pytest.raises(DataError, match="'one' is no label"):
        make_examples(questions, "first", ("SUPPORTS",))


def test_in_a_mixture_the_kind_of_a_question_says_whether_its_answer_is_a_label():
    claim = Question("a", "it is so", ("SUPPORTS",), answer_kind="label")
    asked = Question("b", "who?", ("Ada",))
    labels = ("SUPPORTS", "REFUTES")
    made = make_examples([claim, asked], "first", labels)
    assert [(e.target, e.is_label) for e in made] == [("SUPPORTS", True), ("Ada", False)]
    # A file that tells no kinds is labels throughout; without labels nothing is.
    assert [e.is_label for e in make_examples([replace(claim, answer_kind="text")], "first", labels)] == [
        True
    ]
    assert [e.is_label for e in make_examples([claim, asked], "first")] == [False, False]
    with pytest.raises(DataError, match="question 'a': answer 'SUPPORTS' is no label"):
        make_examples([claim, asked], "first", ("yes", "no"))


def test_layers_win_in_order_and_unknown_keys_fail():
    config = resolve([{"preset": "tiny", "lr": 1e-3}, {"lr": 1, "batch_size": 3}])
    assert (config.lr, config.batch_size, config.n_docs) == (1.0, 3, load_preset("tiny")["n_docs"])
    for layer, message in (
        ({"batchsize": 3}, "unknown training option 'batchsize'"),
        ({"preset": "none"}, "unknown preset 'none'; presets: .*tiny"),
        ({"lr": "fast"}, "option lr: 'fast'"),
        ({"steps": 1.5}, "option steps"),
        ({"kind": "both"}, "kind 'both'"),
    ):
        with pytest.raises(UsageError, match=message):
            resolve([layer])


def test_a_run_without_steps_is_an_error():
    config = TrainConfig(questions="q", output="o", closed_book=True)
    with pytest.raises(UsageError, match="give --steps or --epochs"):
        config.check()
    assert plan_steps(TrainConfig(epochs=1.5, batch_size=4), 10) == 4
    with pytest.raises(UsageError, match="--passages"):
        TrainConfig(questions="q", output="o", steps=1).check()


def test_schedule_warms_up_and_falls_to_zero():
    config = TrainConfig(warmup_steps=4, schedule="linear")
    factors = [learning_rate_factor(s, 12, config) for s in range(12)]
    assert factors[:4] == [0.25, 0.5, 0.75, 1.0]
    assert factors[4] == 1.0 and factors[-1] == pytest.approx(1 / 8)


def test_collapse_is_named_once_and_only_when_it_is_one():
    scores = torch.zeros(4, 2)
    healthy, collapsed = CollapseMonitor(window=5), CollapseMonitor(window=5)
    for step in range(5):
        healthy.add([[f"p{4 * step + b}", "x"] for b in range(4)], scores, 1.0)
        collapsed.add([["p1", "p2"]] * 4, scores, 0.0)
    assert healthy.warning(1000) is None
    assert "appendix H" in collapsed.warning(1000)
    assert collapsed.warning(1000) is None
    figures = collapsed.figures()
    assert figures["distinct_passages"] == 2 / 40
    assert figures["prior_entropy"] == pytest.approx(0.6931, abs=1e-4)
    restored = CollapseMonitor(window=5)
    restored.restore(collapsed.state())
    assert restored.figures() == figures


def test_counter_of_ids_matches_the_plan():
    seen = Counter(i for step in range(8) for i in batch_indices(16, 4, 0, step))
    assert set(seen.values()) == {2}


def test_triviaqa_keeps_the_answers_its_passages_hold():
    questions = [Question("a", "who?", ("Ada Lovelace", "A. Lovelace")), Question("b", "who?", ("Bea",))]
    texts = {"a": ["the countess ada LOVELACE wrote"], "b": ["nothing"]}
    examples = make_examples(questions, "found", texts_of=texts.__getitem__)
    assert [(e.question_id, e.target) for e in examples] == [("a", "Ada Lovelace")]


def test_curatedtrec_takes_the_most_frequent_match_else_what_the_pattern_can_be():
    texts = ["In 1847 and in 1848, said he", "since 1848"]
    assert regex_targets(["18(47|48)"], texts) == ["1848"]
    assert regex_targets(["Long\\s?Island|NY"], texts) == ["Long Island", "LongIsland", "NY"]
    assert expand_regex("(Bill|William) .*Gates") == ["Bill  Gates", "William  Gates"]
    assert expand_regex("(unclosed") == []
    assert len(expand_regex("(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)")) == 32


def test_every_preset_is_a_config_and_shows_its_launch_command():
    for path in sorted(PRESETS.glob("*.toml")):
        config = resolve([{"preset": path.stem}])
        header = path.read_text().split("[train]")[0]
        assert f"--preset {path.stem}" in header and "Needs:" in header
        generate = tomllib.loads(path.read_text())["generate"]
        options = {k: v for k, v in generate.items() if k not in ("kind", "n_docs")}
        DecodingConfig.from_dict(options).resolved(
            generate.get("kind", config.kind), TargetLayout(start=2, bos=None, eos=2, pad=1)
        )
    assert resolve([{"preset": "nq"}]).targets == "each"
    assert len(resolve([{"preset": "fever3"}]).labels) == 3
