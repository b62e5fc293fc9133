"""Filters of `read_articles`, and that every page is accounted for."""

import io
from collections import Counter

import pytest

from rag_core.wiki import Article, DumpError, articles, read_articles, read_pages
from rag_core.wiki.page_kinds import is_disambiguation, is_list


def dump(*pages):
    """Pages given as (title, namespace, text) or with a redirect's target as a fourth."""
    out = ['<mediawiki><siteinfo><namespaces><namespace key="6">Fails</namespace></namespaces></siteinfo>']
    for n, (title, namespace, text, *redirect) in enumerate(pages, start=1):
        target = f'<redirect title="{redirect[0]}"/>' if redirect else ""
        body = f"<revision><id>1</id><text>{text}</text></revision>"
        out.append(f"<page><title>{title}</title><ns>{namespace}</ns><id>{n}</id>{target}{body}</page>")
    return io.BytesIO("".join([*out, "</mediawiki>"]).encode())


PAGES = [
    ("Oak", 0, "An oak is a tree."),
    ("Oaks", 0, "#REDIRECT [[Oak]]", "Oak"),
    ("Talk:Oak", 1, "Is it?"),
    ("Oak (disambiguation)", 0, "Oak may refer to:"),
    ("Elm", 0, "'''Elm''' may be:\n{{Disambig}}"),
    ("List of oaks", 0, "A list."),
    ("Empty", 0, "{{stub}}"),
    ("Nothing", 0, ""),
    ("Short", 0, "Too short."),
    ("Fir", 0, "[[Fails:Fir.jpg|thumb|x]]A fir is a tree."),
]


def read(**options):
    counts = Counter()
    found = list(read_articles(dump(*PAGES), counts=counts, **options))
    assert counts["read"] == len(PAGES) == sum(counts.values()) - counts["read"]
    return found, counts


def test_default_filters_and_counts():
    found, counts = read(min_words=3)
    assert found == [Article("1", "Oak", "An oak is a tree."), Article("10", "Fir", "A fir is a tree.")]
    assert counts == Counter(
        read=10, written=2, redirect=1, namespace=1, disambiguation=2, list=1, empty=2, short=1
    )


@pytest.mark.parametrize(
    ("options", "title"),
    [
        ({"keep_redirects": True, "keep_lists": True}, "Oaks"),
        ({"namespaces": (0, 1)}, "Talk:Oak"),
        ({"keep_disambiguation": True}, "Elm"),
        ({"keep_lists": True}, "List of oaks"),
    ],
)
def test_each_filter_can_be_switched_off(options, title):
    assert title in [article.title for article in read(**options)[0]]


def test_a_page_whose_cleaning_fails_is_reported_and_the_rest_goes_on(monkeypatch):
    clean = articles.clean_wikitext

    def clean_all_but_oak(wikitext, *arguments, **options):
        if "oak" in wikitext:
            raise RuntimeError("no oaks")
        return clean(wikitext, *arguments, **options)

    monkeypatch.setattr(articles, "clean_wikitext", clean_all_but_oak)
    bad = []
    found, counts = read(on_bad_page=lambda page, reason: bad.append((page.title, reason)))
    assert bad == [("Oak", "cleaning failed: RuntimeError: no oaks")] and counts["bad"] == 1
    assert "Fir" in [article.title for article in found]
    with pytest.raises(DumpError, match="page 'Oak', id '1': cleaning failed: RuntimeError: no oaks"):
        list(read_articles(dump(*PAGES)))


def test_pages_in_another_language_than_wikitext_are_skipped_and_counted():
    page = (
        "<page><title>{0}</title><ns>0</ns><id>1</id><revision><model>{0}</model><format>x</format>"
        "<text>a words {{}}</text></revision></page>"
    )
    models = ("javascript", "Scribunto", "json", "css", "wikitext")
    data = f"<mediawiki>{''.join(map(page.format, models))}</mediawiki>"
    counts = {}
    found = list(read_articles(io.BytesIO(data.encode()), counts=counts))
    assert [article.title for article in found] == ["wikitext"]
    assert counts == {"read": 5, "written": 1, "not_wikitext": 4}
    assert [page.model for page in read_pages(io.BytesIO(data.encode()))] == list(models)


def test_counts_may_be_plain_dicts():
    counts, lost = {}, {}
    assert len(list(read_articles(dump(*PAGES), counts=counts, lost_templates=lost))) == 3
    assert counts["read"] == len(PAGES) and counts["disambiguation"] == 2 and lost == {}


def test_the_dump_tells_the_page_its_name_and_its_prefixes():
    xml = (
        '<mediawiki xml:lang="da"><siteinfo/><page><title>Eg</title><ns>0</ns><id>1</id><revision>'
        "<text>[[Billede:A|thumb|x]]{{PAGENAME}} er et træ.</text></revision></page></mediawiki>"
    )
    assert next(read_articles(io.BytesIO(xml.encode()))).text == "Eg er et træ."


def test_lost_templates_are_counted_by_name():
    lost = Counter()
    pages = dump(("A", 0, "Has {{EWZ|X}}, {{ewz}} and {{lang|fr|un}}{{cite web|a}}."))
    assert next(read_articles(pages, lost_templates=lost)).text == "Has, and un."
    assert lost == {"EWZ": 1, "ewz": 1}


@pytest.mark.parametrize(
    "wikitext",
    [
        "x {{Geodis}}",
        "x {{ hndis | name=Ash}}",
        "x {{disambiguation|plant}}",
        "x {{Disambiguation page}}",
        "{{Template:Disambig}}",
        "{{School disambiguation}}",
        "{{Chinese title disambig}}",
        "x {{Begriffsklärung}}",
        "{{Homonymie}}",
        "{{неоднозначность}}",
        "{{曖昧さ回避}}",
        "x __DISAMBIG__",
        "x\n[[Category:Disambiguation pages]]",
        "x\n[[Kategorie:Begriffsklärung]]",
        "{{dab}}",
        "{{Set index article}}",
        "{{Ship index}}",
        "x\n[[Category:All set index articles]]",
        "{{Homonymie de patronyme}}",
        "{{Saints homonymes}}",
        "{{동명이인}}",
        "x\n[[분류:동명이인]]",
        "{{地名の曖昧さ回避}}",
        "{{人名消歧义}}",
        "{{disambiguation\n|geo}}",
    ],
)
def test_disambiguation_by_text(wikitext):
    assert is_disambiguation("Oak", wikitext)


@pytest.mark.parametrize(
    "wikitext",
    [
        "A tree.",
        "see [[Foo]]{{disambiguation needed|date=May 2020}}",
        "x <!-- {{disambig}} -->",
        "<nowiki>{{disambig}}</nowiki>",
        "[[Oak (disambiguation)]] {{other uses}}",
        "disambig",
        "x\n[[Category:Word-sense disambiguation]]",
        "x\n[[ja:曖昧さ回避]]",
        "{{Voir homonymes|x}}",
        "{{Autres homonymes}}",
        "{{Voir homonymie|x}}",
        "{{for|x|Oak (disambiguation)}}",
    ],
)
def test_no_disambiguation(wikitext):
    assert not is_disambiguation("Oak", wikitext)


def test_short_names_count_in_their_own_language_only():
    assert is_disambiguation("Eik", "x {{dp}}", "nl") and not is_disambiguation("Oak", "x {{dp}}", "en")


def test_disambiguation_by_title():
    assert is_disambiguation("Oak (disambiguation)", "x")
    assert is_disambiguation("Eiche (Begriffsklärung)", "x")
    assert not is_disambiguation("Oak (tree)", "x")


def test_list_titles():
    for title in ("List of oaks", "Lists of trees", "Index of trees", "Outline of botany"):
        assert is_list(title)
    for title in ("Listing of ships", "List", "Blacklist of x", "Outlines"):
        assert not is_list(title)
    assert is_list("Liste der Bäume", "de") and not is_list("Liste der Bäume", "en")
