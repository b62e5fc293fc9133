"""Wikipedia dumps to plain text: `read_pages` reads, `clean_wikitext` cleans, `read_articles` does both."""

from rag_core.wiki.articles import read_articles
from rag_core.wiki.clean import clean_wikitext
from rag_core.wiki.dump import read_pages
from rag_core.wiki.multistream import PageIds, StreamRange, index_name, merge_ranges, read_index
from rag_core.wiki.records import Article, DumpError, Page

__all__ = [
    "Article",
    "DumpError",
    "Page",
    "PageIds",
    "StreamRange",
    "clean_wikitext",
    "index_name",
    "merge_ranges",
    "read_articles",
    "read_index",
    "read_pages",
]
