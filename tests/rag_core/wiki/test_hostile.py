"""Pages made to hang a cleaner, and real pages at random broken: always soon done, never an error."""

import time
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_core.wiki import clean_wikitext, read_pages
from rag_core.wiki.templates.english import ENGLISH
from rag_core.wiki.templates.functions import FUNCTIONS
from rag_core.wiki.templates.others import BY_LANGUAGE

MAX_SECONDS = 2.0
UNITS = [
    "{{a|", "{{lang|fr|", "{{lang|fr|x}}", "{{{a|", "}}", "}}}", "{", "}", "{{#if:x|", "{{#switch:a|a=",
    "{{#expr:(", "{{convert|", "{{quote|", "{{template:", "{{hlist|a|", "{{!}}", "\n{|", "{|\n|",
    "\n|}", "\n|", "|", "[[", "]]", "]]]", "[[a|", "[[File:a|", "[[a|b [c] ", "[[Oak|<span><b>",
    "[http://a ", "[http://a b", "[", "<ref>", "</ref>", '<ref name="a', "<ref>{{cite|", "<!--", "-->",
    "<", "<a ", "<u>", "<x1>", "<nowiki>", "<math>\\a", "<table>", '<div class="p" data-k="1"><span>',
    "''", "'''", "'''''", "''a''' ", "(", "( ; ", ", ,", " ;)", "==a==\n", "\n*", "__", "__A", "&",
    "&#", "&amp;", "-{", "-{zh:", "}-", " ", "\n", "\xa0",
    "{{x}}", "{{x}}, ", "({{x}}", "({{x}};", "({{x}})", '"{{x}}', "（{{x}}、", "{{x}}/ ", "<b>*", "\n[[a|#",
    "\n<i>#", "<ref>a\n", "</ref\n", "__a", "\n[a #", "[[:", "<math display=block>", "{{PAGENAME}}",
]  # fmt: skip


def seconds(wikitext, lang="zh"):
    began = time.process_time()
    clean_wikitext(wikitext, lang, keep_lists=True)
    return time.process_time() - began


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "around", [("", ""), ("{{lang|fr|", "}}"), ("{|\n", "\n|}"), ("[[a|", "]]")], ids=repr
)
def test_a_repeated_unit_is_soon_done(unit, around):
    before, after = around
    assert seconds(before + unit * (30_000 // len(unit)) + after + " end.") < MAX_SECONDS


@pytest.mark.parametrize(
    "unit",
    [
        "{{a|",
        "{{lang|fr|",
        "[[a|",
        "<ref>",
        "<nowiki>",
        "\n{|",
        "{{!}}",
        "''a''' ",
        "{{x}}, ",
        "({{x}}",
        '"{{x}}',
    ],
)
def test_time_is_linear_in_length(unit):
    short, long = (
        min(seconds(unit * (n // len(unit)) + "</ref></nowiki>") for _ in range(2)) for n in (25_000, 200_000)
    )
    assert long < 24 * max(short, 0.005)  # 8 for linear, 64 for quadratic


@pytest.mark.parametrize(
    ("opening", "closing"), [("{{lang|fr|", "}}"), ("[[a|", "]]"), ("{{#if:x|", "}}"), ("(", ")")]
)
def test_deep_nesting(opening, closing):
    assert seconds(opening * 20_000 + "core" + closing * 20_000) < MAX_SECONDS


@cache
def real_pages(directory):
    """Long pages of three wikis, cut to 60,000 characters."""
    dumps = sorted(p for p in directory.glob("*.xml*.bz2") if "index" not in p.name)
    return [
        page.wikitext[:60_000] for dump in dumps for page in read_pages(dump) if len(page.wikitext) > 3000
    ]


PIECES = [
    "{{",
    "}}",
    "[[",
    "]]",
    "{|",
    "|}",
    "<ref>",
    "</ref>",
    "<!--",
    "-->",
    "|",
    "''",
    "<nowiki>",
    "\n",
    "(",
    "<",
]


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_mutated_real_pages(shared_data, data):
    pages = real_pages(shared_data / "wikipedia")
    text = pages[data.draw(st.integers(0, len(pages) - 1))]
    for _ in range(data.draw(st.integers(1, 12))):
        at = data.draw(st.integers(0, len(text)))
        length = data.draw(st.sampled_from([0, 1, 2, 5, 200, 5000]))
        inserted = data.draw(st.sampled_from(PIECES)) * data.draw(st.sampled_from([0, 1, 1, 1, 50]))
        text = text[:at] + inserted + text[at + length :]
    assert seconds(text, "en") < MAX_SECONDS


def test_no_renderer_expands_an_argument_twice():
    """Twice on each of 38 levels would be 2^38 times."""
    calls = [f"{{{{{name}" for tables in (ENGLISH, *BY_LANGUAGE.values()) for name in tables]
    calls += [f"{{{{{name}:" for name in FUNCTIONS]
    for call in calls:
        for before in ("", "|", "|x|", "|x|y|", "|x|y|z|", "|x|y|z|u|", "|x=", "|text=", "|1="):
            nested = (call + before) * 38 + "core" + "}}" * 38
            assert seconds(nested, "fr") < MAX_SECONDS, call + before


@pytest.mark.parametrize("mark", [",", ";", " ", "–", ", ", "; "])
def test_a_long_run_of_marks_behind_an_empty_bracket_is_read_once(mark):
    started = time.process_time()
    assert clean_wikitext("Ratio ( ; ) " + mark * 80_000 + "x").startswith("Ratio")
    assert time.process_time() - started < 2


def test_a_file_prefix_of_two_words():
    assert clean_wikitext("[[Tập tin:A.jpg|nhỏ|X]]Chữ.", lang="vi") == "Chữ."
    assert clean_wikitext("[[Tin: A history|tin history]]") == "tin history"
