"""Dump → articles as plain text: filters, cleaning, and the count of everything that was read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, MutableMapping, Sequence

from rag_core.wiki.clean import clean_wikitext
from rag_core.wiki.counting import add_one
from rag_core.wiki.dump import OnBadPage, Source, read_dump, report_bad_page
from rag_core.wiki.multistream import PageIds
from rag_core.wiki.namespaces import LinkPrefixes
from rag_core.wiki.page_kinds import is_disambiguation, is_list
from rag_core.wiki.records import Article, BadPage, Page, SiteInfo


def read_articles(
    path_or_file: Source,
    *,
    namespaces: Collection[int] = (0,),
    keep_redirects: bool = False,
    keep_disambiguation: bool = False,
    keep_lists: bool = False,
    lang: str = "en",
    min_words: int = 0,
    counts: MutableMapping[str, int] | None = None,
    lost_templates: MutableMapping[str, int] | None = None,
    on_bad_page: OnBadPage | None = None,
    byte_range: tuple[int, int] | None = None,
    expected_ids: Sequence[str] | PageIds | None = None,
) -> Iterator[Article]:
    """The articles of a dump that pass the filters, as plain text.

    `keep_lists` keeps list items inside articles and pages whose title announces a list. A page without
    any text is never an article.

    `counts` receives "read" and, for each page, exactly one of "written", "bad" or the reason why it
    was skipped: "namespace", "redirect", "not_wikitext" (its content model), "disambiguation", "list",
    "empty", "short". A page that cannot be used or whose cleaning fails goes to `on_bad_page(page,
    reason)`; without one it is a `DumpError`. `byte_range` and `expected_ids`: as in `read_pages`.
    """
    counts = {} if counts is None else counts
    prefixes = LinkPrefixes(lang)
    for item in read_dump(path_or_file, byte_range=byte_range, expected_ids=expected_ids):
        if isinstance(item, SiteInfo):
            prefixes = LinkPrefixes(lang, item.lang or "", namespaces=item.namespaces)
            continue
        add_one(counts, "read")
        text = ""
        if isinstance(item, Page):
            reason = _skip_reason(item, namespaces, keep_redirects, keep_disambiguation, keep_lists, lang)
            if reason is not None:
                add_one(counts, reason)
                continue
            try:
                text = clean_wikitext(
                    item.wikitext,
                    lang,
                    keep_lists,
                    title=item.title,
                    namespace=item.namespace,
                    prefixes=prefixes,
                    lost=lost_templates,
                )
            except Exception as error:  # one page must not end a run over millions; it is reported
                item = BadPage(item, f"cleaning failed: {type(error).__name__}: {error}", 0)
        if isinstance(item, BadPage):
            add_one(counts, "bad")
            report_bad_page(item, path_or_file, on_bad_page)
        elif not text:
            add_one(counts, "empty")
        elif min_words and len(text.split()) < min_words:
            add_one(counts, "short")
        else:
            add_one(counts, "written")
            yield Article(item.page_id, item.title, text)


def _skip_reason(
    page: Page, namespaces: Collection[int], redirects: bool, disambiguation: bool, lists: bool, lang: str
) -> str | None:
    """Why the filters leave this page out, or None."""
    if page.namespace not in namespaces:
        return "namespace"
    if page.redirect is not None and not redirects:
        return "redirect"
    if page.model != "wikitext":
        return "not_wikitext"
    if not page.wikitext.strip():
        return "empty"
    if not lists and is_list(page.title, lang):
        return "list"
    if not disambiguation and is_disambiguation(page.title, page.wikitext, lang):
        return "disambiguation"
    return None
