"""Wikitext → plain text.

Passes over the page, each linear in its size whatever it holds, none of which sees what an earlier
one removed:

1. `tags`: comments, `<nowiki>`, references, formulas, HTML
2. `variants`: one spelling, in languages written in several scripts
3. `calls`: templates and tables
4. `links`: links, files, categories
5. `lines`: headings, lists, behaviour switches, bold and italic
6. `entities`, `tidy`: character references, decoded once; traces of what went
"""

from __future__ import annotations

from collections import Counter

from rag_core.wiki.calls import expand_calls
from rag_core.wiki.entities import decode_entities
from rag_core.wiki.lines import clean_lines
from rag_core.wiki.links import resolve_links
from rag_core.wiki.namespaces import DEFAULT_PREFIXES, LinkPrefixes
from rag_core.wiki.tags import strip_tags
from rag_core.wiki.tidy import tidy
from rag_core.wiki.variants import choose_variants


def clean_wikitext(
    wikitext: str,
    lang: str = "en",
    keep_lists: bool = False,
    *,
    prefixes: LinkPrefixes = DEFAULT_PREFIXES,
    lost: Counter[str] | None = None,
) -> str:
    """The running text of a page, one line per paragraph.

    Goes: tables, boxes, files, references, galleries, categories, comments, headings, formulas that are
    more than plain symbols, and list items unless `keep_lists`. Stays: prose, with what the templates in
    it would have shown, where that can be told from the page (`templates`); `lost` counts the others by
    name. `lang` is the wiki's language code; `prefixes` its namespace names, when a dump gave them.
    """
    text = strip_tags(wikitext)
    text = choose_variants(text, lang)
    text = expand_calls(text, lang, lost)
    text = resolve_links(text, prefixes)
    return tidy(decode_entities("\n".join(clean_lines(text, keep_lists))))
