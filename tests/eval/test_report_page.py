"""The report in headless Chromium: it filters, sorts and scrolls, and runs nothing that the data hold."""

import numpy as np
import pandas as pd
import pytest

from eval import report
from eval._paired import Results
from eval.pages.markup import visible
from eval.pages.views import Run, View, make_views
from tests.eval.chromium import Chromium
from tests.eval.report_data import HOSTILE, LONG, N, write_world

COUNT = "document.getElementById('count').textContent"
ROWS = "[...document.querySelectorAll('.row')]"
DETAIL = "document.getElementById('detail')"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium = Chromium(tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def page(world, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    argv = [world["a"], world["b"], "--passages", world["passages"], "--title", HOSTILE]
    argv += ["--predictions", world["predictions_b"]]
    assert report.main([*argv, "--output", str(path)]) == 0
    return path


@pytest.fixture
def opened(browser, page):
    browser.console.clear()
    browser.size(1440, 900)
    browser.open(page)
    yield browser
    assert browser.console == [] and browser.requests == []
    assert browser.js("window.ran === undefined && document.images.length === 0")


def pick(browser, name, value):
    browser.js(
        f"{{ const s = document.getElementById('{name}'); s.value = '{value}';"
        " s.dispatchEvent(new Event('change', { bubbles: true })); }"
    )


def search(browser, text):
    browser.js(
        f"{{ const s = document.getElementById('search'); s.value = {text!r};"
        " s.dispatchEvent(new Event('input')); }"
    )


def questions(browser):
    return browser.js(f"{ROWS}.map((r) => r.querySelector('.one-line').textContent)")


def test_filters(opened):
    assert opened.js(COUNT) == f"{N} of {N} examples"
    for show, n in (
        ("lost", 4),
        ("won", 1),
        ("flips", 5),
        ("changed", 10),
        ("same", N - 15),
        ("unanswered", 1),
    ):
        pick(opened, "show", show)
        assert opened.js(COUNT) == f"{n} of {N} examples", show
    pick(opened, "show", "all")
    search(opened, "NUMBER 11?")
    opened.wait(f"{COUNT} === '1 of {N} examples'")
    assert opened.js(f"{DETAIL}.querySelector('h3').textContent") == "who is number 11?"
    search(opened, "nothing like this")
    opened.wait(f"{COUNT} === '0 of {N} examples'")
    assert opened.js(f"{DETAIL}.textContent") == "No example fits."


def test_sorts(opened):
    assert questions(opened)[4] == "who is number 5?", "lost ones, then the won one"
    pick(opened, "sort", "id")
    assert questions(opened)[:3] == ["who is number 0?", "who is number 1?", "who is number 2?"]
    opened.js("document.getElementById('reverse').click()")
    assert questions(opened)[0] == f"who is number {N - 1}?"
    pick(opened, "sort", "difference")
    assert questions(opened)[0] == "who is number 5?"
    pick(opened, "sort", "after")
    opened.js("document.getElementById('reverse').click()")
    assert {"who is number 11?", "who is number 7?", "who is number 9?"} < set(questions(opened)[:4])
    pick(opened, "metric", "1")
    pick(opened, "sort", "flips")
    assert "lost" in opened.js(f"{ROWS}[0].textContent")


def test_keyboard(opened):
    opened.js("document.getElementById('list').focus()")
    assert opened.js("document.activeElement.getAttribute('aria-activedescendant')") == "row-0"
    for key, row in (("ArrowDown", 1), ("End", N - 1), ("ArrowDown", N - 1), ("ArrowUp", N - 2), ("Home", 0)):
        opened.key(key)
        assert opened.js("document.activeElement.getAttribute('aria-activedescendant')") == f"row-{row}"
        chosen = f"document.getElementById('row-{row}')"
        assert opened.js(f"{chosen}.getAttribute('aria-selected')") == "true"
        assert opened.js(f"{chosen}.getAttribute('aria-setsize')") == str(N)
        assert opened.js(
            f"{{ const r = {chosen}.getBoundingClientRect(), l = document.getElementById('list')"
            ".getBoundingClientRect(); r.top >= l.top - 1 && r.bottom <= l.bottom + 1 }"
        ), "the chosen row is in sight"
    opened.key("Enter")
    assert opened.js("document.activeElement.id") == "detail"


def test_an_example_shows_everything(opened):
    search(opened, "q7")
    opened.wait(f"{COUNT} === '1 of {N} examples'")
    text = opened.js(f"{DETAIL}.innerText")
    for part in ("who is number 7?", "lost", "answer 7", "wrong in b", "Title 7 (p7)", "0.500", "0.750",
                 "2 more passages are not in this page; their posterior is 0.025."):  # fmt: skip
        assert part in text, part
    heat = f"{DETAIL}.querySelector('table.heat')"
    assert opened.js(f"[...{heat}.querySelectorAll('thead th')].map((t) => t.textContent)") == [
        "Passage", "<script>", " two"]  # fmt: skip
    cells = "[...r.cells].map((c) => c.textContent)"
    assert opened.js(f"[...{heat}.tBodies[0].rows].slice(0, 3).map((r) => {cells})") == [
        ["Title 7 (p7)", ".250", "<0.001"],
        ["Title 8 (p8)", ".750", ".750"],
        ["Title 9 (p9)", "<0.001", ".025"],
    ]
    width = f"getComputedStyle({DETAIL}.querySelector('.bar.after'), '::before').width"
    whole = f"{DETAIL}.querySelector('.bar.after').clientWidth"
    assert opened.js(f"parseFloat({width}) / {whole}") == pytest.approx(0.125, abs=0.01)


def test_references_are_marked_in_passages_as_whole_words(opened):
    pick(opened, "sort", "id")
    opened.js(f"{ROWS}[1].click()")
    assert opened.js(f"{DETAIL}.querySelector('h3').textContent") == "who is number 1?"
    marks = f"[...{DETAIL}.querySelectorAll('mark')].map((m) => m.textContent)"
    assert opened.js(marks) == ["ANSWER 1"] * 2, "in p1 of both runs; not in p10"
    assert opened.js("marked('a (b) c.d', ['(b)', 'c.d', 'cxd']).map((p) => p.textContent || p)") == [
        "a ", "(b)", " ", "c.d", ""]  # fmt: skip


def test_hostile_text_is_shown_not_run(opened):
    """Markup, ends of scripts, marks of direction, line separators and a line of 1 MB, everywhere."""
    search(opened, "window.ran")
    opened.wait(f"{COUNT} === '1 of {N} examples'")
    assert opened.js("document.querySelector('h1').textContent") == visible(HOSTILE)
    assert opened.js(f"{DETAIL}.querySelector('h3').textContent") == visible(HOSTILE)
    assert opened.js(f"{DETAIL}.querySelector('li').textContent") == visible(HOSTILE)
    answer = opened.js(f"{DETAIL}.querySelectorAll('.answer')[1].textContent")
    assert answer.startswith(visible(HOSTILE)) and answer.endswith(f"[cut: {len(LONG):,} characters in all]")
    assert opened.js(f"{DETAIL}.textContent").count(visible(HOSTILE)) >= 5, "title and text of a passage too"
    assert opened.js("document.querySelectorAll('main script, main img').length") == 0


def test_nothing_is_wider_than_the_window(opened, tmp_path):
    for width in (360, 768, 1440):
        for dark in (False, True):
            opened.size(width, 800, dark)
            search(opened, "window.ran" if dark else "")
            opened.wait(f"{COUNT} === '{1 if dark else N} of {N} examples'")
            opened.picture(tmp_path / f"{width}-{'dark' if dark else 'light'}.png", whole=True)
            assert opened.js("document.documentElement.scrollWidth") <= width
    opened.size(360, 740)
    opened.js(f"{ROWS}[0].click()")
    assert opened.js("document.activeElement.id") == "detail", "on a narrow window a tap goes to the example"
    opened.js(f"{DETAIL}.querySelector('.to-list').click()")
    assert opened.js("document.activeElement.id") == "list"


def test_two_pairs_of_runs(browser, world, tmp_path):
    views = make_views([world["a"], world["b"]], [], None, [])
    alone = View(views[0].candidate, None, "f1")
    (tmp_path / "two.html").write_text(report.report([views[0], alone]))
    browser.console.clear()
    browser.open(tmp_path / "two.html")
    assert "lost" in browser.js(f"{ROWS}[0].textContent")
    pick(browser, "view", "1")
    assert browser.js(f"{ROWS}[0].querySelectorAll('.badge').length") == 0
    assert browser.js("document.getElementById('sort').value") == "after"
    assert browser.console == []


def test_of_20000_examples_only_those_in_sight_are_made(browser, tmp_path):
    """Half changed, 10 passages with posteriors on both sides; sorted, searched, scrolled to the end."""
    n = 20_000
    (tmp_path / "big.html").write_text(report.report([big_view(n)]))
    browser.console.clear()
    browser.size(1440, 900)
    browser.open(tmp_path / "big.html")
    assert browser.js(COUNT) == "20,000 of 20,000 examples"
    for work in (
        "document.getElementById('sort').value = 'question'; update()",
        "document.getElementById('search').value = 'number 1999'; update()",
        "document.getElementById('search').value = ''; update(); choose(19999)",
    ):
        browser.js(work)
        assert 0 < browser.js(f"{ROWS}.length") < 40
    assert browser.js(f"{ROWS}.pop().id") == "row-19999"
    assert browser.console == []


def big_view(n):
    draw = np.random.default_rng(0)
    index = pd.Index(sorted(f"q{i}" for i in range(n)), name="question_id")
    weights = draw.dirichlet(np.ones(10), n).astype(np.float32)
    runs = []
    for name in ("last", "now"):
        em = (draw.random(n) < 0.44).astype(float)
        rows = pd.DataFrame(
            {
                "question": [f"a question of common length about number {i}?" for i in range(n)],
                "question_hash": "h",
                "status": "ok",
                "prediction": [f"an answer {int(v)}" for v in em],
                "answers": [["an answer 1"]] * n,
                "answer_rank": 1,
                "passage_ids": [[f"{i + k}:0" for k in range(10)] for i in range(n)],
                "doc_prior": list(weights),
                "doc_posterior": list(weights[::-1]),
                "exact_match": em,
            },
            index=index,
        )
        line = {"run": name, "task": "nq", "slice": "all", "scope": "all", "metric": "exact_match"}
        line |= {"value": em.mean(), "ci_low": 0.4, "ci_high": 0.5, "n": n, "n_missing": 0}
        runs.append(
            Run(Results(name, name, "nq", rows, pd.DataFrame([line]), {"exact_match": "exact_match"}))
        )
    return View(runs[1], runs[0], "exact_match")
