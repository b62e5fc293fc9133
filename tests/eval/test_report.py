"""`eval.report`: what is in the page, in which order, and that nothing in it is markup but what we made."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from eval import compare, report
from eval._history import add_to_history
from eval.pages.examples import Limits, PassageTable, flips_first, view_data
from eval.pages.figures import figure, interval
from eval.pages.history import history_section
from eval.pages.markup import Markup, element, script_json, visible
from eval.pages.views import make_views, runs_by_task
from rag_core.errors import DataError, UsageError
from rag_core.run_dir import NoManifestError
from tests.eval.report_data import HOSTILE, LONG, N, write_world


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("report"))


class Page(HTMLParser):
    """Tags in order, texts, and whether every tag was closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text, self.open, self.ids = "", [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [v for k, v in attrs if k == "id"]
        if tag not in ("meta", "link", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" not in self.open and "style" not in self.open:
            self.text += data + " "


def data_of(text):
    return json.loads(text.split('id="data">')[1].split("</script>")[0])


def build(world, tmp_path, *argv):
    out = tmp_path / "report.html"
    assert report.main([*argv, "--output", str(out)]) == 0
    return out.read_text("utf-8")


def test_text_is_escaped_by_construction():
    made = element("p", "<b>&", [element("i", 'x"'), None], title='"><script>', hidden=False, open=True)
    assert made == '<p title="&quot;&gt;&lt;script&gt;" open>&lt;b&gt;&amp;<i>x"</i></p>'
    assert isinstance(made, Markup) and element("br") == "<br>"
    assert visible("a\u202eb\x00\ud800c\n") == "a⟨U+202E⟩b⟨U+0000⟩⟨U+D800⟩c\n"


@pytest.mark.parametrize("text", [HOSTILE, "</script>", "<!--<script>", "\u2028\u2029&lt;", "\ud800", "é漢"])
def test_json_in_a_script_is_inert_and_whole(text):
    written = script_json({"x": text})
    assert written.isascii() and not set("<>&") & set(written) and json.loads(written) == {"x": text}
    with pytest.raises(ValueError):
        script_json(float("nan"))


def test_one_file_that_asks_for_nothing(world, tmp_path):
    text = build(world, tmp_path, world["a"], world["b"], "--passages", world["passages"])
    page = Page(text)
    assert page.open == [] and len(set(page.ids)) == len(page.ids)
    assert [t for t, _ in page.tags].count("script") == 2, "data and code"
    assert not [a for _, a in page.tags if "src" in a or "style" in a or any(k.startswith("on") for k in a)]
    assert {a["href"] for t, a in page.tags if "href" in a if not a["href"].startswith("#")} == {"data:,"}
    links = {a["href"][1:] for t, a in page.tags if t == "a"}
    assert links <= set(page.ids)
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy
    labelled = {a["for"] for t, a in page.tags if t == "label" and "for" in a}
    fields = {a["id"] for t, a in page.tags if t in ("input", "select") and a.get("type") != "checkbox"}
    assert fields == labelled
    for landmark in ("header", "nav", "main"):
        assert [t for t, _ in page.tags].count(landmark) == 1


def test_scripts_never_parse_markup():
    for path in Path(report.__file__).parent.glob("pages/*.js"):
        text = path.read_text()
        for banned in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "DOMParser",
        ):
            assert banned not in text
        assert "</script" not in text and "<!--" not in text


def test_flips_come_first_and_figures_are_right(world, tmp_path):
    text = build(
        world, tmp_path, world["a"], world["b"], "--passages", world["passages"],
        "--predictions", world["predictions_b"], world["predictions_a"],
    )  # fmt: skip
    data = data_of(text)
    (view,) = data["views"]
    assert (
        view["labels"] == ["run <a>", "run <b>"] and view["primary"] == "exact_match" and view["total"] == N
    )
    order = [int(name[1:]) for name in view["ids"]]
    assert sorted(order[:4]) == [3, 7, 9, 11], "lost: the hostile one, the failed one and two wrong ones"
    assert order[4] == 5 and set(order[5:15]) == set(range(20, 30)), "won, then changed without mattering"
    before, after = view["sides"]
    at = order.index(7)
    em = view["metrics"].index("exact_match")
    assert (before["metrics"][em][at], after["metrics"][em][at]) == (1, 0)
    assert (before["predictions"][at], after["predictions"][at]) == ("answer 7", "wrong in b")
    failed = order.index(9)
    assert after["predictions"][failed] is None and after["status"][failed] == "failed"
    numbers, prior, posterior, more, rest = after["passages"][at]
    assert [data["passages"]["ids"][n] for n in numbers] == [f"p{7 + k}" for k in range(10)]
    assert prior[:3] == [500, 250, 25] and posterior[:2] == [125, 750] and (more, rest) == (2, 25)
    assert data["passages"]["titles"][numbers[0]] == "Title 7"
    tokens, cells, left = after["tokens"][at]
    assert (
        tokens == ["<script>", " two"] and cells[0][:3] == [250, 750, 0] and len(cells[1]) == 10 and left == 0
    )
    assert before["tokens"][at] is None, "RAG-Sequence has no posterior by token"
    hostile = order.index(3)
    assert len(after["predictions"][hostile]) < 2100
    assert after["predictions"][hostile].endswith(f"[cut: {len(LONG):,} characters in all]")
    lost = data["passages"]["ids"].index("p19")
    assert data["passages"]["titles"][lost] is None, "a passage that the corpus lacks is known by id"


def test_what_does_not_fit_is_said(world, tmp_path):
    text = build(world, tmp_path, world["a"], world["b"], "--max-examples", "10")
    assert "10 of 60 examples are in this page; all are in per_example.parquet." in Page(text).text
    assert len(data_of(text)["views"][0]["ids"]) == 10
    views = make_views([world["a"], world["b"]], [], None, [])
    store = PassageTable()
    view_data(views[0], store, Limits(examples=2, passages=3))
    store.fill(world["passages"], Limits(passage_bytes=1500))
    assert 0 < len(store.texts) < len(store.numbers) == store.to_json()["without_text"] + len(store.texts)


def test_runs_are_paired_as_told(world, tmp_path):
    def names(*arguments, baseline=(), verdict=None):
        return [v.name for v in make_views(arguments, baseline, verdict, [])]

    a, b = world["a"], world["b"]
    assert names(a) == ["custom: run <a>"]
    assert names(a, b) == names(b, baseline=[a]) == names(b + ":run <b>", baseline=[a])
    assert names(a, b) == names(
        b, verdict={"runs": [{"candidate": b + ":run <b>", "baseline": a + ":run <a>"}]}
    )
    assert names(a, b) == names(b + "/", verdict={"chains": [{"results": b, "baseline_results": a}]})
    assert names(b, a, verdict={"runs": [{"candidate": b, "baseline": a}]}) == names(a, b)
    with pytest.raises(UsageError, match="2 baselines for 1 runs"):
        names(a, baseline=[a, b])
    with pytest.raises(UsageError, match="no run 'c'"):
        names(a + ":c")


def test_runs_over_other_questions_stand_alone(world, tmp_path):
    views = make_views([world["b"]], [world["a"]], None, [])
    other = views[0].baseline.results
    other.rows = other.rows.iloc[1:]
    from eval.pages.views import Run, _view

    view = _view(Run(views[0].candidate.results), Run(other), None)
    assert view.baseline is None and view.note.endswith("has other questions or references.")
    assert view.note in Page(report.report([view])).text


def test_runs_of_one_name_are_told_apart(world):
    (view,) = make_views([world["a"]], [world["a"]], None, [])
    assert view.name == "custom: run <a> (baseline) → run <a>"
    views = make_views([world["a"], world["b"]], [], None, [])
    views[0].baseline.results.run = "run <b>"
    assert [run.label for run in runs_by_task(views)["custom"]] == ["run <b>, a", "run <b>, b"]


def test_the_verdict_comes_first(world, tmp_path):
    verdict = tmp_path / "v.json"
    assert compare.main(["--baseline", world["a"], "--candidate", world["a"], "--json", str(verdict)]) == 0
    text = build(world, tmp_path, world["b"], "--baseline", world["a"], "--verdict", str(verdict))
    page = Page(text)
    assert (
        page.ids.index("verdict")
        < page.ids.index("changes")
        < page.ids.index("tables")
        < page.ids.index("rows")
    )
    assert "✓ Pass" in page.text and "exact_match (decides)" in page.text
    told = json.loads(verdict.read_text())
    chain = {"task": "custom", "checkpoint": "c", "verdict": "not_comparable", "reasons": ["<why>"]}
    told |= {"verdict": "regression", "failures": [f"custom: {HOSTILE}"], "chains": [chain]}
    verdict.write_text(json.dumps(told))
    text = Page(build(world, tmp_path, world["b"], "--verdict", str(verdict))).text
    assert (
        "✗ Regression" in text and visible(HOSTILE) in text and "not comparable" in text and "<why>" in text
    )
    verdict.write_text('{"verdict": "unheard of"}')
    assert "! unheard of" in Page(build(world, tmp_path, world["b"], "--verdict", str(verdict))).text
    verdict.write_text("[]")
    with pytest.raises(DataError, match="not a verdict"):
        report.main([world["b"], "--verdict", str(verdict), "--output", str(tmp_path / "x")])


def test_tables_hold_the_summary(world, tmp_path):
    text = Page(build(world, tmp_path, world["a"], world["b"])).text
    right = (N - 4) / N
    assert figure(right, "exact_match") == "93.3" and "93.3" in text
    assert (
        "Lost Won Changed answers Without an answer Questions custom: run <a> → run <b> exact_match 4 1"
        in text
    )
    assert "question_word=who" in text and "1 missing of 60" in text
    assert "Table 1" not in text, "no task of Table 1"


def test_tables_of_the_paper(world):
    from dataclasses import replace

    from eval.pages.paper import paper_section

    views = make_views([world["a"], world["b"]], [], None, [])
    view = views[0]
    view.baseline.results.task = view.candidate.results.task = "nq"
    text = Page(paper_section([view])).text
    assert "NQ, EM run <a> 98.3" in text and "RAG-Sequence (paper) 44.5" in text and "TQA" not in text
    assert replace(view, baseline=None).name == "nq: run <b>"


def test_figures():
    assert figure(0.5, "f1") == "50.0" and figure(-1.25, "mean_log_prob") == "-1.250"
    assert figure(None, "f1") == figure(float("nan"), "f1") == "–"
    assert figure(-0.0001, "f1", "+") == "0.0" and figure(0.25, "f1", "+") == "+25.0"
    assert interval(0.1, 0.2, "f1") == "[10.0, 20.0]" and interval(None, None, "f1") == ""


def night(i, verdict="pass", value=0.5, metric="exact_match"):
    head = {"night": f"n{i}", "time": "", "task": "nq", "checkpoint": "c", "results": "r", "baseline": None}
    low, high = (None, None) if value is None else (value - 0.1, value + 0.1)
    return {**head, "verdict": verdict, "metric": metric, "value": value, "ci_low": low, "ci_high": high,
            "n": 1, "n_missing": 0}  # fmt: skip


def test_history_is_drawn(world, tmp_path):
    rows = [night(0, "first"), night(1, "regression", 0.4), night(2, "not_comparable"), night(3, value=None)]
    rows += [night(4, metric=None), *(night(0, metric=m) for m in ("f1", "mean_log_prob"))]
    add_to_history(str(tmp_path / "h.parquet"), rows)
    text = build(world, tmp_path, world["b"], "--history", str(tmp_path / "h.parquet"))
    page = Page(text)
    plots = [a for t, a in page.tags if t == "svg"]
    assert plots[0]["aria-label"] == (
        "nq/c: exact_match, 3 nights: 50.0 on n0, 50.0 on n2, 1 regressions"
    ) and all(p["role"] == "img" for p in plots)
    marks = [a["class"] for t, a in page.tags if a.get("class", "").startswith("mark")]
    assert marks[:3] == ["mark", "mark worse", "mark other"] and "1 more metrics" in page.text
    ys = [float(y) for y in re.findall(r'class="mark[^"]*"|cy="([\d.]+)"', history_section(rows)) if y]
    assert ys and not np.isnan(ys).any()
    assert "holds no figures yet" in history_section([])
    with pytest.raises(FileNotFoundError):
        report.main([world["b"], "--history", str(tmp_path / "none"), "--output", str(tmp_path / "x")])


def test_a_single_run_has_examples_too(world, tmp_path):
    data = data_of(build(world, tmp_path, world["a"]))
    assert len(data["views"][0]["sides"]) == 1 and data["views"][0]["ids"] == sorted(data["views"][0]["ids"])
    assert list(flips_first(make_views([world["a"]], [], None, [])[0])) == list(range(N))


def test_wrong_paths_and_options(world, tmp_path):
    out = ["--output", str(tmp_path / "x.html")]
    with pytest.raises(FileNotFoundError):
        report.main([str(tmp_path / "nowhere"), *out])
    with pytest.raises(NoManifestError):
        report.main([str(tmp_path), *out])
    with pytest.raises(DataError, match="a run of job 'generate', expected 'eval'"):
        report.main([world["predictions_a"], *out])
    with pytest.raises(DataError, match="expected 'generate'"):
        report.main([world["a"], "--predictions", world["passages"], *out])
    with pytest.raises(UsageError, match="at least 1"):
        report.main([world["a"], "--max-examples", "0", *out])
    assert not (tmp_path / "x.html").exists()


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1])
def test_colours_have_contrast_in_both_schemes(scheme):
    """WCAG 2.1 AA: 4.5 for text, 3 for what draws a figure or a control."""
    colours = {}
    for name in ("base", "report"):
        css = (Path(report.__file__).parent / "pages" / f"{name}.css").read_text()
        blocks = re.findall(r":root \{(.*?)\}", css, re.S)
        colours |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[scheme]))
    for ground in ("ground", "raised"):
        for text in ("text", "quiet", "link", "good", "bad", "warn"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for ground in ("heat", "found"):
        assert contrast(colours["text"], colours[ground]) >= 4.5, ground
    for drawn in ("fill", "second", "bad", "warn", "quiet"):
        assert contrast(colours[drawn], colours["ground"]) >= 3, drawn
