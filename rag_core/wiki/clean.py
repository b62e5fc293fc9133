"""Wikitext → plain text.

Passes over the page, each linear in its size whatever it holds, none of which sees what an earlier
one removed:

1. `tags`: comments, `<nowiki>`, references, formulas, HTML
2. `variants`: one spelling, in languages written in several scripts
3. `calls`: templates and tables
4. `links`: links, files, categories
5. `lines`: headings, lists, behaviour switches, bold and italic
6. `entities`, `tidy`: character references, decoded once; traces of what went

Where a pass drops something it leaves a mark (`marks`); the last one mends there, and nowhere else.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from rag_core.wiki.calls import expand_calls
from rag_core.wiki.entities import decode_entities
from rag_core.wiki.lines import clean_lines
from rag_core.wiki.links import resolve_links
from rag_core.wiki.marks import without_marks
from rag_core.wiki.namespaces import LinkPrefixes, prefixes_of
from rag_core.wiki.tags import strip_tags
from rag_core.wiki.templates import page_variables
from rag_core.wiki.tidy import tidy
from rag_core.wiki.variants import choose_variants


def clean_wikitext(
    wikitext: str,
    lang: str = "en",
    keep_lists: bool = False,
    *,
    title: str = "",
    namespace: int = 0,
    prefixes: LinkPrefixes | None = None,
    lost: MutableMapping[str, int] | None = None,
) -> str:
    """The running text of a page, one line per paragraph.

    Goes: tables, boxes, files, references, galleries, categories, comments, headings, formulas that are
    more than plain symbols, and list items unless `keep_lists`. Stays: prose, with what the templates in
    it would have shown, where that can be told from the page (`templates`); `lost` counts the others by
    name. `lang` is the wiki's language code; `prefixes` its namespace names, when a dump gave them;
    `title` and `namespace` are what `{{PAGENAME}}` and its kind show.
    """
    # The first line starts like every other: behind a line break.
    text = strip_tags("\n" + without_marks(wikitext))
    text = choose_variants(text, lang)
    text = expand_calls(text, lang, lost, page_variables(title, namespace))
    text = resolve_links(text, prefixes or prefixes_of(lang))
    return tidy(decode_entities("\n".join(clean_lines(text, keep_lists, lang))))
