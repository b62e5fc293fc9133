"""Nightly runs: what is computed again, the verdict, its baseline, and what may not be lost."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file

from eval import _nightly_stages, nightly
from eval._gates import Gates
from eval._history import HISTORY, add_to_history, nights_of, read_history
from eval._night import Chain, choose_baselines, compare_chains, night_verdict
from eval._nightly_config import read_config
from eval._nightly_stages import Marks, logic_version, plan_chain
from eval._verdict import as_markdown
from rag_core import run_dir
from rag_core.errors import DataError, UsageError

CONFIG = """
output = "out"
[tasks.small]
task = "custom"
questions = "q.jsonl"
passages = "passages"
embeddings = "embeddings"
[checkpoints.main]
path = "checkpoint"
kind = "token"
n_docs = 3
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A configuration whose inputs are there in name only."""
    (tmp_path / "nightly.toml").write_text(CONFIG)
    (tmp_path / "q.jsonl").write_text('{"question": "who?", "answers": ["me"]}\n')
    for part in ("question_encoder", "generator"):
        (tmp_path / "checkpoint" / part).mkdir(parents=True)
        (tmp_path / "checkpoint" / part / "weights").write_text(part)
    for stage, digest in (("passages", "p1"), ("embeddings", "e1")):
        (tmp_path / stage).mkdir()
        manifest = {"job": stage, "parts": [], "rows": 0, "content_digest": digest}
        (tmp_path / stage / run_dir.MANIFEST).write_text(json.dumps(manifest))
    return tmp_path


def keys(place) -> dict[str, str]:
    config = read_config(str(place / "nightly.toml"))
    return {stage.name: stage.key for stage in plan_chain(config, "small", "main", Marks())}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def test_only_what_depends_on_a_change_gets_a_new_key(place, monkeypatch):
    before = keys(place)
    assert keys(place) == before
    (place / "checkpoint" / "generator" / "weights").write_text("better")
    weights = keys(place)
    assert changed(before, weights) == {"generate", "eval"}
    (place / "nightly.toml").write_text(CONFIG + 'decoding = "thorough"\n')
    assert changed(weights, keys(place)) == {"generate", "eval"}
    (place / "nightly.toml").write_text(CONFIG.replace('"q.jsonl"', '"q.jsonl"\nmetrics = ["bleu1"]'))
    assert changed(weights, keys(place)) == {"eval"}
    (place / "nightly.toml").write_text(CONFIG.replace('"q.jsonl"', '"q.jsonl"\ntop_k = 7'))
    assert changed(weights, keys(place)) == {"retrieve", "generate", "eval"}
    (place / "nightly.toml").write_text("job_options = ['--direct_num_workers=2']" + CONFIG)
    assert keys(place) == weights
    (place / "checkpoint" / "question_encoder" / "weights").write_text("better")
    assert changed(weights, keys(place)) == {"retrieve", "generate", "eval"}


@pytest.mark.parametrize(
    "module, again",
    [
        ("beam_jobs.retrieve", {"retrieve", "generate", "eval"}),
        ("beam_jobs.generate", {"generate", "eval"}),
        ("eval.run", {"eval"}),
    ],
)
def test_a_raised_logic_version_reruns_its_stage_and_what_follows(place, monkeypatch, module, again):
    before = keys(place)
    monkeypatch.setattr(_nightly_stages, "logic_version", lambda m: logic_version(m) + (m == module))
    assert changed(before, keys(place)) == again


def test_logic_versions_are_read_from_the_source():
    from beam_jobs import generate
    from eval import run

    assert logic_version("beam_jobs.generate") == generate.LOGIC_VERSION
    assert logic_version("eval.run") == run.LOGIC_VERSION
    with pytest.raises(RuntimeError, match="has no LOGIC_VERSION"):
        logic_version("eval._nightly_config")


@pytest.mark.parametrize(
    "text, complaint",
    [
        (CONFIG + "beams = 3\n", "unknown key 'checkpoints.main.beams'"),
        (CONFIG.replace("n_docs = 3", 'n_docs = "3"'), "n_docs = '3': expected a whole number above 0"),
        (CONFIG.replace("n_docs = 3", "n_docs = 0"), "expected a whole number above 0"),
        (CONFIG.replace('task = "custom"', 'task = "nqq"'), "tasks are nq"),
        (CONFIG.replace('passages = "passages"\n', ""), "main needs passages"),
        (CONFIG.replace('path = "checkpoint"\n', ""), "checkpoints.main.path is missing"),
        (CONFIG.replace('output = "out"', ""), "output is missing"),
        (CONFIG + 'tasks = ["big"]\n', r"there is no \[tasks.big\]"),
        ('baseline = "yesterday"' + CONFIG, "expected last_green, night:NAME, tag:NAME"),
        (CONFIG.replace("tasks.small", "tasks.'../up'"), "a name has letters"),
        ("output = 'out'\n", r"at least one table \[tasks.NAME\]"),
        ("output = ", "not valid TOML"),
    ],
)
def test_a_wrong_configuration_is_one_clear_line(tmp_path, text, complaint):
    (tmp_path / "n.toml").write_text(text)
    with pytest.raises(UsageError, match=complaint):
        read_config(str(tmp_path / "n.toml"))


def row(night, verdict, task="small", checkpoint="main", **more):
    names = dict.fromkeys(HISTORY.names)
    given = {"night": night, "time": night, "task": task, "checkpoint": checkpoint, "verdict": verdict}
    return {**names, **given, "results": f"stages/{night}", **more}


def finish_results(place, *nights):
    for night in nights:
        (place / "out" / "stages" / night).mkdir(parents=True)
        rows = {"name": "rows.parquet", "bytes": 4}
        manifest = {"job": "eval", "parts": [rows], "rows": 1, "content_digest": night}
        (place / "out" / "stages" / night / run_dir.MANIFEST).write_text(json.dumps(manifest))
        (place / "out" / "stages" / night / "rows.parquet").write_text("PAR1")


def test_the_baseline_is_the_newest_green_night_that_is_still_there(place):
    config = read_config(str(place / "nightly.toml"))
    history = [row("1", "first"), row("2", "pass"), row("3", "pass"), row("4", "regression")]
    finish_results(place, "1", "2", "4")
    (chain,) = choose_baselines(config, history, {})
    assert chain.baseline == "2" and "night 3 are gone" in chain.reasons[0]
    (pinned,) = choose_baselines(dataclasses.replace(config, baseline="night:4"), history, {})
    assert pinned.baseline == "4"
    (tagged,) = choose_baselines(
        dataclasses.replace(config, baseline="tag:release"), history, {"release": "1"}
    )
    assert tagged.baseline == "1"
    with pytest.raises(UsageError, match=r"no such tag \(there are: none\)"):
        choose_baselines(dataclasses.replace(config, baseline="tag:release"), history, {})
    with pytest.raises(UsageError, match="night 9 has no results of small/main"):
        choose_baselines(dataclasses.replace(config, baseline="night:9"), history, {})


def test_half_written_results_are_no_baseline(place):
    config = read_config(str(place / "nightly.toml"))
    history = [row("1", "first"), row("2", "pass")]
    finish_results(place, "1", "2")
    (place / "out" / "stages" / "2" / "rows.parquet").write_text("PA")
    (chain,) = choose_baselines(config, history, {})
    assert chain.baseline == "1" and "rows.parquet: 2 bytes, expected 4" in chain.reasons[0]
    with pytest.raises(UsageError, match="night 2 has no results of small/main .*2 bytes, expected 4"):
        choose_baselines(dataclasses.replace(config, baseline="night:2"), history, {})


def test_an_unreadable_baseline_ends_in_a_verdict(place, monkeypatch):
    def broken(path):
        raise DataError(f"{path}: not readable as Parquet")

    monkeypatch.setattr("eval._night.load_results", broken)
    chain = Chain("small", "main", results="now", baseline="1", baseline_results="then")
    compare_chains(read_config(str(place / "nightly.toml")), [chain], Gates())
    assert chain.verdict == "not_comparable" and "then: not readable" in chain.reasons[0]


def test_a_full_disk_hides_no_verdict(place, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device", "history.parquet")

    told = []
    monkeypatch.setattr(nightly, "run_chains", lambda *_: None)
    monkeypatch.setattr(nightly, "tell", lambda config, verdict: told.append(verdict))
    monkeypatch.setattr(nightly, "add_to_history", full)
    config = str(place / "nightly.toml")
    assert nightly.main([config]) == 12
    shown = capsys.readouterr().out
    assert "FAIL this night is not in the history: [Errno 28] No space left on device" in shown
    assert told[0]["verdict"] == "failed" and told[0]["exit_code"] == 12
    monkeypatch.setattr(nightly, "run_chains", full)
    assert nightly.main([config]) == 12
    assert "No space left on device: 'history.parquet'; history and" in capsys.readouterr().err


def test_a_clock_set_back_neither_hides_a_night_nor_repeats_a_name(tmp_path):
    history = [
        row("2026-11-30T030000Z", "pass", time="2026-11-30T03:00:00Z"),
        row("2026-11-29T030000Z", "pass"),
    ]
    assert [r["night"] for r in nights_of(history, "small", "main")] == [
        "2026-11-29T030000Z",
        "2026-11-30T030000Z",
    ]
    name, moment, remarks = nightly.new_night(str(tmp_path), history, 1796007600.0)
    assert (name, moment) == ("2026-11-30T030000Z-2", "2026-11-30T03:00:00Z") and remarks == []
    name, _, remarks = nightly.new_night(str(tmp_path), history, 1796007599.0)
    assert name == "2026-11-30T025959Z" and "the history already holds 2026-11-30T03:00:00Z" in remarks[0]


def test_a_damaged_history_is_refused_and_kept(tmp_path):
    url = str(tmp_path / "history.parquet")
    add_to_history(url, [row("1", "first", value=0.5, n=4)])
    assert read_history(url)[0]["value"] == 0.5
    whole = (tmp_path / "history.parquet").read_bytes()
    (tmp_path / "history.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="restore it, or move it away"):
        add_to_history(url, [row("2", "pass")])
    assert (tmp_path / "history.parquet").read_bytes() == whole[: len(whole) // 2]
    pq.write_table(pa.table({"night": ["1"]}), url)
    with pytest.raises(DataError, match="columns"):
        read_history(url)


def test_a_full_disk_leaves_the_old_history(tmp_path, monkeypatch):
    url = str(tmp_path / "history.parquet")
    add_to_history(url, [row("1", "first")])
    before = (tmp_path / "history.parquet").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("eval._history.pq.write_table", full)
    with pytest.raises(OSError, match="No space left"):
        add_to_history(url, [row("2", "pass")])
    assert (tmp_path / "history.parquet").read_bytes() == before and len(os.listdir(tmp_path)) == 1


def test_two_nights_at_once_are_refused(tmp_path):
    with nightly.locked(str(tmp_path)):
        with pytest.raises(UsageError, match=rf"another night runs here \(process {os.getpid()} on"):
            with nightly.locked(str(tmp_path)):
                pass
    with nightly.locked(str(tmp_path)):
        pass


def test_the_worst_chain_decides():
    nothing = {"failures": [], "remarks": [], "comparisons": []}

    def verdict(*names):
        chains = [Chain("small", str(i), name, reasons=["because"]) for i, name in enumerate(names)]
        return night_verdict("n", "t", chains, nothing)

    assert verdict("first", "pass")["exit_code"] == 0
    assert verdict("pass", "not_comparable")["exit_code"] == 11
    assert verdict("not_comparable", "failed")["exit_code"] == 12
    assert verdict("failed", "regression", "pass")["verdict"] == "regression"
    assert verdict("pass", "failed")["failures"] == ["small/1: failed: because"]
    assert as_markdown(verdict("pass", "not_comparable")).startswith("### ❌ not comparable\n")
    assert as_markdown(verdict("first", "pass")).startswith("### ✅ pass\n")


def test_the_hook_gets_the_verdict_and_cannot_change_it(tmp_path, capsys):
    script = f"import sys; open({str(tmp_path / 'told')!r}, 'w').write(sys.stdin.read())"
    config = SimpleNamespace(hook=(sys.executable, "-c", script), webhook=None, output=str(tmp_path))
    nightly.tell(config, {"verdict": "pass"})
    assert json.loads((tmp_path / "told").read_text()) == {"verdict": "pass"}
    nightly.tell(config, {"comparisons": [{"baseline": float("-inf"), "n": 3}]})
    assert (tmp_path / "told").read_text() == '{"comparisons": [{"baseline": null, "n": 3}]}'
    nightly.tell(SimpleNamespace(hook=("/no/such",), webhook="http://127.0.0.1:9/", output=str(tmp_path)), {})
    warned = capsys.readouterr().err
    assert "hook /no/such ended with No such file" in warned and "webhook:" in warned


def test_a_night_its_repetition_a_worse_model_and_a_model_that_is_gone(tmp_path, capfd):
    """The whole chain in miniature, by its commands."""
    make_inputs(tmp_path)
    config = str(tmp_path / "nightly.toml")
    assert nightly.main([config]) == 0
    first = newest(tmp_path)
    assert first["verdict"] == "first" and all(s != "reused" for s in first["chains"][0]["stages"].values())

    assert nightly.main([config]) == 0
    second = newest(tmp_path)
    assert second["verdict"] == "pass" and set(second["chains"][0]["stages"].values()) == {"reused"}
    primary = next(c for c in second["comparisons"] if c["primary"])
    assert (primary["p"], primary["n_changed"], primary["difference"]) == (1.0, 0, 0.0)
    assert primary["baseline"] > 0.2, "the model must answer something that can get lost"

    weights = tmp_path / "checkpoint" / "model.safetensors"
    kept = weights.read_bytes()
    noise = torch.Generator().manual_seed(0)
    state = load_file(weights)
    save_file(
        {k: v + 0.3 * torch.randn(v.shape, generator=noise).to(v.dtype) for k, v in state.items()}, weights
    )
    assert nightly.main([config]) == 10
    worse = newest(tmp_path)
    stages = worse["chains"][0]["stages"]
    assert stages["retrieve"] == "reused" and stages["generate"] != "reused" != stages["eval"]
    assert worse["chains"][0]["baseline"] == second["night"]
    assert any("exact_match fell by" in line for line in worse["failures"])
    flipped = next(c for c in worse["comparisons"] if c["primary"])["losses"]
    assert flipped > 5
    page = (tmp_path / "out" / "nights" / worse["night"] / "report.html").read_text()
    assert "regression" in page

    shutil.rmtree(tmp_path / "checkpoint")
    assert nightly.main([config]) == 12
    weights.parent.mkdir()
    for name in os.listdir(tmp_path / "copy"):
        shutil.copy(tmp_path / "copy" / name, weights.parent / name)
    assert weights.read_bytes() == kept
    assert nightly.main([config]) == 0
    assert newest(tmp_path)["chains"][0]["baseline"] == second["night"]
    history = pd.read_parquet(tmp_path / "out" / "history.parquet")
    verdicts = history.drop_duplicates("night").verdict.tolist()
    assert verdicts == ["first", "pass", "regression", "failed", "pass"]

    assert nightly.main([config, "--tag", "release"]) == 0
    capfd.readouterr()
    (tmp_path / "nightly.toml").write_text(
        'baseline = "tag:release"\n' + (tmp_path / "nightly.toml").read_text()
    )
    assert nightly.main([config]) == 0
    assert "verdict: pass" in capfd.readouterr().out


def newest(tmp_path):
    nights = sorted((tmp_path / "out" / "nights").iterdir(), key=lambda p: p.stat().st_mtime_ns)
    return json.loads((nights[-1] / "verdict.json").read_text())


def make_inputs(tmp_path):
    """A small world, searched by MiniLM and read by mini-bart as it was pretrained."""
    import random

    from beam_jobs import embed, split
    from eval.miniature.reading import CURRICULUM, draw_reading
    from rag_core.models.generator import BUILT_IN, load_generator

    rng, passages, questions = random.Random(5), [], []
    while len(questions) < 40:
        reading = draw_reading(rng, CURRICULUM[2])
        if reading.holds:
            n = len(questions)
            passages.append({"passage_id": f"p{n}", "title": reading.title, "text": reading.text})
            questions.append(
                {"question_id": f"q{n}", "question": reading.question, "answers": [reading.answer]}
            )
    for name, rows in (("passages.jsonl", passages), ("q.jsonl", questions)):
        (tmp_path / name).write_text("".join(json.dumps(r) + "\n" for r in rows))
    source = ["--input", str(tmp_path / "passages.jsonl"), "--input-format", "jsonl"]
    split.run([*source, "--output", str(tmp_path / "passages")])
    argv = ["--passages", str(tmp_path / "passages"), "--encoder", "minilm"]
    embed.run([*argv, "--output", str(tmp_path / "embeddings")])
    assert "mini-bart" in BUILT_IN
    load_generator("mini-bart").save(str(tmp_path / "checkpoint"))
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "copy")
    (tmp_path / "nightly.toml").write_text(CONFIG + 'question_encoder = "minilm"\n')


def test_comparisons_are_per_checkpoint_and_named_as_in_the_configuration(place, monkeypatch):
    config = read_config(str(place / "nightly.toml"))
    chains = [Chain("small", "main", results="now", baseline="1", baseline_results="then")]

    @dataclasses.dataclass
    class Loaded:
        path: str
        task: str = "custom"

    seen = []

    def compare(pairs, gates):
        seen.extend((b.path, b.task, c.path, c.task) for b, c in pairs)
        assert set(gates.task) == {"small"}
        return {"failures": ["small: f1 fell"], "remarks": [], "comparisons": [{"task": "small"}]}

    monkeypatch.setattr("eval._night.load_results", Loaded)
    monkeypatch.setattr("eval._night.check_comparable", lambda *_: ["f1"])
    monkeypatch.setattr("eval._night.compare_runs", compare)
    found = compare_chains(config, chains, Gates(task={"small": object(), "other": object()}))
    assert seen == [("then", "small", "now", "small")]
    assert found["failures"] == ["main: small: f1 fell"] and chains[0].verdict == "regression"
    assert found["comparisons"] == [{"checkpoint": "main", "task": "small"}]
