"""The judgement sheet in headless Chromium: it keeps progress, exports what was chosen, and runs nothing."""

import pytest

from eval._human_judgements import read_judgements
from eval._human_sheets import Pair, html_sheet, make_items, make_key
from tests.eval.chromium import Chromium

HOSTILE = "<script>alert(1)</script></script><img src=x onerror=alert(2)>\u202eevil\u2028 \x00 " + "x" * (
    1 << 20
)
PAIRS = [
    Pair("q0", HOSTILE, HOSTILE, "b 0"),
    Pair("q1", "سؤال", "a 1", "b 1"),
    Pair("q2", "Hemingway", "a 2", "b 2"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium = Chromium(tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


def choose(browser, criterion, value):
    browser.js(f"document.querySelector('input[name={criterion}][value={value}]').click()")


def test_a_sheet_is_judged_left_and_taken_up_again(browser, tmp_path):
    items = make_items(PAIRS, 0, 0)
    page = tmp_path / "sheet.html"
    page.write_text(html_sheet(items, "annotator-1"))
    browser.size(360, 740)
    browser.open(page)
    assert browser.js("document.getElementById('where').textContent") == "Pair 1 of 3"
    for number in range(3):
        choose(browser, "factuality", "left")
        if number < 2:
            choose(browser, "specificity", "both_poor")
            browser.js("document.getElementById('next').click()")
        assert browser.js("document.documentElement.scrollWidth") <= 360
    assert browser.js("document.getElementById('progress').textContent") == "2 of 3 pairs judged"
    browser.open(page)
    assert browser.js("document.getElementById('where').textContent") == "Pair 3 of 3", "progress was kept"
    assert browser.js("document.querySelector('input[name=factuality]').checked")
    browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.js("document.getElementById('export').click()")
    said = "document.getElementById('said').textContent"
    assert browser.js(said) == "Exported; 1 pairs are still to be judged."
    files = []
    for _ in range(200):
        files = [*tmp_path.glob("judgements-*.jsonl")]
        if files:
            break
        browser.js("new Promise((done) => setTimeout(done, 20))")
    rows = read_judgements([str(files[0])], make_key([items], ("A", "B"))).rows
    assert [r.pair for r in rows] == [i.pair.pair_id for i in items]
    assert [r.choices["factuality"] for r in rows] == [i.left for i in items]
    assert [r.choices["specificity"] for r in rows] == ["both_poor", "both_poor", None]
    browser.js("document.getElementById('annotator').value = ''")
    browser.js("document.getElementById('annotator').dispatchEvent(new Event('input'))")
    browser.js("document.getElementById('export').click()")
    assert browser.js(said) == "Enter a name for the annotator first."
    assert browser.console == [] and browser.requests == []


def test_hostile_text_is_shown_not_run(browser, tmp_path):
    items = make_items(PAIRS, 1, 0)
    page = tmp_path / "sheet.html"
    page.write_text(html_sheet(items, "annotator-2"))
    browser.open(page)
    for _ in range(2):
        if "alert" in browser.js("document.getElementById('asked').textContent"):
            break
        browser.js("document.getElementById('next').click()")
    shown = browser.js("document.getElementById('asked').textContent")
    assert shown.startswith("<script>alert(1)</script></script><img src=x onerror=alert(2)>⟨U+202E⟩evil")
    assert shown.endswith(f"[cut: {len(HOSTILE):,} characters in all]") and "⟨U+0000⟩" in shown
    assert browser.js("document.images.length") == 0
    assert browser.js("document.querySelectorAll('main script').length") == 0
    assert browser.console == [] and browser.requests == []


def test_a_browser_that_keeps_nothing_says_so(browser, tmp_path):
    page = tmp_path / "sheet.html"
    page.write_text(html_sheet(make_items(PAIRS[1:], 2, 0), "annotator-3"))
    refuse = "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };"
    made = browser.call("Page.addScriptToEvaluateOnNewDocument", source=refuse)
    try:
        browser.open(page)
        warning = browser.js("document.getElementById('warning').textContent")
    finally:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=made["identifier"])
    assert warning == "This browser does not keep progress for this page. Export before closing it."


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_nothing_is_wider_than_the_window(browser, tmp_path, width):
    page = tmp_path / "sheet.html"
    page.write_text(html_sheet(make_items(PAIRS, 0, 1), "annotator-1"))
    browser.size(width, 800, dark=width == 768)
    browser.open(page)
    assert browser.js("document.documentElement.scrollWidth") <= width
    browser.picture(tmp_path / f"{width}.png", whole=True)
    fields = "[...document.querySelectorAll('input, textarea')]"
    assert browser.js(f"{fields}.filter((f) => !f.labels.length).map((f) => f.outerHTML)") == []
