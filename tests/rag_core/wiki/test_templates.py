"""What the templates that carry prose show, and that their tables are sound."""

from collections import Counter

import pytest

from rag_core.wiki import clean_wikitext
from rag_core.wiki.templates.building import shown, table
from rag_core.wiki.templates.english import ENGLISH
from rag_core.wiki.templates.expressions import evaluate
from rag_core.wiki.templates.others import BY_LANGUAGE
from rag_core.wiki.templates.silent import is_silent


def clean(wikitext, lang="en"):
    return " ".join(clean_wikitext(wikitext, lang).split())


ENGLISH_CASES = [
    ("{{convert|12|km|mi|sp=us}}", "12 kilometers"),
    ("{{convert|640|mi|km}}", "640 miles"),
    ("{{convert|1|mi}}", "1 mile"),
    ("a {{convert|100|m|ft|adj=on}} tower", "a 100-metre tower"),
    ("{{convert|5|ft|6|in|m|abbr=on}}", "5 ft 6 in"),
    ("{{convert|10|-|12|km|mi}}", "10–12 kilometres"),
    ("{{convert|50|to|60|F|C}}", "50 to 60 °F"),
    ("{{convert|2.5|x|3|m}}", "2.5 × 3 metres"),
    ("{{convert|3+1/2|in}}", "3 1/2 inches"),
    ("{{convert|7|smoot}}", "7 smoot"),
    ("{{cvt|1500|lb}}", "1500 lb"),
    ("{{Template:Convert|5|km}} {{ convert\n|5\n|km\n}}", "5 kilometres 5 kilometres"),
    ("{{nihongo|'''Shogi'''|将棋|shōgi}}", "Shogi (将棋, shōgi)"),
    ("{{sortname|Ada|Byron|nolink=1}}", "Ada Byron"),
    (
        "1952{{spaced ndash}}1960, 1939{{ndash}}45, a{{mdash}}b, 10{{nbsp}}km",
        "1952 – 1960, 1939–45, a—b, 10 km",
    ),
    (
        "{{lang|fr|Liberté}}, {{lang-fr|Liberté}}, {{langx|la|lux|lit=light}}",
        "Liberté, French: Liberté, Latin: lux, light",
    ),
    ("{{lang|fr|un {{lang|de|[[zwei|2]]}} trois}}", "un 2 trois"),
    ("{{transl|ru|ALA|Moskva}}, {{IPAc-en|ˈ|ɒ|r}}, {{IPA-fr|pjɛʁ}}", "Moskva, /ˈɒr/, [pjɛʁ]"),
    ("{{birth date|1931|5|4}}, {{birth date|1931|5|4|df=y}}", "May 4, 1931, 4 May 1931"),
    (
        "{{circa|1500}}, {{c.|1450|1460}}, {{floruit|1200}}, {{reign|1|2}}",
        "c. 1500, c. 1450 – c. 1460, fl. 1200, r. 1–2",
    ),
    ("{{As of|2010|5}}; {{as of|2011|lc=y}}", "As of May 2010; as of 2011"),
    ("{{age|1900|5|4|1980|2|1}} {{age|1900|5|4}}", "79"),
    ("{{OldStyleDate|14 May|1907|1 May}}", "14 May [O.S. 1 May] 1907"),
    ("{{frac|1|2}} {{frac|3|1|2}} {{val|6.02|e=23|ul=mol}} x{{e|6}}", "1/2 3 1/2 6.02 × 10²³ mol x × 10⁶"),
    (
        "{{formatnum:1234567.5}} {{nts|1234567}} {{ordinal|12}} {{ordinal|3}}",
        "1,234,567.5 1,234,567 12th 3rd",
    ),
    (
        "{{US$|5 million}}, {{£|3}}, {{euro|7}}, {{currency|5|EUR}}, {{INRConvert|5|c}}",
        "US$5 million, £3, €7, €5, ₹5 crore",
    ),
    ("{{quote|To be.|Hamlet|Act 3}}", "To be. — Hamlet, Act 3"),
    ("{{blockquote|text=Hi there|author=Me}}", "Hi there — Me"),
    (
        "{{USS|Iowa|BB-61}}, {{ship|HMS|Victory|1765}}, {{sclass|Iowa|battleship}}",
        "USS Iowa, HMS Victory, Iowa-class battleship",
    ),
    (
        "{{flag|France}}{{flagicon|DE}}, {{ill|Foo|de|Bar}}, {{abbr|NATO|x}}, {{nowrap|a b}}",
        "France, Foo, NATO, a b",
    ),
    (
        "{{chem|H|2|O}}, {{percentage|1|3|1}}, {{duration|m=3|s=5}}, {{height|ft=6|in=1}}",
        "H2O, 33.3%, 3:05, 6 ft 1 in",
    ),
    (
        "{{hlist|a|b}}, {{plural|3|goose|geese}}, {{sic|teh}}, {{zh|c=中国|p=Zhōngguó}}",
        "a, b, 3 geese, teh [sic], Chinese: 中国; pinyin: Zhōngguó",
    ),
    ("A{{efn|note}}{{sfn|X|2000}}{{citation needed|date=May 2020}} b{{who}}.", "A b."),
    ("{{#if: x | yes | no }} {{#if: | yes | no }} {{#ifeq:1|1.0|same|other}}", "yes no same"),
    ("{{#switch: b | a = 1 | b | c = 2 | #default = 3}} {{#switch:z|a=1|last}}", "2 last"),
    ("{{#expr: 2*3+1}} {{#expr: 7/2 round 0}} {{#ifexpr: 1 > 2 | a | b}}", "7 4 b"),
    ("{{lc:ABC}} {{ucfirst:abc}} {{padleft:7|3}} {{#invoke:x|y}}{{DEFAULTSORT:Z}}", "abc Abc 007"),
    ("{{IPA link|t}}, {{IPAslink|t}}, {{IPAblink|t}}, {{IPA-all|t}}", "t, /t/, [t], [t]"),
    (
        "{{date|2010-05-04|mdy}}, {{date|4 May 2010|mdy}}, {{date|May 4, 2010|dmy}}",
        "May 4, 2010, May 4, 2010, 4 May 2010",
    ),
    (
        "{{date|3 Mar 2010|mdy}}, {{date|2010-05|dmy}}, {{date|4 May 2010}}, "
        "{{date|2010-05-04|iso}}, {{date|spring 2010|dmy}}",
        "March 3, 2010, May 2010, 4 May 2010, 2010-05-04, spring 2010",
    ),
    (
        "a {{convert|10|ft|m|adj=mid|-long}} boat, {{convert|6|ft|m|adj=mid|tall}} man",
        "a 10-foot-long boat, 6-foot tall man",
    ),
    (
        "{{convert|1.5|e6km}}, {{convert|2|e3acre|adj=on}}, {{convert|3|e9m3|abbr=on}}",
        "1.5 million kilometres, 2-thousand-acre, 3 billion m³",
    ),
    (
        "{{convert|5|adj=pre|estimated|mi|km}}, {{convert|5|long ton}}, {{convert|1|sq mi}}",
        "5 estimated miles, 5 long tons, 1 square mile",
    ),
    (
        "{{CO2}}, {{H2O}}, {{1/2}}, 3{{frac|1|2}} ({{1/2}}), {{dagger}}, {{double-dagger}}, {{spellnum|12}}",
        "CO2, H2O, 1/2, 3 1/2 (1/2), †, ‡, twelve",
    ),
    (
        "{{spellnum|121}}, {{spellnum|-2000000}}, {{numtext|40}}",
        "one hundred twenty-one, minus two million, forty",
    ),
    (
        "5 {{BCE}}, {{BC|5}}, {{AD|79}}, 9 {{CE}}, {{highlight|so|red}}, {{DMS|12|34|56|N}}",
        "5 BCE, 5 BC, AD 79, 9 CE, so, 12°34′56″N",
    ),
    ("{{OldStyleDateDY|1 January|1900|20 December 1899}}", "1 January 1900 [O.S. 20 December 1899]"),
    ("{{vol.|3}}{{snds}}x", "vol. 3 – x"),
    ("a {{=}} b {{!}} c {{(}}d{{)}}", "a = b | c {d}"),
    (
        "The ''Odyssey''{{'}}s hero and ''Aida''{{'s}} end: {{\" '}}{{' \"}}",
        "The Odyssey's hero and Aida's end: \"''\"",
    ),
    (
        "1939{{en-dash}}45 a{{em-dash}}b a{{\\}}b a{{·w}}b 1{{figure dash}}2 a{{nbh}}b",
        "1939–45 a—b a / b a · b 1‒2 a‑b",
    ),
    ("{{convert|1/2|mi}}, {{convert|3/2|mi}}", "1/2 mile, 3/2 miles"),
    (
        "{{#iferror: {{#expr: 1/0}} | e | f }} {{#iferror: {{#expr: 1+1}} | e | f }}",
        "e f",
    ),
]
OTHER_CASES = [
    (
        "fr",
        "{{unité|1500|m}}, {{unité|12|km|2}}, {{nombre|5000|habitants}}",
        "1 500 m, 12 km², 5 000 habitants",
    ),
    (
        "fr",
        "{{date-|4|mai|1931}}, {{s|XIX|e}}, {{sp|XIX|e|au|XX|e}}, {{XXe siècle}}",
        "4 mai 1931, XIXe siècle, XIXe au XXe siècle, XXe siècle",
    ),
    (
        "fr",
        "{{citation|bonjour}} {{1er}} {{lien|Oak|lang=en|texte=chêne}} {{langue|en|oak}}",
        "« bonjour » 1er chêne oak",
    ),
    ("de", "{{EWZ|DE-XX|01234567}} {{Höhe|1234|DE-NN}} {{enS|freedom}} {{Zitat|Ja.}}", "1234 m freedom Ja."),
    ("de", '{{formatnum:1234567}} {{"|Ja}}', "1.234.567 „Ja“"),
    ("de", "hat {{FL|DE-XX|01234567}} km² ({{EWD|DE-XX|0123}}) und {{EWR|DE-XX|0123}}.", "hat km² und."),
    (
        "fr",
        "le {{date|1|janvier|1900}}, le {{date-|1|5}}, le {{1er|mai}}, {{unité|1500 m}}, "
        "{{unité|2.5|millions|d'habitants}}",
        "le 1er janvier 1900, le 1er mai, le 1er mai, 1 500 m, 2,5 millions d'habitants",
    ),
    ("pt", "{{fmtn|1500|m}}", "1.500 m"),
    (
        "es",
        "{{unidad|1500|m}}, {{fecha|4|5|1931}}, {{siglo|XIX||s}}",
        "1.500 m, 4 de mayo de 1931, siglo XIX",
    ),
    ("it", "{{M|1500|-|km}}, {{M|5|u=m}}, {{ta|a b}}", "1.500 km, 5 m, a b"),
    ("pt", "{{dtext|4|5|1931}}, {{séc|XIX}}, {{fmtn|1234567}}", "4 de maio de 1931, século XIX, 1.234.567"),
    (
        "ru",
        "{{дата|4|5|1931}}, {{num|1500|км}}, {{нп3|Дуб|дуб|en|Oak}}, {{lang-en|oak}}",
        "4 мая 1931, 1 500 км, дуб, oak",
    ),
    (
        "ja",
        "{{読み仮名|東京|とうきょう}}、{{仮リンク|樫|en|Oak}}、{{by|2005}}",
        "東京(とうきょう)、樫、2005年",
    ),
    (
        "zh",
        "{{link-en|橡树|Oak}} {{tsl|en|Oak||橡}} {{bd|1900年|1月2日|1980年|3月4日}}",
        "橡树 橡 1900年1月2日－1980年3月4日",
    ),
    ("fr", "{{date|4|mai|1931|en musique}}, {{date|lundi|4|mai|1931}}", "4 mai 1931, lundi 4 mai 1931"),
    (
        "ru",
        "{{OldStyleDate|6|6|1799|26|5}}, {{OldStyleDate|14 мая|1907|1 мая}}",
        "26 мая (6 июня) 1799, 14 мая (1 мая) 1907",
    ),
    ("ru", "{{СС3|26.5.1799}}, {{СС3|25.12.1900}}", "26 мая [6 июня] 1799, 25 декабря 1900 [7 января 1901]"),
    ("ru", "{{СС3|1.5.1907}}", "1 [14] мая 1907"),
    ("de", "{{JULGREGDATUM|22|4|1870|Link=true}}", "10. April jul. / 22. April 1870 greg."),
    (
        "ko",
        "{{llang|fr|Liberté}}, {{출생일과 나이|1980|01|5}}, {{변환|5|km|mi}}{{각주}}",
        "Liberté, 1980년 1월 5일, 5 km",
    ),
    (
        "cs",
        "{{Vjazyce|fr|Liberté}}, {{Datum narození|1980|1|5}}, {{lang|en|oak}}",
        "Liberté, 5. ledna 1980, oak",
    ),
    (
        "tr",
        "{{dil|fr|Liberté}}, {{Doğum tarihi|1980|1|5}}, {{çevir|1500|km|mi}}",
        "Liberté, 5 Ocak 1980, 1.500 km",
    ),
    ("ja", "{{by|2005}}と{{by|2005年}}", "2005年と2005年"),
    ("pl", "{{fakt|tak|data=2020}} {{lang|en|oak}}", "tak oak"),
]


@pytest.mark.parametrize(("wikitext", "text"), ENGLISH_CASES)
def test_english(wikitext, text):
    assert clean(wikitext) == text


@pytest.mark.parametrize(("lang", "wikitext", "text"), OTHER_CASES)
def test_other_languages(lang, wikitext, text):
    assert clean(wikitext, lang) == text


def test_every_renderer_bears_every_number_of_arguments():
    tables = {"en": ENGLISH, **BY_LANGUAGE}
    for lang, names in tables.items():
        for name in names:
            for arguments in ("", "|", "|x", "|1|2|3", "|a|b|c|d|e|f|g", "|1=|2=x|text=", "|-5|to|x|/"):
                text = clean("a {{" + name + arguments + "}} b", lang)
                assert text.startswith("a") and text.endswith("b"), (lang, name, arguments, text)


def test_a_name_stands_once_in_a_table():
    with pytest.raises(ValueError, match="'b' stands twice"):
        table({"a | B": shown(1), "b": shown(2)})


def test_unknown_templates_are_lost_and_counted_silent_ones_are_not():
    lost = Counter()
    assert clean_wikitext("a {{Foo_bar |x}}{{foo:bar}} {{cite web|y}}{{Oak-stub}} b", lost=lost) == "a b"
    assert lost == {"Foo bar": 1, "foo:bar": 1}
    assert is_silent("infobox person") and is_silent("r") and not is_silent("reign")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("-2^2", 4),
        ("7 mod 4", 3),
        ("1 = 1 and 2 > 1", 1),
        ("abs(-3)", 3),
        ("2.5 round 0", 3),
        ("not 0", 1),
        ("1/0", None),
        ("", None),
        ("__import__('os')", None),
        ("(" * 500, None),
    ],
)
def test_expressions(expression, value):
    assert evaluate(expression) == value
