"""Templates of the English Wikipedia that carry prose, by kind. Many other wikis share their names."""

from __future__ import annotations

from rag_core.wiki.templates import east_asian, renderers
from rag_core.wiki.templates.building import (
    Renderer,
    drop,
    joined,
    list_of,
    literal,
    shown,
    table,
    wrapped,
)
from rag_core.wiki.templates.dates import (
    as_of,
    formatted,
    old_style,
    old_style_two_years,
    year_first,
    years_between,
)
from rag_core.wiki.templates.units import abbreviated, convert

# One argument, in another font, colour or size.
STYLED = {
    "nowrap | nobr | nobreak | nowraplinks | no wrap | nwr | j | avoid wrap | small | smaller | "
    "smaller2 | big | bigger | larger | large | huge | resize text | em | strong | bold | italic | b | "
    "i | u | s | underline | strikethrough | strike | del | ins | sub | sup | smallcaps | small caps | "
    "sc | sc1 | sc2 | smallcaps2 | allcaps | all caps | lcase | uppercase | lowercase | mono | "
    "monospace | tt | code | samp | kbd | var | varserif | mvar | math | nobold | noitalic | "
    "noitalics | nobold italic | normal | normalfont | serif | sans-serif | unicode | unicode fonts | "
    "iast | polytonic | hebrew | arabic | nq | nastaliq | pslink | text | plain text | not a typo | "
    "notatypo | proper name | typo | as written | chem name | chemname | dfn | defn | term | vanchor | "
    "visible anchor | va | citation needed span | cn span | clarify span | clarify-span | vague span | "
    "fact span | unreferenced span | tq | xt | center | centre | centered | block center | left | "
    "align-left | noflag | no flag | lw | red | green | blue | tqq | overline | overbar | vec | "
    "bra-ket | naut": shown(1, "text", "content"),
    "resize | font size": shown(2, 1),
    "color | colour | font color | font colour | background color | bgcolor | script | wikt-lang | "
    "wt-lang | rtl-lang | fontcolor | align | colorbox | hover title | title tooltip | sort | "
    "sort-key | sortkey": shown(2, 1),
    "font": shown("text", 2, 1),
    "abbr | abbrv | abbreviation | abbrlink | tooltip | tip | tt2 | hint | explain | h:title | define": shown(
        1
    ),
    "char | charlink | mono char | highlight | hilite | highlighted": shown(1),
    "angbr | angle bracket | angle brackets | grapheme | orth": wrapped("⟨", 1, "⟩"),
    "abs | absolute value": wrapped("|", 1, "|"),
    "bracket | brackets": wrapped("[", 1, "]"),
    "key press | keypress | kbd key | key": joined("+"),
    "gloss | single quote | ' '": wrapped("‘", 1, "’"),
    "lit | literal translation | literal": wrapped("lit. ‘", 1, "’"),
    "linktext | lt": joined(""),
    "ruby | ruby-ja | ruby-zh-p | ruby-zh-b": renderers.ruby,
    "sic": renderers.sic,
}

_APOSTROPHE = "&#39;"  # as an entity, so that beside ''italics'' it is no part of them

# Signs that cannot be typed inside a template, and spaces.
SIGNS = {
    "ndashb | ndash | en dash | en-dash | endash | – | nsndns": literal("–"),
    "mdashb | mdash | em dash | em-dash | emdash | — | long dash": literal("—"),
    "figure dash": literal("‒"),
    "nbh | nbhyph | nbhyphen | non-breaking hyphen": literal("\u2011"),
    "\\ | / | slash": literal(" / "),
    "spaced ndash | snd | snds | spnd | sndash | spndash | spaced en dash | spaced endash | –– | dash | "
    "sort dash": literal(" – "),
    "spaced mdash | spaced em dash | snd2 | spmd | smd": literal(" — "),
    "nbsp | space | spaces | nbs | nobreak space | thinsp | thin space | hair space | hairsp | "
    "nnbsp | ensp | emsp | en space | em space | figure space | narrow no-break space | pad | "
    "indent | gap | sp | quad | in5": literal(" "),
    "· | • | * | bull | middot | dot | bullet | bold middot | interpunct | , | ·w | •w": literal(" · "),
    "' | apostrophe | apos": literal(_APOSTROPHE),
    "'s | 's-": literal(f"{_APOSTROPHE}s"),
    "\" ' | \"'": literal(f'"{_APOSTROPHE}'),
    "' \"": literal(f'{_APOSTROPHE}"'),
    "!": literal("|"),  # after the calls are read it is a pipe like any other
    "!! | (! | !) | !- | ! !": drop,
    "yes | no | n/a | na | tbd | tba | tick | cross | check mark | won | nom | pending | "
    "partial | unknown | increase | decrease | steady | profit | loss | up | down | "
    "draw | 0": drop,
    "dagger | †": literal("†"),
    "double-dagger | double dagger | ddagger | ‡": literal("‡"),
    "=": literal("="),
    "(": literal("&#123;"),
    ")": literal("&#125;"),
    "((": literal("&#123;&#123;"),
    "))": literal("&#125;&#125;"),
    "pipe": literal("&#124;"),
    "asterisk": literal("*"),
    "num | no.": wrapped("No. ", 1),
    "vol.": wrapped("vol. ", 1),
    "pi | pi2": literal("π"),
    "okina | ʻokina": literal("ʻ"),
    "hamza | alif": literal("ʾ"),
    "ayin | ayn": literal("ʿ"),
    "flat | music flat": literal("♭"),
    "sharp": literal("♯"),
    "natural": literal("♮"),
    "degree | deg | °": wrapped("", 1, "°"),
    "minus | −": literal("−"),
    "times | ×": literal("×"),
    "plusmn | ±": literal("±"),
    "ellipsis | ...": literal("..."),
    "paragraph break | pb | paragraph | para | parabr | break | crlf | br | hr": literal("\n"),
    "music": renderers.music,
    "zwj | zwnj | zwsp | zero width joiner | shy | softhyphen | wbr | lrm | rlm | wj | word joiner": literal(
        ""
    ),
    "clear | clr | - | clear left | clear right | nowrap begin | nowrap end | wrap | ns has subpages": drop,
}

NUMBERS = {
    "convert | converted | conv": convert,
    "cvt": abbreviated,
    "frac | fraction | vulgar fraction | frac2": renderers.fraction,
    "sfrac | sfrac2 | math fraction | cfrac": renderers.fraction,
    "sqrt | radic | square root": wrapped("√", 1),
    "val": renderers.value,
    "e | ×10^ | esp": renderers.power_of_ten,
    "10^": wrapped("10^", 1),
    "gaps | gapnum | delimitnum": joined(""),
    "nts | number table sorting | number | formatnum | fmtn | commas": renderers.grouped,
    "rnd | round": renderers.rounded,
    "ordinal | ord | nth": renderers.ordinal_number,
    "roman | roman numeral": renderers.roman_numeral,
    "spellnum | spell number | number to word | numtext | spellnum per mos": renderers.number_in_words,
    "dms": renderers.degrees,
    "percentage | pct | percent": renderers.percentage,
    "height": renderers.height,
    "weight": renderers.height,
    "duration": renderers.duration,
    "chem | chem2 | chemical formula": renderers.chemical,
    "co2": literal("CO2"),
    "h2o": literal("H2O"),
    "o2": literal("O2"),
    "so2": literal("SO2"),
    "no2": literal("NO2"),
    "nox": literal("NOx"),
    "nh3": literal("NH3"),
    "ch4": literal("CH4"),
    "hydrogen": literal("H"),
    "carbon": literal("C"),
    "nitrogen": literal("N"),
    "oxygen": literal("O"),
    "nuclide | nuclide2 | simplenuclide | isotope": joined("-", 1, 2),
    "physics particle | subatomicparticle | subatomic particle": shown(1, "symbol"),
    "unichar | unicode character": wrapped("U+", 1),
    "hexadecimal": shown(1),
    "railgauge | track gauge": shown(1),
    "mp": joined(""),
    "solar mass": literal(" M☉"),
    "solar radius": literal(" R☉"),
    "score": joined("–", 1, 2),
    "ntsh | hs | hidden sort key | sort hidden | number table sorting hidden": drop,
}

# amount → amount with its sign. {{currency|5|EUR}} is among the renderers.
MONEY = {
    names: wrapped(sign, 1)
    for names, sign in {
        "us$ | usd | us dollar": "US$",
        "gbp | £ | pound sterling | pounds": "£",
        "euro | eur | €": "€",
        "inr | indian rupee | ₹ | indian rupees | rupee": "₹",
        "jpy | ¥ | yen | jp¥ | japanese yen": "¥",
        "cny | cn¥ | rmb": "CN¥",
        "au$ | aud | a$": "A$",
        "ca$ | cad | c$ | canadian dollar": "CA$",
        "nz$ | nzd": "NZ$",
        "hk$ | hkd": "HK$",
        "sgd | s$": "S$",
        "philippine peso | ₱ | php": "₱",
        "₩ | krw | south korean won": "₩",
        "₽ | rub | russian ruble": "₽",
        "ngn | ₦": "₦",
        "chf": "CHF ",
        "frf": "FF",
        "dm": "DM",
        "isk": "ISK ",
        "sek": "SEK ",
        "nok": "NOK ",
        "dkk": "DKK ",
        "brl | r$": "R$",
        "try | ₺": "₺",
        "ils | nis | ₪": "₪",
        "bitcoin": "₿",
    }.items()
} | {
    "currency | money": renderers.currency,
    "£sd": renderers.pounds_shillings_pence,
    "inrconvert | inrconvert2": renderers.rupees,
}

DATES = {
    "circa | ca | ca. | c. | circa2": renderers.dated("c. "),
    "floruit | fl. | fl": renderers.dated("fl. "),
    "reign | r.": renderers.dated("r. "),
    "b. | born": renderers.dated("b. "),
    "d. | died": renderers.dated("d. "),
    "marriage": renderers.marriage,
    "as of | asof | as at": as_of,
    "start date | end date | birth date | death date | birth date and age | birth date and age2 | "
    "bda | dob | death date and age | dda | start date and age | start date and years ago | "
    "film date | release date | release date and age | birth year | death year | start and end dates | "
    "dts | date table sorting | launch date": year_first,
    "birth year and age | death year and age | birth-date | birth-date and age | death-date | "
    "death-date and age | start-date | end-date": shown(1),
    "date": formatted,
    "oldstyledate | old style date": old_style,
    "oldstyledatedy | old style date dy": old_style_two_years,
    "age | age in years | years between | age in years nts | age at date": years_between,
    "bce": renderers.with_suffix("BCE"),
    "bc": renderers.with_suffix("BC"),
    "ce": renderers.with_suffix("CE"),
    "ad": renderers.with_prefix("AD"),
    "currentyear | currentmonthname | currentday | today | date now": drop,
}

LANGUAGES = {
    "lang | langwithname": shown(2, "text"),
    "transliteration | translit | transl | tlit | xlit": renderers.last_unnamed,
    "langx | lang-x": renderers.language_and_text,
    "nihongo | nihongo krt": east_asian.nihongo,
    "nihongo2 | jap": shown(1),
    "nihongo3": east_asian.nihongo3,
    "nihongo foot | nihongo4": shown(1, 3),
    "nihongo core": east_asian.nihongo,
    "korean | ko-hhrm": east_asian.korean,
    "zh | zh-full | chinese | lang-zh": east_asian.chinese,
    "zh-s | zh-t | zh-p | zhi | zh-tw | linkchinese": shown(1),
    "ipa | ipa2": renderers.ipa,
    "ipac-en": renderers.ipa_english,
    "ipa notice | ipa symbol | ipalink | ipa link": shown(1),
    "ipaslink | ipa slink": wrapped("/", 1, "/"),
    "ipablink | ipa blink": wrapped("[", 1, "]"),
    "ipaalink | ipa alink | ipaplink": wrapped("⟨", 1, "⟩"),
    "respell | pronunciation respelling | usdict": joined("-"),
    "audio | audio-nohelp | speaker link": shown(2),
    "audio-ipa | pronunciation | pronounced | pronunc": shown(2, 1),
    "interlanguage link | ill | ill-wd | ill2 | iill | link-interwiki | interlanguage link multi | "
    "interlanguage link forced | red wikidata link | illm": shown("lt", "display", 1, "en"),
    "ill-wd2": shown(1),
    "verse translation": joined(" — ", 1, 2),
}

QUOTES = {
    "quote | blockquote | cquote | quotation | bquote | centered pull quote | block quote | "
    "poemquote | poem quote | long quote | epigraph | lquote | imdb quote | quote without source | "
    "centered quote": renderers.block_quote,
    '" | quoted | q | inline quote | double quote': wrapped('"', 1, '"'),
    '-" | trim quote': shown(1),
    "tquote": shown(1),
    "rquote | quote box | quote box2 | quote box4 | pull quote | pullquote | quote frame | cquote2": drop,
}

NAMES = {
    "sortname | sort name": joined(" ", 1, 2),
    "flag | flagcountry | flagu | flaglink | flag+link | flag country | flagg | flag2 | flagright | "
    "flagcu | flagc | flagathlete | flagioc2team | country": renderers.flagged,
    "flagmedalist": shown(1),
    "ship": renderers.ship,
    "sclass | sclass2 | sclass- | ship class": renderers.ship_class,
    "nee | née | born name": wrapped("née ", 1),
    "né": wrapped("né ", 1),
    "post-nominals | postnominals": joined(" "),
    "bibleverse | bible verse | bibleref | bibleref2 | biblesource | bibleverse-nb | bv | "
    "sourcebible": joined(" ", 1, 2, 3),
    "quran-usc | qref | cite quran ref": wrapped("Quran ", 1),
    "slink | section link": joined(" § ", 1, 2),
    "wp | w | wikilink | link | internal link | pagelink": shown(2, 1),
    "wikt | wiktionary-inline | wikt-link | wiktionary inline": shown(2, 1),
    "url | official url | URL2": shown(2),
    "format link | slinks": shown(1),
    "taxon | species | taxonlink | italic taxon": shown(1),
    "au": shown(1),
    "mlbyear | baseball year | by | nfly | nfl year | nbay | nhly | scfy | ffly | afl year": shown(1),
    "cfb link | ncaa football link": shown("title"),
    "station | stnlnk | stn | rws | railway station link": renderers.station,
    "lnl | line link": shown(2, 1),
    "jct | road": renderers.road,
}

# Lists inside one paragraph or cell.
LISTS = {
    "hlist | flatlist | flat list | plainlist | plain list | ubl | ubil | unbulleted list | "
    "unbulleted indent list | bulleted list | ordered list | horizontal list | "
    "comma separated entries | csv | cslist | comma separated | enum | and list | pagelist": list_of(),
    "and | or | pluralize from text": joined(" and "),
    "plural": renderers.plural,
}

# Prefixes of ships: {{HMS|Victory|1765}} is "HMS Victory".
SHIPS = {
    prefix.lower(): renderers.ship_of(prefix)
    for prefix in (
        "HMS USS SS MS MV RMS SMS HMAS HMCS HMNZS USNS USCGC USAT USAHS HMT HMY HSwMS HDMS HNoMS PNS RFA "
        "RV MT MY PS TSS TS SMU GS ROKS JS JDS RCS ARA BAP HNLMS HMSAS FS ORP TCG CSS USRC USC&GS RRS"
    ).split()
}

ENGLISH: dict[str, Renderer] = {}
for _rows in (STYLED, SIGNS, NUMBERS, MONEY, DATES, LANGUAGES, QUOTES, NAMES, LISTS, SHIPS):
    ENGLISH |= table(_rows, ENGLISH)
