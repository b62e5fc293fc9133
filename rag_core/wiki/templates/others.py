"""Templates of the other large Wikipedias that carry prose. What is not here falls back to `english`."""

from __future__ import annotations

import re

from rag_core.wiki.marks import BREAK
from rag_core.wiki.templates import east_asian, renderers
from rag_core.wiki.templates.building import (
    Renderer,
    drop,
    joined,
    literal,
    shown,
    table,
    unknown,
    wrapped,
)
from rag_core.wiki.templates.dates import (
    day_first,
    julian_and_gregorian,
    old_style_russian,
    russian_calendars,
    year_first,
)
from rag_core.wiki.templates.units import convert, quantity

GERMAN = {
    "zitat | zitat-en | zitat-fr | zitat-la | zitat-es | zitat-it | blockzitat": renderers.block_quote,
    '" | "-de': wrapped("„", 1, "“"),
    '"-en': wrapped("“", 1, "”"),
    "datum | geburtsdatum | datumzelle | birthdate": day_first,
    "julgregdatum": julian_and_gregorian,
    "höhe | höhe zelle | pegel": wrapped("", 1, " m"),
    "zahl | formatnum | fn-zahl": renderers.grouped,
    "bruch": renderers.fraction,
    "sortkey | farbe | sortdate": shown(2, 1),
    "sortkeyname": joined(" ", 1, 2),
    "kapitälchen | polytonisch | arab | arf | hebr | unicode | s | nowrap | hebräisch | fremd | "
    "textgröße": shown(1),
    "lautschrift": wrapped("[", 1, "]"),
    "ipa": wrapped("[", 1, "]"),
    "jahrhundert": wrapped("", 1, ". Jahrhundert"),
    "maß | einheit | größe": quantity,
    "0 | anker | lückenhaft | belege fehlen | coordinate | commonscat | siehe auch | hauptartikel": drop,
    "belege | quelle": drop,
    "fl | ewz | ewd | ewr | ewq | ewt": unknown,  # looked up elsewhere by a key
    "nnbsp | leerzeichen": literal(" "),
    "§": wrapped("§ ", 1),
    "link-interwiki | interwiki-link": shown("text", "titel", 1),
}

FRENCH = {
    "unité | unite | unité/2 | unit | unités | nombre | nb | nobr unité | mesure": quantity,
    "date | date-": day_first,
    "date de naissance | date de décès | date de naissance- | date de décès- | naissance | décès": day_first,
    "s | siècle | s- | s2 | siecle": renderers.french_century(""),
    "-s | -s- | av jc s": renderers.french_century(" av. J.-C."),
    "sp | sp- | siècles": renderers.french_centuries,
    "s mini | s mini- | smini": renderers.french_century(""),
    "citation | cita | guil | guillemets | citation courte | « | guillemet": wrapped("« ", 1, " »"),
    "citation bloc | citation encadrée | bloc citation | début citation bloc": renderers.block_quote,
    "citation étrangère | citation langue": wrapped("« ", 2, " »"),
    "langue | lang | lang2 | langue2": shown(2, "texte", 1),
    "japonais | nihongo": east_asian.nihongo,
    "lien | lien interlangue | lien rouge | lien à créer": shown("texte", "fr", 1, "trad"),
    "terme défini | petites capitales | pc | pétites capitales | romain | minuscule | nom | "
    "surligner | nobr | nowrap | référence nécessaire | refnec | référence souhaitée | "
    "refsou | quoi | pas clair | passage promotionnel | passage évasif | passage non neutre | "
    "pertinence détail | quand | où | qui | référence à confirmer | refins | "
    "référence insuffisante | souligner | italique | gras | écrire | typo | transcription | "
    "term": shown(1),
    "abréviation | abr | abrd | abrv": shown(1),
    "exp | e": shown(1, "e"),
    "1er": lambda arguments: f"1er {arguments[1]}".strip(),
    "1re": literal("1re"),
    "ier": literal("Ier"),
    "iers": literal("Iers"),
    "ire": literal("Ire"),
    "er": literal("er"),
    "ère | re": literal("re"),
    "ème | me": literal("e"),
    "d": literal("d"),
    "ind": shown(1),
    "n° | numéro | no | numero | nº": wrapped("no ", 1),
    "nos | numéros": wrapped("nos ", 1),
    "p. | page": wrapped("p. ", 1),
    "vol. | volume": wrapped("vol. ", 1),
    "av. j.-c. | avjc | av jc": renderers.with_suffix("av. J.-C."),
    "apr. j.-c. | apjc | apr jc": renderers.with_suffix("apr. J.-C."),
    "incise": wrapped("– ", 1, " –"),
    "tiret | tiret insécable | –": literal(" – "),
    "heure": joined(" h ", 1, 2),
    "durée": joined(" h ", 1, 2),
    "mme | madame": wrapped("Mme ", 1),
    "m. | m": wrapped("M. ", 1),
    "mlle": wrapped("Mlle ", 1),
    "mgr": wrapped("Mgr ", 1),
    "dr": wrapped("Dr ", 1),
    "pr": wrapped("Pr ", 1),
    "st": wrapped("St ", 1),
    "ste": wrapped("Ste ", 1),
    "api | phon": wrapped("[", 1, "]"),
    "euro | euros": wrapped("", 1, " €"),
    "pourcentage | %": wrapped("", 1, " %"),
    "formatnum": renderers.grouped,
    "conversion": convert,
}

SPANISH = {
    "unidad | magnitud": quantity,
    "fecha | fecha de inicio | fecha de nacimiento | fecha de fallecimiento": day_first,
    "convertir": convert,
    "siglo | siglos | s": renderers.romance_century("siglo "),
    "cita destacada | cita2 | caja de cita en línea": renderers.block_quote,
    "cita": wrapped("«", 1, "»"),
    "versalita | versalitas | sc": shown(1),
    "afi": wrapped("[", 1, "]"),
    "esd": shown(1),
    "enlace-pasivo | enlace pasivo | ill | enlace interlingüístico": shown("lt", 1),
    "nihongo | japonés": east_asian.nihongo,
    "formatnum | formato número": renderers.grouped,
    "ac | a. c.": wrapped("", 1, " a. C."),
    "años": wrapped("", 1, " años"),
    "cita requerida | demostrar": shown(1),
}

ITALIAN = {
    "m | unità | unità di misura | um": renderers.italian_quantity,
    "formatnum | numero": renderers.grouped,
    "citazione | quote | citazione2": renderers.block_quote,
    "ta | no wrap | nowrap | senza fonte | chiarire | citazione necessaria | maiuscoletto | quando": shown(1),
    "nihongo | giapponese": east_asian.nihongo,
    "data | data nascita": day_first,
    "converti": convert,
    "secolo | sec": renderers.romance_century(""),
    "collegamento interprogetto | ill | link interlinguistico": shown(1),
    "exp": shown(1),
    "ipa | afi": wrapped("[", 1, "]"),
}

PORTUGUESE = {
    "unidade | unit": quantity,
    "formatnum | formatar número": renderers.grouped,
    "fmtn": quantity,
    "dtext | data | dni-texto | data texto | dtlink": day_first,
    "dni | morte | nascimento | falecimento": day_first,
    "converter | conversor": convert,
    "citação | citação2 | quote | bloco de citação | cita": renderers.block_quote,
    "séc | século | sec": renderers.romance_century("século "),
    "ac | a.c.": wrapped("", 1, " a.C."),
    "dc | d.c.": wrapped("", 1, " d.C."),
    "ilc | link | ligação interlíngua": shown("lt", 1),
    "nihongo | japonês": east_asian.nihongo,
    "carece de fontes2 | quem2": shown(1),
}

DUTCH = {
    "citaat | cquote": renderers.block_quote,
    "getal | formatnum": renderers.grouped,
    "eenheid": quantity,
    "datum": day_first,
    "ipa": wrapped("[", 1, "]"),
    "nihongo | japans": east_asian.nihongo,
    "interwikilink | link interwiki": shown(1),
}

POLISH = {
    "cytat | cytat d": renderers.block_quote,
    "fakt | potrzebne źródło": shown(1),
    "liczba | formatnum | formatuj liczbę": renderers.grouped,
    "data": day_first,
    "j | język | w języku": shown(2),
    "link-interwiki": shown("tekst", "pl", 1),
    "nihongo | japoński": east_asian.nihongo,
    "unikod | unicode": shown(1),
    "k. | około": wrapped("ok. ", 1),
    "ipa": wrapped("[", 1, "]"),
}

SWEDISH = {
    "citat | blockcitat": renderers.block_quote,
    "enhet": quantity,
    "datum": day_first,
    "formatnum | tal": renderers.grouped,
    "nihongo | japansk": east_asian.nihongo,
    "språklänk": shown(2, 1),
    "ipa | uttal": wrapped("[", 1, "]"),
}

RUSSIAN = {
    "s | nobr | без переноса | неразрывный | nowrap": shown(1),
    "num | число | formatnum | форматчисло": quantity,
    "дата | date | датарождения | датасмерти": day_first,
    "нп | нп1 | нп2 | нп3 | нп4 | нп5 | не переведено | не переведено 2 | "
    "не переведено 3 | не переведено 5 | iw | np": shown(2, 1),
    "цитата | начало цитаты | quote | врезка-цитата": renderers.block_quote,
    "comment | подсказка | abbr": shown(1),
    "евро": wrapped("", 1, " евро"),
    "старый стиль | ss | старостиль": joined(" ", 1, 2),
    "oldstyledate": old_style_russian,
    "сс3 | сс | сс2": russian_calendars,
    "тире | -": literal(" — "),
    "мфа": wrapped("[", 1, "]"),
    "км | km": wrapped("", 1, " км"),
    "год": wrapped("", 1, " год"),
    "конвертировать | конверт": convert,
    "нет аи 2 | уточнить2 | нет аи2": shown(1),
    "nihongo | яп": east_asian.nihongo,
    "флаг | флагификация | страна | ф": shown(2, 1),
}

UKRAINIAN = {
    "s | nobr | nowrap | без переносу": shown(1),
    "число | num | formatnum": quantity,
    "дата | date": day_first,
    "нп | нп1 | нп2 | нп3 | не перекладено | iw | iw2": shown(2, 1),
    "цитата | quote": renderers.block_quote,
    "мфа": wrapped("[", 1, "]"),
    "нє аі 2 | джерело2": shown(1),
}

JAPANESE = {
    "読み仮名 | 読み仮名 ruby不使用 | ふりがな | 読み": renderers.japanese_reading,
    "ルビ | ruby": renderers.ruby,
    "仮リンク | 日本語版にない記事リンク": shown("label", 1),
    "jis2004フォント | jis90フォント | 補助漢字フォント | cjk拡張漢字": shown(1),
    "要出典範囲 | 要検証範囲 | 誰範囲": shown(1, "1"),
    "日付": year_first,
    "by | 西暦": renderers.with_mark("年"),
    "lang-en-short | lang-fr-short": shown(1),
    "引用 | quotation | cquote": renderers.block_quote,
    "縦書き | 拡大": shown(1),
}

CHINESE = {
    "link-en | le | link-ja | link-fr | link-de | link-ru | internal link helper/en | en-link | ilh": shown(
        "3", 1
    ),
    "tsl | translink": shown(4, 3),
    "bd | bd2": renderers.chinese_life,
    "jpn": renderers.labelled_japanese,
    "notetag": drop,
    "僻字 | 生僻字": shown(1),
    "日本漢字 | zy | 注音": shown(1),
    "cquote | quote": renderers.block_quote,
    "nihongo": east_asian.nihongo,
    "date": year_first,
}

KOREAN = {
    "llang | lang2": shown(2, "text"),
    "출생일 | 사망일 | 출생일과 나이 | 사망일과 나이 | 시작 날짜 | 종료 날짜 | 날짜": year_first,
    "변환": convert,
    "인용문 | 인용문2 | 큰 인용문": renderers.block_quote,
    "줄바꿈 금지": shown(1),
    "임시링크": shown(1),
    "국기 | 국기나라": renderers.flagged,
    "국기그림 | 각주": drop,
}

CZECH = {
    "vjazyce | vjazyce2 | cizojazyčně | cj | cj2": shown(2),
    "datum narození | datum narození a věk | datum úmrtí | datum úmrtí a věk": year_first,
    "citát | velký citát": renderers.block_quote,
    "zlomek": renderers.fraction,
    "vlajka a název": renderers.flagged,
    "vlajka": drop,
}

TURKISH = {
    "dil": shown(2),
    "doğum tarihi | doğum tarihi ve yaşı | ölüm tarihi | ölüm tarihi ve yaşı | başlangıç tarihi | "
    "bitiş tarihi": year_first,
    "çevir | dönüştür": convert,
    "alıntı | blok alıntı": renderers.block_quote,
    "bayrak": renderers.flagged,
    "bayraksimge": drop,
}

BY_LANGUAGE: dict[str, dict[str, Renderer]] = {
    "de": table(GERMAN),
    "fr": table(FRENCH),
    "es": table(SPANISH),
    "it": table(ITALIAN),
    "pt": table(PORTUGUESE),
    "nl": table(DUTCH),
    "pl": table(POLISH),
    "sv": table(SWEDISH),
    "ru": table(RUSSIAN),
    "uk": table(UKRAINIAN),
    "ja": table(JAPANESE),
    "zh": table(CHINESE),
    "ko": table(KOREAN),
    "cs": table(CZECH),
    "tr": table(TURKISH),
}

_FRACTION = re.compile(r"\d{1,3}/\d{1,4}")
_FRENCH_ORDINAL = re.compile(r"(\d+|[ivxlc]+)(e|er|ers|re|es)")
_FRENCH_CENTURY = re.compile(r"([ivxlc]+)(e|er) siècle(?: (av\. j\.-c\.))?")


def name_template(name: str, lang: str) -> Renderer | None:
    """A template that shows its own name: {{1/2}}, French {{XXe siècle}}, {{2e}}."""
    if _FRACTION.fullmatch(name):
        return literal(BREAK + name)
    if lang == "fr" and (match := _FRENCH_CENTURY.fullmatch(name)):
        era = " av. J.-C." if match[3] else ""
        return literal(f"{match[1].upper()}{match[2]} siècle{era}")
    if lang == "fr" and (match := _FRENCH_ORDINAL.fullmatch(name)):
        return literal(match[1].upper() + match[2])
    return None
