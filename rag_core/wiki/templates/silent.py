"""Templates known to carry no prose: dropped, and not counted as a loss."""

from __future__ import annotations

# A name that starts with one of these.
_PREFIXES = (
    "cite ", "cite", "citation", "harv", "sfn", "efn", "infobox", "navbox", "reflist", "ref", "taxobox",
    "speciesbox", "automatic taxobox", "geobox", "coord", "commons", "wikisource", "wikiquote", "wiktionary",
    "sister", "portal", "authority", "persondata", "see also", "main", "further", "details", "other", "about",
    "for", "redirect", "distinguish", "hatnote", "pp-", "use ", "good article", "featured article", "short desc",
    "defaultsort", "italic title", "displaytitle", "cleanup", "unreferenced", "more citations", "more footnotes",
    "refimprove", "no footnotes", "stub", "update", "pov", "npov", "dispute", "original research", "merge",
    "expand", "toc", "clear", "succession", "s-", "start box", "end box", "navigation", "sidebar", "campaignbox",
    "football ", "fb ", "col-", "div col", "columns", "multiple image", "gallery", "image", "css image", "location map",
    "graph", "chart", "bar ", "pie", "legend", "note", "refn", "rp", "r", "citation needed", "cn", "fact",
    "when", "who", "which", "where", "why", "whom", "by whom", "clarify", "vague", "dubious", "failed verification",
    "page needed", "better source", "specify", "according to whom", "weasel", "dead link", "webarchive", "wayback",
    "isbn", "issn", "oclc", "doi", "pmid", "pmc", "arxiv", "bibcode", "jstor", "lccn", "imdb", "allmusic", "discogs",
    "musicbrainz", "official website", "find a grave", "gutenberg", "librivox", "internet archive", "curlie", "dmoz",
    "anchor", "listen", "video", "spoken", "external", "flagicon", "flag icon", "flagdeco", "disambig", "lead",
    "multiple issues", "in use", "under construction", "subscription", "registration", "refbegin", "refend",
    "notelist", "notes", "sources", "attribution", "source-attribution", "library", "wikidata", "icon", "ambox",
    "tone", "copy edit", "globalize", "long", "very long", "primary sources", "one source", "blp", "article",
)  # fmt: skip

# Endings that mark boxes and stubs in any language.
_SUFFIXES = (" stub", "-stub", " infobox", " box", " navbox", "-bio-stub", " sidebar", "-geo-stub")

# The same kinds in other languages; whole names or their first words.
_WORDS = frozenset(
    "infobox infoboks inforuta ficha карточка картка taxobox taxo info navigationsleiste personendaten "
    "belege literatur einzelnachweise normdaten commonscat begriffsklärung palette portail références "
    "ébauche réf ouvrage article lien web ouvrage autorité homonymie voir loupe portal listaref cita "
    "referencias control commons bio note box coord sezione interprogetto portale info esboço controle "
    "referências przypisy infobox kontrola stub szkic перевести примечания навигация библиоинформация "
    "ambox заготовка нет источник rq reflist sfn sfnp sfnm harvnb harvtxt harv примітки література "
    "appendix bron bronvermelding cite zie 脚注 出典 reflist normdaten 典拠管理 参考资料 reflist "
    "authority".split()
)


def is_silent(name: str) -> bool:
    """Whether a template, by its normalised name, is one of the kinds that show no running text."""
    first_word = name.partition(" ")[0]
    return (
        first_word in _WORDS
        or name in _WHOLE
        or name.startswith(_LONG_PREFIXES)
        or first_word in _PREFIX_WORDS
        or name.endswith(_SUFFIXES)
    )


# Short prefixes count as whole words only: "r" is a reference, "reign" is not.
_LONG_PREFIXES = tuple(p for p in _PREFIXES if len(p) > 5 or p.endswith((" ", "-")))
_PREFIX_WORDS = frozenset(p for p in _PREFIXES if len(p) <= 5)
_WHOLE = frozenset(_PREFIXES)
