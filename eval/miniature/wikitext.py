"""Articles as wikitext, and pages as a MediaWiki XML dump (export schema 0.11)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from eval.miniature.facts import COUNTRIES, Entity
from eval.miniature.long_articles import two_parts
from eval.miniature.names import NameMaker
from eval.miniature.phrasing import article_sentences, later_section

_NAMESPACES = (
    (-2, "Media"), (-1, "Special"), (0, ""), (1, "Talk"), (2, "User"), (3, "User talk"),
    (4, "Project"), (5, "Project talk"), (6, "File"), (7, "File talk"), (8, "MediaWiki"),
    (9, "MediaWiki talk"), (10, "Template"), (11, "Template talk"), (14, "Category"),
    (15, "Category talk"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WikiPage:
    page_id: int
    title: str
    wikitext: str
    namespace: int = 0
    redirect: str | None = None


def article_page(entity: Entity, seed: int, long: bool = False) -> WikiPage:
    """The page of an entity. Its wording depends on the seed and the page id alone, so that two
    snapshots differ only where a fact has changed."""
    rng = random.Random(f"{seed}:article:{entity.page_id}")
    names = NameMaker(random.Random(f"{seed}:bystanders:{entity.page_id}"))
    fillers = rng.choice((3, 4))
    if entity.later:
        (opening, *body), second = two_parts(entity, rng, names)
        parts = [body, second]
    else:
        opening, *body = article_sentences(entity, rng, names, fillers=fillers)
        parts = [body[: len(body) // 2], body[len(body) // 2 :]]
    decorate = random.Random(f"{seed}:markup:{entity.page_id}")
    lines = [_infobox(entity), _bold(opening, entity), ""]
    lines[1] += _reference(decorate)
    for part in parts:
        lines += [" ".join(_mark_up(s, entity, decorate) for s in part), ""]
    if long:
        later = later_section(entity, rng, names)
        lines += ["== Later history ==", " ".join(later), "", "== References ==", "{{Reflist}}", ""]
    lines += [f"[[Category:{entity.sort.capitalize()}s of {entity.country}]]"]
    return WikiPage(entity.page_id, entity.title, "\n".join(lines))


def named_after_page(page_id: int, title: str, text: str) -> WikiPage:
    """The page of something named after an entity: a short text, its first words in bold."""
    return WikiPage(page_id, title, f"{text}\n\n{{{{Stub}}}}\n")


def disambiguation_page(page_id: int, group: Sequence[Entity]) -> WikiPage:
    lines = [f"'''{group[0].name}''' may refer to:", ""]
    lines += [f"* [[{e.title}]], {COUNTRIES[e.country]} {e.sort}" for e in group]
    lines += ["", "{{Disambiguation}}"]
    return WikiPage(page_id, f"{group[0].name} (disambiguation)", "\n".join(lines))


def redirect_page(page_id: int, title: str, target: str) -> WikiPage:
    return WikiPage(page_id, title, f"#REDIRECT [[{target}]]", redirect=target)


def dump_lines(pages: Iterable[WikiPage], name: str, timestamp: str) -> Iterator[str]:
    """The lines of `<mediawiki>…</mediawiki>`; `timestamp` is every revision's."""
    yield (
        '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        'xsi:schemaLocation="http://www.mediawiki.org/xml/export-0.11/ '
        'http://www.mediawiki.org/xml/export-0.11.xsd" version="0.11" xml:lang="en">\n'
        f"  <siteinfo>\n    <sitename>{escape(name)}</sitename>\n    <dbname>miniaturewiki</dbname>\n"
        "    <base>https://miniature.invalid/wiki/Main_Page</base>\n"
        "    <generator>MediaWiki 1.43.0</generator>\n    <case>first-letter</case>\n"
        "    <namespaces>\n"
    )
    for key, space in _NAMESPACES:
        tail = f">{space}</namespace>" if space else " />"
        yield f'      <namespace key="{key}" case="first-letter"{tail}\n'
    yield "    </namespaces>\n  </siteinfo>\n"
    for page in pages:
        redirect = (
            f'    <redirect title="{escape(page.redirect, {chr(34): "&quot;"})}" />\n'
            if (page.redirect)
            else ""
        )
        n_bytes = len(page.wikitext.encode())
        yield (
            f"  <page>\n    <title>{escape(page.title)}</title>\n    <ns>{page.namespace}</ns>\n"
            f"    <id>{page.page_id}</id>\n{redirect}    <revision>\n"
            f"      <id>{page.page_id + 1_000_000}</id>\n      <timestamp>{timestamp}</timestamp>\n"
            "      <contributor>\n        <username>Scribe</username>\n        <id>1</id>\n"
            "      </contributor>\n      <model>wikitext</model>\n"
            "      <format>text/x-wiki</format>\n"
            f'      <text bytes="{n_bytes}" xml:space="preserve">{escape(page.wikitext)}</text>\n'
            "    </revision>\n  </page>\n"
        )
    yield "</mediawiki>\n"


def _infobox(entity: Entity) -> str:
    rows = [f"{{{{Short description|{COUNTRIES[entity.country]} {entity.sort}}}}}"]
    rows.append(f"{{{{Infobox {entity.kind}")
    rows += [f"| name = {entity.name}", f"| year = {{{{start date|{entity.year}}}}}"]
    rows.append(f"| country = [[{entity.country}]]")
    rows.append(f"| image = {entity.name}.jpg")
    rows.append("}}")
    return "\n".join(rows)


def _bold(opening: str, entity: Entity) -> str:
    bearer = entity.title if entity.kind == "office" else entity.name
    opening = opening.replace(bearer, f"'''{bearer}'''", 1)
    return opening.replace(entity.country, f"[[{entity.country}]]", 1)


def _mark_up(sentence: str, entity: Entity, rng: random.Random) -> str:
    """Links, italics, references and comments; the words that cleaning leaves stay the same."""
    for relation, answer in entity.facts.items():
        if answer in sentence:
            if relation == "work":
                sentence = sentence.replace(answer, f"''{answer}''")
            elif rng.random() < 0.4:
                sentence = sentence.replace(answer, f"[[{answer}]]")
            elif rng.random() < 0.3:
                sentence = sentence.replace(answer, f"[[{answer} ({relation})|{answer}]]")
    if rng.random() < 0.2:
        sentence += _reference(rng)
    if rng.random() < 0.05:
        sentence += "<!-- source wanted -->"
    return sentence


def _reference(rng: random.Random) -> str:
    page = rng.randrange(2, 400)
    return rng.choice((
        f"<ref>Annals of the Realm, p. {page}.</ref>",
        f'<ref name="r{page}">{{{{cite book|title=A Gazetteer|page={page}}}}}</ref>',
        "",
    ))  # fmt: skip
