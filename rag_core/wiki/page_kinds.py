"""Pages that only point elsewhere: disambiguation pages and list pages, in the larger languages."""

from __future__ import annotations

import re

from rag_core.wiki.magic_words import DISAMBIGUATION_SWITCHES
from rag_core.wiki.tags import strip_tags
from rag_core.wiki.templates.lookup import normalize_name

_TEMPLATES = """
disambiguation, disambig, disamb, disam, dab, dabpage, disamb page, disambiguation page, geodis, geo-dis,
geodab, geodisambig, hndis, hn-dis, hndisambig, hndab, namedis, numberdis, numdab, mathdab, mathdis,
schooldis, schooldab, hospitaldis, roaddis, roadis, callsigndis, letterdis, letterdisambig,
letter-numbercombdis, surnamedis, shipindex, ship index, mountainindex, mountain index, lakeindex,
lake index, roadindex, road index, sportindex, sport index, stormindex, storm index, chemistry index,
chemindex, enzyme index, locomotive index, set index, set-index, setindex, set index article,
set-index article, set index page, given name set index, tldis, airport disambig,
species latin name abbreviation disambiguation, latin name disambiguation, station dis, wpdis, wp disambig,
project disambiguation, portal disambiguation, begriffsklärung, homonymie, bandeau homonymie, patronymie,
paronymie, toponymie, prénoms, désambiguïsation, desambiguación, desambiguacion, desambig, disambigua,
desambiguação, desambiguacao, doorverwijspagina, ujednoznacznienie, förgrening, olika betydelser,
неоднозначность, многозначность, неодн, disambig-cleanup, багатозначність, неоднозначність, пояснение,
вишезначна одредница, вишезначност, 曖昧さ回避, aimai, 人名の曖昧さ回避, 地名の曖昧さ回避, 消歧义, 消歧義,
消歧义页, 消歧義頁, 消歧, 동음이의, 동음이의어, 동음이의 문서, 동음이의어 문서, 동명이인, 동명이인 문서,
동명이의, 同名の作品, однофамильцы, список однофамильцев, тёзки, прізвища, توضيح, صفحة توضيح, ابهام‌زدایی,
ابهام زدایی, פירושונים, αποσαφήνιση, anlam ayrımı, anlamayrımı, egyért, egyértelműsítő lap, rozcestník,
täsmennyssivu, täsmennys, flertydig, flertydigside, dezambiguizare, định hướng, trang định hướng,
disambiguasi, apartigilo, desambiguació, argipen, razločitev, rozlišovacia stránka, nozīmju atdalīšana,
nuorodinis, täpsustuslehekülg, aðgreining, višeznačna odrednica, razdvojba, çoxmənalı terminlər,
мағына айыру, բազմիմաստություն, მრავალმნიშვნელოვანი, बहुविकल्पी शब्द, দ্ব্যর্থতা নিরসন,
பக்கவழி நெறிப்படுத்தல், แก้กำกวม, disambigo, dubbelsinnig
"""
# Names so short that other wikis use them for something else.
_SHORT_TEMPLATES = {
    "en": {"sia", "dbl"},
    "es": {"des"},
    "nl": {"dp", "dpintro"},
    "no": {"peker"},
    "sv": {"gren", "grensida"},
    "vi": {"đn"},
}
_TITLES = """
disambiguation, begriffsklärung, homonymie, desambiguación, disambigua, desambiguação, doorverwijspagina,
ujednoznacznienie, olika betydelser, значения, значення, 曖昧さ回避, 消歧义, 消歧義, 동음이의, 동음이의어,
동명이인, توضيح, ابهام‌زدایی, פירושונים, αποσαφήνιση, anlam ayrımı, egyértelműsítő lap, rozcestník,
täsmennyssivu, flertydig, dezambiguizare, định hướng, disambiguasi, apartigilo, desambiguació, пояснение,
вишезначна одредница, argipena, razločitev
"""
_CATEGORIES = """
disambiguation page, set index articles, set indices, begriffsklärung, homonymie, desambiguación,
pagine di disambigua, disambiguasi, desambiguação, doorverwijspagina, ujednoznacznienia, förgreningssidor,
многозначные термины, багатозначні терміни, 曖昧さ回避, 消歧义, 消歧義, 동음이의, 동명이인, توضيح, ابهام‌زدایی,
αποσαφήνιση, anlam ayrımı, egyértelműsítő, rozcestníky, täsmennyssivut, flertydig, dezambiguizare, định hướng
"""
_LIST_TITLES = {
    "en": r"(?:Lists?|Index|Indexes|Outline) of ",
    "de": r"Liste(?:n)? (?:der|des|von|aller|deutscher|mit|bekannter) ",
    "fr": r"Liste(?:s)? (?:des?|du|d[’'])",
    "es": r"(?:Lista|Listado|Anexo) ?(?:de |:)",
    "it": r"(?:Lista|Elenco) (?:d[ei]|del|dei|delle|degli|d')",
    "pt": r"(?:Lista|Anexo) ?(?:d[eaos]+ |:)",
    "nl": r"Lijst(?:en)? van ",
    "pl": r"Lista |Listy ",
    "sv": r"Lista över ",
    "ru": r"Спис(?:ок|ки) ",
    "uk": r"Спис(?:ок|ки) ",
    "ja": r".*一覧(?:の一覧)?$",
    "zh": r".*(?:列表|一览|一覽)$",
}


def _names(text: str) -> frozenset[str]:
    return frozenset(" ".join(name.split()).casefold() for name in text.split(","))


_TEMPLATE_NAMES, _TITLE_WORDS, _CATEGORY_WORDS = _names(_TEMPLATES), _names(_TITLES), _names(_CATEGORIES)
_CALL = re.compile(r"\{\{([^|{}<\[\]]{2,60})")
_SWITCH = re.compile("__(?:" + "|".join(DISAMBIGUATION_SWITCHES) + ")__")
_CATEGORY = re.compile(r"\[\[(?:[^\[\]|:]{3,20}|[^\x00-\x7f]{2}):([^\[\]|]{3,80})[|\]]")
_LIST = {lang: re.compile(pattern) for lang, pattern in _LIST_TITLES.items()}


def is_disambiguation(title: str, wikitext: str, lang: str = "en") -> bool:
    """By title, magic word, template or category; what stands in a comment or `<nowiki>` does not count."""
    if title.endswith(")") and title[:-1].rpartition("(")[2].casefold() in _TITLE_WORDS:
        return True
    return _marks_disambiguation(wikitext, lang) and _marks_disambiguation(strip_tags(wikitext), lang)


def _marks_disambiguation(wikitext: str, lang: str) -> bool:
    if "__" in wikitext and _SWITCH.search(wikitext):
        return True
    if any(_is_disambiguation_template(name, lang) for name in set(_CALL.findall(wikitext))):
        return True
    tail = wikitext[-4000:]  # categories stand at the end
    return any(map(_is_disambiguation_category, _CATEGORY.findall(tail)))


def _is_disambiguation_template(name: str, lang: str) -> bool:
    name = normalize_name(name)
    if name in _TEMPLATE_NAMES or name in _SHORT_TEMPLATES.get(lang, ()):
        return True
    if name.endswith(_ENDINGS) and not name.startswith(_HATNOTES):
        return True
    return name.startswith("homonymie ") or (name.startswith("disambig") and "needed" not in name)


# {{Saints homonymes}}, {{地名の曖昧さ回避}}, {{人名消歧义}}; but not the notes at the head of an article.
_ENDINGS = (
    " disambiguation",
    " disambig",
    " homonymes",
    "の曖昧さ回避",
    "消歧义",
    "消歧義",
    "消歧义页",
    "消歧義頁",
    " 동음이의",
)
_HATNOTES = ("voir", "autre", "confusion", "other", "for")


def _is_disambiguation_category(name: str) -> bool:
    name = name.strip().replace("_", " ").casefold()
    return name.startswith("disambig") or any(word in name for word in _CATEGORY_WORDS)


def is_list(title: str, lang: str = "en") -> bool:
    """Whether a title announces a list ("List of oaks"), by the custom of the wiki's language."""
    pattern = _LIST.get(lang)
    return bool(pattern and pattern.match(title)) or bool(_LIST["en"].match(title))
