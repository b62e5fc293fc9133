"""Templates known to carry no prose: dropped, and not counted as a loss."""

from __future__ import annotations

# English names, and names taken over by other wikis: everything that starts with one of these.
_STARTS = """
r from_, r to_, r with_, this is a redirect, wikipedia books, cite, citation, harv, sfn, efn, refn,
reflist, refbegin, refend, notelist, infobox, navbox, taxobox, speciesbox, automatic taxobox, geobox,
sidebar, campaignbox, navigation, succession, start box, end box, s-, stub, coord, location map, graph:,
chart, bar box, bar chart, pie chart, legend, image, multiple image, gallery, wide image, double image,
css image, external media, col-, colbegin, colend, div col, columns-list, toc, table of, commons,
wikisource, wikiquote, wiktionary, wikibooks, wikinews, wikispecies, wikivoyage, wikiversity, wikidata,
sister, portal, authority control, persondata, bio_, see also, main_, further, details, other_, about_,
for_, redirect, distinguish, hatnote, pp-, use_, good article, featured article, short description,
italic title, displaytitle, defaultsort, cleanup, unreferenced, more citations, more footnotes,
refimprove, no footnotes, update, pov, npov, disputed, original research, merge, expand,
multiple issues, in use, under construction, globalize, tone, copy edit, very long, primary sources,
one source, blp, lead_, notability, advert, peacock, weasel, citations, cit_, unbalanced, contains_,
citation needed, page needed, better source, failed verification, according to whom, by whom, clarify,
vague, dubious, specify, dead link, webarchive, wayback, subscription, registration, official website,
find a grave, gutenberg, librivox, internet archive, curlie, dmoz, imdb, allmusic, discogs, musicbrainz,
youtube, anchor, listen, spoken, flagicon, flag icon, disambig, attribution, source-attribution,
library resources, football_, fb_, historical populations, weather box, us census, election_,
family tree, ahnentafel, chess diagram, goban, timeline, track listing, tracklist, cast list,
"""
# The same kinds as whole names: too short, or too common as the start of others.
_NAMES = """
r, ref, rp, note, notes, cn, fact, when, who, whom, which, where, why, how, says who, isbn, issn, oclc,
doi, pmid, pmc, arxiv, bibcode, jstor, lccn, hdl, asin, video, sources, icon, ambox, article, box, long,
lead, top, end, bots, nobots, fn, pagename, fullpagename, basepagename, subpagename, namespace, sitename,
revisionid, server, main, for, about
"""
# Boxes, references and maintenance in other languages, by their first word.
_FIRST_WORDS = """
infoboks inforuta ficha карточка картка taxo navigationsleiste personendaten belege literatur
einzelnachweise normdaten commonscat begriffsklärung palette portail références ébauche réf ouvrage lien
autorité homonymie voir loupe listaref referencias control coord sezione interprogetto info esboço
controle referências przypisy kontrola szkic перевести примечания навигация библиоинформация заготовка
rq appendix bron zie примітки література 脚注 出典 典拠管理 参考资料 각주 토막글 전거 위키공용 위키공용분류
citace portály autoritní pahýl kaynakça otorite
"""
# Boxes and stubs of any wiki and subject.
_ENDINGS = (
    " stub",
    "-stub",
    " infobox",
    " navbox",
    " sidebar",
    " topics",
    " box",
    " icon",
    " 정보",
    " bilgi kutusu",
    " taslak",
    "-taslak",
)


def is_silent(name: str) -> bool:
    """Whether a template, by its normalised name, is one of the kinds that show no running text."""
    return (
        name in _WHOLE
        or name.startswith(_PREFIXES)
        or name.partition(" ")[0] in _WORDS
        or name.endswith(_ENDINGS)
    )


def _entries(text: str) -> list[str]:
    """Comma-separated entries; "_" stands for a space that ends a word."""
    return [entry.strip().replace("_", " ") for entry in text.split(",") if entry.strip()]


_PREFIXES = tuple(_entries(_STARTS))
_WHOLE = frozenset(_entries(_NAMES))
_WORDS = frozenset(_FIRST_WORDS.split())
