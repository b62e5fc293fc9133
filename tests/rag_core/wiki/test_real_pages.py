"""The real samples come out without any residue of markup."""

import re

import pytest

from benchmarks.residues import RESIDUES
from rag_core.wiki import read_articles

# Text that only looks like markup, because the article is about such characters.
ABOUT_MARKUP = {"HTML", "ASCII"}


@pytest.mark.parametrize(
    ("name", "lang", "n_articles"),
    [
        ("enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2", "en", 106),
        ("enwiki-table-markup.xml.bz2", "en", 5),
        ("bgwiki-latest-pages-articles-shortened.xml.bz2", "bg", 1),
        ("smallwiki-pages-articles-multistream.xml.bz2", "ltg", 882),
    ],
)
def test_no_residue(shared_data, name, lang, n_articles):
    dump = shared_data / "wikipedia" / name
    articles = list(read_articles(dump, lang=lang, keep_lists=True, keep_disambiguation=True))
    assert len(articles) >= n_articles
    found = [
        (article.title, kind, article.text[max(0, match.start() - 40) : match.end() + 20])
        for article in articles
        if article.title not in ABOUT_MARKUP
        for kind, pattern in RESIDUES.items()
        for match in re.finditer(pattern, article.text, re.MULTILINE)
    ]
    assert found == []
