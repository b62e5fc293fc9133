"""Steps: order, failure, and the demo's own plan."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eval._steps import Step, StepError, run_steps
from eval.miniature.demo import demo_steps
from rag_core.owner import process_start


def write_module(directory: Path, name: str, code: str) -> None:
    (directory / f"{name}.py").write_text(code)


@pytest.fixture(autouse=True)
def few_imports(monkeypatch):
    monkeypatch.setattr("eval._warm.PRELOADED", ("json", "no_such_module"))


WARM = pytest.mark.parametrize("warm", [False, True], ids=["each a Python of its own", "forked"])


@WARM
def test_a_step_starts_after_what_it_needs(tmp_path, monkeypatch, capsys, warm):
    write_module(tmp_path, "step_touch", "import sys; open(sys.argv[1], 'a').write(sys.argv[2])")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    log = tmp_path / "order"
    steps = [
        Step("a", ("step_touch", str(log), "a")),
        Step("b", ("step_touch", str(log), "b"), ("a",)),
        Step("c", ("step_touch", str(log), "c"), ("b",)),
    ]
    seconds = run_steps(steps, tmp_path / "logs", warm=warm)
    assert log.read_text() == "abc" and list(seconds) == ["a", "b", "c"]
    assert capsys.readouterr().out.count(" s\n") == 3


@WARM
def test_a_failure_names_the_step_and_its_last_line(tmp_path, monkeypatch, warm):
    write_module(tmp_path, "step_fail", "import sys; print('error: no such corpus'); sys.exit(3)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    steps = [Step("broken", ("step_fail",)), Step("after", ("step_fail",), ("broken",))]
    with pytest.raises(StepError, match="step broken ended with code 3: error: no such corpus"):
        run_steps(steps, tmp_path / "logs", warm=warm)
    assert not (tmp_path / "logs" / "after.log").exists()


@WARM
@pytest.mark.parametrize(
    "code, said",
    [
        ("raise SystemExit('error: bad')", "code 1: error: bad"),
        ("import os; os.kill(os.getpid(), 9)", "code -9: "),
        ("1 / 0", "code 1: ZeroDivisionError: division by zero"),
        ("import os; os._exit(7)", "code 7: "),
    ],
)
def test_however_a_step_ends_its_code_is_told(tmp_path, monkeypatch, warm, code, said):
    write_module(tmp_path, "step_end", code)
    write_module(tmp_path, "step_pass", "import sys; print(sys.argv[1:], sys.stdin.read() or 'no input')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    steps = [Step("good", ("step_pass", "--a", "b c")), Step("bad", ("step_end",), ("good",))]
    with pytest.raises(StepError, match=f"^step bad ended with {said}"):
        run_steps(steps, tmp_path / "logs", warm=warm)
    assert (tmp_path / "logs" / "good.log").read_text() == "['--a', 'b c'] no input\n"


def test_forked_steps_share_nothing_but_imports(tmp_path, monkeypatch):
    """Globals, modules, environment and random numbers of one are not the next one's."""
    code = (
        "import json, os, random, sys, torch; json.touched = getattr(json, 'touched', 0) + 1; "
        "os.environ['TOUCHED'] = os.environ.get('TOUCHED', '') + 'x'; sys.argv.append('more'); "
        "print(json.touched, os.environ['TOUCHED'], sys.argv[1:], __name__, torch.get_num_threads()); "
        "open(f'{sys.argv[1]}.random', 'w').write(str(random.random()))"
    )
    write_module(tmp_path, "step_touch", code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    steps = [
        Step("a", ("step_touch", str(tmp_path / "a"))),
        Step("b", ("step_touch", str(tmp_path / "b")), ("a",)),
        Step("c", ("step_touch", str(tmp_path / "c")), ("b",), threads=2),
    ]
    run_steps(steps, tmp_path / "logs", at_once=1, warm=True)
    for name, threads in (("a", 1), ("b", 1), ("c", 2)):
        said = (tmp_path / "logs" / f"{name}.log").read_text()
        assert said == f"1 x ['{tmp_path / name}', 'more'] __main__ {threads}\n"
    drawn = {(tmp_path / f"{name}.random").read_text() for name in "abc"}
    assert len(drawn) == 3


@pytest.mark.parametrize(
    "steps, message",
    [
        ([Step("a", (), ("b",)), Step("b", ())], "needs 'b', which does not come before"),
        ([Step("a", ()), Step("a", ())], "two steps are called 'a'"),
    ],
)
def test_plans_that_cannot_be(steps, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        run_steps(steps, tmp_path)


def test_the_demo_is_a_plan_of_commands_that_finds_its_inputs():
    steps = demo_steps(Path("out"), articles=1000, steps=10, seed=0)
    made = {argv[argv.index("--output") + 1] for argv in (s.argv for s in steps)}
    by_name = {step.name: step for step in steps}
    for step in steps:
        words = step.argv[1:]
        read = {w for w in words if w.startswith("out/")} - {words[words.index("--output") + 1]}
        before = [by_name[n] for n in step.needs]
        reachable = set()
        while before:
            earlier = before.pop()
            reachable.add(earlier.argv[earlier.argv.index("--output") + 1])
            before += [by_name[n] for n in earlier.needs]
        for path in read:
            assert any(path == made_by or path.startswith(made_by + "/") for made_by in reachable), (
                step.name,
                path,
            )
    assert {
        "out/results/closed_book",
        "out/results/frozen",
        "out/results/rag_token",
        "out/results/rag_sequence",
    } <= made


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's word for it is Linux'")
@WARM
@pytest.mark.parametrize("sent", (signal.SIGKILL, signal.SIGTERM))
def test_a_step_ends_with_the_process_that_started_it(tmp_path, sent, warm):
    """Else the next night would find the stage's directory held by a process that nobody waits for."""
    write_module(
        tmp_path,
        "step_wait",
        "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)",
    )
    code = (
        "from pathlib import Path; from eval._steps import Step, run_steps; import eval._warm; "
        "eval._warm.PRELOADED = (); "
        f"run_steps([Step('wait', ('step_wait', {str(tmp_path / 'pid')!r}))], "
        f"Path({str(tmp_path)!r}), warm={warm})"
    )
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    parent = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths})
    step = int(wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
    assert process_start(step) is not None
    parent.send_signal(sent)
    parent.wait(30)
    assert wait_for(lambda: process_start(step) is None)


def wait_for(found, seconds=30.0):
    end = time.monotonic() + seconds
    while not found() and time.monotonic() < end:
        time.sleep(0.02)
    return found()
