"""What cleaners leave behind, and what they lose, on real pages: the tables of docs/cleaning.md.

    python -m benchmarks.residues [--dump FILE]

Two Markdown tables: how often each kind of markup is still there in the articles of the English sample,
and how much of the prose inside templates has survived. Needs `pip install .[bench]`; wikiextractor is
only ever started as a command.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from benchmarks.split import DEFAULT_DUMP
from rag_core.wiki import Page, clean_wikitext, read_pages

RESIDUES = {
    "template": r"\{\{|\}\}",
    "link": r"\[\[|\]\]|\[https?:",
    "table": r"\{\||\|\}|^[|!]",
    "tag": r"</?(?:ref|br|small|span|div|sub|sup|nowiki|gallery|math|i|b)\b[^<>]*>",
    "image option": r"\bthumb\||\b\d+px\b\||\|left\||\|right\|",
    "bold or italic": r"''",
    "heading or list": r"^(?:==|[*#;:])",
    "behaviour switch": r"__[A-Z]+__",
    "entity": r"&(?:nbsp|ndash|mdash|amp|lt|gt|quot|#\d+);",
    # Behind a space: `f()` and `!"#$%&'()` are their authors' own.
    "empty brackets": r"(?<!\S)\([ ,;:]*\)|\( *[;,]|[;,] *\)",
    "placeholder": r"\b(?:codice|formula)_\d",
    "category or language link": r"^(?:Category|File|Image|[a-z]{2}):",
}
# Prose in templates: the name, and the argument a reader sees.
_PROSE = re.compile(
    r"(\w+) \{\{"
    r"(convert|lang(?=\|[a-z]{2,3}\|)|lang-[a-z]+|nihongo|nowrap|as of|circa|formatnum:|frac|quote|transl)"
    r"(?:\|[a-z]{2,3}(?=\|[^{}|=]*\}\}))?[|]?([^{}|=\[\]<>']+)[|}]",
    re.IGNORECASE,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dump", default=str(DEFAULT_DUMP), help="a dump (default: the English sample)")
    args = parser.parse_args()
    pages = [page for page in read_pages(args.dump) if page.redirect is None and page.namespace == 0]
    texts = {
        "ragline": {page.page_id: clean_wikitext(page.wikitext) for page in pages},
        "ragline, lists kept": {
            page.page_id: clean_wikitext(page.wikitext, keep_lists=True) for page in pages
        },
        "wikiextractor": wikiextractor_texts(args.dump),
        "mwparserfromhell": mwparserfromhell_texts(pages),
        "gensim": gensim_texts(pages),
    }
    counts = {name: residues(by_page.values()) for name, by_page in texts.items()}
    print_table(f"residues in {len(pages)} articles", list(RESIDUES), counts)
    kept = {name: prose_kept(pages, by_page) for name, by_page in texts.items()}
    print_table("prose of templates kept", sorted({kind for count in kept.values() for kind in count}), kept)


def wikiextractor_texts(dump: str) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, "-m", "wikiextractor.WikiExtractor", "--json", "-q", "-o", output, dump]
        subprocess.run(command, check=True, capture_output=True)
        files = sorted(Path(output).rglob("wiki_*"))
        articles = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return {article["id"]: article["text"] for article in articles}


def mwparserfromhell_texts(pages: list[Page]) -> dict[str, str]:
    import mwparserfromhell

    return {page.page_id: str(mwparserfromhell.parse(page.wikitext).strip_code()) for page in pages}


def gensim_texts(pages: list[Page]) -> dict[str, str]:
    from gensim.corpora.wikicorpus import filter_wiki

    return {page.page_id: filter_wiki(page.wikitext) for page in pages}


def residues(texts) -> dict[str, str]:
    """Matches of each kind over all texts."""
    patterns = {kind: re.compile(pattern, re.MULTILINE) for kind, pattern in RESIDUES.items()}
    found: Counter[str] = Counter()
    for text in texts:
        for kind, pattern in patterns.items():
            found[kind] += len(pattern.findall(text))
    return {kind: str(found[kind]) for kind in RESIDUES}


def prose_kept(pages: list[Page], texts: Mapping[str, str]) -> dict[str, str]:
    """Of the template calls behind a word of running text, those whose argument follows that word."""
    calls: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    for page in pages:
        text = _ungrouped(" ".join(texts.get(page.page_id, "").split()))
        for line in page.wikitext.split("\n"):
            if line[:1] in ("|", "*", "#", ";", ":", "!", "{", "}", "="):
                continue
            prose = re.sub(r"<ref[^<>]*/>|<ref.*?</ref>", "", line)
            for word, name, argument in _PROSE.findall(prose):
                kind = re.sub(r"^lang.*", "lang", name.lower().rstrip(":"))
                calls[kind] += 1
                gap = r"\W{1,3}(?:[A-Z]\w+: )?(?:c\. )?(?:as of )?"
                shown = _ungrouped(argument.strip())[:25]
                kept[kind] += bool(re.search(re.escape(word) + gap + re.escape(shown), text))
    return {kind: f"{kept[kind]}/{calls[kind]}" for kind in calls}


def _ungrouped(text: str) -> str:
    """Without thousands separators, which a cleaner may add."""
    return re.sub(r"(?<=\d),(?=\d{3})", "", text)


def print_table(head: str, kinds: list[str], columns: Mapping[str, Mapping[str, str]]) -> None:
    print(f"\n| {head} | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for kind in kinds:
        print(f"| {kind} | " + " | ".join(column.get(kind, "0") for column in columns.values()) + " |")


if __name__ == "__main__":
    main()
