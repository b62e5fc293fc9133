"""What `clean_wikitext` keeps and what it drops, by kind of markup."""

import pytest

from rag_core.wiki import clean_wikitext


def clean(wikitext, lang="en", **options):
    return " ".join(clean_wikitext(wikitext, lang, **options).split())


FILES = [
    ("Look [[File:Oak tree.jpg|180px]] here.", "Look here."),
    ("[[Image:Oak.png|thumb|left|alt=An oak|An [[oak]] in a [[field|large field]].]]Oaks.", "Oaks."),
    ("Look [[File:O.jpg|A [[big|Big]] oak, {{convert|5|m}}<ref>x</ref> [http://a b]]] here.", "Look here."),
    ("a [[file : O.jpg | x]] b [[IMAGE:o.png]] c [[Image_:x.png]]", "a b c"),
    ("[[:File:Oak.jpg]] and [[:Category:Trees|trees]]", "File:Oak.jpg and trees"),
    ("[[Media:Oak.ogg|listen]] here", "listen here"),
    ("[[File:A.jpg|thumb|open caption [[link]] text.\n\nNext.", "open caption link text. Next."),
    ("[[Archivo:x.jpg|miniaturadeimagen|izquierda|y]]Texto.", "Texto."),
    ("[[Файл:x.jpg|мини|y [[z]]]]Текст. [[Категория:Б]]", "Текст."),
    ("[[ファイル:x.jpg|サムネイル]]本文。", "本文。"),
    ("<gallery>\nFile:A.jpg|caption\n</gallery>After.", "After."),
    ("<gallery mode=packed>\nA.jpg|caption [[x]]\n</gallery >After.", "After."),
]
LINKS = [
    ("[[bus]]es and [[New York City|New York]]'s parks", "buses and New York's parks"),
    ("[[Tree|Kinds of [[oak|''oak'']]]] grow.", "Kinds of oak grow."),
    ("a [[b|c [d] e]] f [[g|[h]]] i", "a c [d] e f [h] i"),
    ("[[Star Wars: Episode IV]], [[Oak (tree)|]], [[#History|see]]", "Star Wars: Episode IV, Oak, see"),
    ("[[de:Eiche]] [[zh-min-nan:Chhiū]] x [[simple:Oak]] [[fr:Chêne|chêne]]", "x"),
    ("[[:de:Eiche|Eiche]] and [[wikt:oak]] and [[s:Oak|text]]", "Eiche and oak and text"),
    ("x [[Category:A]][[category: B | *]][[ Category : C ]] y", "x y"),
    ("see [[open and ]] stray [[here", "see open and stray here"),
    ("[[a|b]]]] c", "b c"),
    ("see [[target|the rest of it.\nNext", "see the rest of it. Next"),
]
EXTERNAL_LINKS = [
    ("See [Http://example.org/x the site] now.", "See the site now."),
    ("a [https://x.org] b [//x.org y] c [mailto:a@b.c mail] d", "a b y c mail d"),
    ("[http://x.org ''it'' [[wl|w]]] and [not a link]", "it w and [not a link]"),
    ("[http://x.org|the site] e", "the site e"),
    ("[http://x.org a [b]] c <br\nd", "a [b] c d"),
    ("[http://x.org [a] b] c [http://x.org d [//y.org e] f] g", "[a] b c d e f g"),
    ("[http://x.org {{lang|fr|[a]}} b] c [http://x.org [d e", "[a] b c [http://x.org [d e"),
    ("[http://x.org/spec <nowiki>[AB-1]: Rules</nowiki>] f", "[AB-1]: Rules f"),
]
QUOTES = [
    ("The ''Odyssey'''s hero sails.", "The Odyssey's hero sails."),
    ("'''Bold''' ''italic'' '''''both''''' it's 'quoted'", "Bold italic both it's 'quoted'"),
    ("He said ''''yes''' twice.", "He said 'yes twice."),
    ("L'''amour'' dure", "L'amour dure"),
    ("''''''six''''''", "'six'"),
    ("''a\n''b'' c", "a b c"),
]
TABLES = [
    ('Before.\n{| class="wikitable"\n|-\n! a !! b\n|-\n| {{flag|X}} || [[y]]\n|}\nAfter.', "Before. After."),
    ('Before.\n::{| class="x"\n| y\n|}\nAfter.', "Before. After."),
    ("Before.\n{|\n|\n{|\n| inner\n|}\n|}\nAfter.", "Before. After."),
    ("Before.\n{|\n| {{flag|X}\n|-\n| b\n|}\nAfter.", "Before. After."),
    ("Before.\n{|\n| {{Infobox\n| a = {{b}}\n}}\n|}\nAfter.", "Before. After."),
    ("{{Infobox x\n| a =\n{|\n| b\n|}\n}}\nAfter.", "After."),
    ("Before.\n{{clear}}{|\n| a\n|}{|\n| b\n|}\nAfter.", "Before. After."),
    ('Before.\n{| class="x"\n| a\n! b\nAfter, never closed.', "Before. After, never closed."),
    ("A.<table><tr><td>x<table><tr><td>y</td></tr></table>z</td></tr></table>B.", "A. B."),
    ("{| a\n| b\n|}\nAfter.", "After."),
    ("{{Infobox\n|a=\n{|\n| b\n|}}}\nAfter.", "After."),
    ("Set {|x|} and {{{1|default}}} stay.", "Set {|x|} and default stay."),
    ('Text {| class="x"\n| y\n|} tail.\nAfter.', "Text tail. After."),
    ("Text {|\n| y {| z\n|}\nAfter {| b.", "Text After {| b."),
    ("{{Infobox\n|a= {| border=1\n| b\n|}\n}}\nAfter.", "After."),
    ("Before.\n|- style=x\n|} tail.\nAfter.", "Before. tail. After."),
]
REFERENCES = [
    ("Oak<ref name=a/> and elm<ref>Book, p. 2</ref> grow.", "Oak and elm grow."),
    ("Oak<ref name=\"a\" /><REF>y</REF > elm<ref group='n'>z</ref>.<references />", "Oak elm."),
    ("Oak<ref name=a>Book <ref name=b/>p. 2</ref> elm.", "Oak elm."),
    ("Oak<ref>{{cite|a=[[b]]</ref> after.", "Oak after."),
    ("Oak<ref>open. Elm<ref>Book</ref> ash.\n\nNext.", "Oak ash. Next."),
    ("Oak<ref>never closed.\n\nNext.", "Oak never closed. Next."),
]
TAGS = [
    ("Oak</ref> and</small> elm</div> grow.", "Oak and elm grow."),
    ("Red (1970) <small>\nNext paragraph.", "Red (1970) Next paragraph."),
    ("one<br>two</br>three<br />four<BR clear=all>five", "one two three four five"),
    ("H<sub>2</sub>O <u>u</u> <span style='x'>sp</span> <font color=red>f</font>", "H2O u sp f"),
    ("a<!-- b {{ --> c<!-- d", "a c"),
    ("<nowiki>[[not]] ''a'' {{link}}</nowiki> <nowiki/>x", "[[not]] ''a'' {{link}} x"),
    ("<nowiki>* a</nowiki> &lt;ref&gt;", "* a <ref>"),
    ("a < b > c, 5<6, <3, List<String> x", "a < b > c, 5<6, <3, List<String> x"),
    ("<custom>k</custom> <x a=1>", "k"),
    ("a<includeonly>b</includeonly><noinclude>c</noinclude>", "ac"),
    ("<syntaxhighlight lang=py>x=1</syntaxhighlight>a<timeline>t</timeline>", "a"),
    ("one</ br>two< br>three<\\br>four<br.>five<br/ >six", "one two three four five six"),
    (
        'Red <small\nNext <span style="x" class=y one <font color=red two</div\nEnd <b',
        "Red Next one two End <b",
    ),
    ("a <2>Head</2><h2>Head</h2>\nb <H3 id=x>Head [[x]]</H3 >c", "a <2>Head</2> b c"),
    ("Intro.<dl><dt>term<dd>meaning</dd></dl>End.", "Intro. End."),
    ("<code>a[i]</code> and <poem>\nline one\nline two\n</poem>", "a[i] and line one line two"),
]
FORMULAS = [
    ("Energy <math>E=mc^2</math> counts.", "Energy E=mc^2 counts."),
    (r"The angle <math>\alpha_{i} \le 90^\circ</math>.", "The angle α_i ≤ 90°."),
    (r"So <math display=block>\frac{\sum_i x}{2}</math> holds.", "So holds."),
]
CHARACTERS = [
    ("AT&amp;T &ndash; 5&nbsp;km &#8364;5 &amp;lt;", "AT&T – 5 km €5 &lt;"),
    ("&#x1D11E; &eacute; &bogus; &copy 5 R&D &#0; &#xD800;", "𝄞 é &bogus; &copy 5 R&D &#0; &#xD800;"),
    ("&#38;amp; &amp;amp;lt;", "&amp; &amp;lt;"),
    ("soft\u00adhyphen, left\u200eto right", "softhyphen, leftto right"),
]
LINES = [
    ("__NOTOC__\nText __FORCETOC__ and __init__ __FOO_BAR__", "Text and __init__ __FOO_BAR__"),
    ("== A ==\n\n=== B [[c]] === \nText.\n==D==", "Text."),
    ("a = b == c\n== Broken\nd", "a = b == c == Broken d"),
    ("Intro.\n* one\n# two\n; term : def\n: indented\n----\nEnd.", "Intro. End."),
]
TRACES = [
    ("Oak ({{lang|el}}; {{unknown|x}}) grows.", "Oak grows."),
    ("Elm ({{audio|x.ogg|}}, born 1900) too.", "Elm (born 1900) too."),
    ("Ash (; {{x}}), fir (({{x}},)) and yew (tree, {{y}}).", "Ash, fir and yew (tree)."),
    ("Fir {{x}}, yew {{y}}.", "Fir, yew."),
    ("Box (<ref>x</ref>) end (''{{z}}'') it.", "Box end it."),
]
BROKEN_TEMPLATES = [
    ("Oak {{clarify|date=May 2020 grows tall.\n\nSecond.", "Oak May 2020 grows tall. Second."),
    ("{{Infobox x\n| a = 1\n| b = [[c]]\n\nAfter.", "After."),
    ("Text }} stray }}} here.", "Text stray here."),
    ("{{Info | a=1}} Oak {{ box :<!-- c --> x | b }} grows.", "Oak grows."),
    ("{{Infobox\n| c = ''[[Probe (ship)|Probe]]'''s\n}}\n''Moon''.", "Moon."),
    ("a {{lang|fr|b {{x}} c {{lang|fr|d}}.", "a b c d."),
    ("Oak {{clarify|date=May 2020} grows {{lang|fr|tall} in {{{x}.", "Oak grows tall in."),
    ("{{Infobox\n| a = {{flag|X}\n| b = c\n}}\nAfter {{a}}.", "After."),
]


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        *FILES, *LINKS, *EXTERNAL_LINKS, *QUOTES, *TABLES, *REFERENCES, *TAGS, *FORMULAS, *CHARACTERS, *LINES,
        *TRACES, *BROKEN_TEMPLATES,
    ],
)  # fmt: skip
def test_kinds_of_markup(wikitext, text):
    assert clean(wikitext) == text


def test_lists_are_kept_without_their_marks():
    wikitext = "Kinds:\n* fish\n** carp\n# one\n; term : def\n* * odd\n<ul><li>li</li></ul>"
    assert clean_wikitext(wikitext, keep_lists=True).split("\n") == [
        "Kinds:", "fish", "carp", "one", "term : def", "odd", "li"
    ]  # fmt: skip


def test_paragraphs_stay_apart():
    assert clean_wikitext("One.\n\n\nTwo.<p>Three.</p>") == "One.\nTwo.\nThree."


@pytest.mark.parametrize(
    ("lang", "wikitext", "text"),
    [
        ("zh", "-{zh-hans:软件; zh-hant:軟體}-很好", "软件很好"),
        ("zh", "-{zh-hant:只}-a-{H|zh:x}-b-{R|raw}-c-{T|zh:t}--{A|zh-cn:d;zh-tw:e}-", "只abrawcd"),
        ("zh", "-{a-{zh-cn:b; zh-tw:c}-d}- -{open", "abd open"),
        ("zh", "-{zh-hans:[[a|b]]; zh-hant:[[c|d]]}- -{A|zh-hans:[[a|e]]; zh-hant:f}-", "b e"),
        ("zh", "-{zh-cn:a&nbsp;b; zh-tw:c}- -{zh-hans:{{lang|en|x;y}}; zh-hant:z}-", "a b x;y"),
        ("zh", "-{zh-hans;zh-hant|文}- -{[[甲|乙]]}- -{D|zh-cn:丙; zh-tw:丁}-", "文 乙 丙"),
        ("sr", "-{sr-Cyrl:ћир; sr-Latn:lat}-", "ћир"),
        ("sr", "-{sr-ec:ћир; sr-el:lat}- -{Text}-", "ћир Text"),
        ("en", "-{not a variant}-", "-{not a variant}-"),
        ("de", "__KEIN_INHALTSVERZEICHNIS__Text __ABSCHNITTE_NICHT_BEARBEITEN__", "Text"),
        ("ja", "__目次非表示__本文", "本文"),
        ("sv", "Text.\n[[Kategori:Träd]]\n[[Fil:x.jpg|miniatyr|y]]", "Text."),
    ],
)
def test_other_languages(lang, wikitext, text):
    assert clean(wikitext, lang) == text


EMPTIED = [
    (
        "f() and <code>g()</code>, <nowiki>h()[]</nowiki>, (,) (;;) x[,] and ({{x}}).",
        "f() and g(), h()[], (,) (;;) x[,] and.",
    ),
    ("Foo (pronounced {{x}}; born 1900) or ({{x}} / {{y}}) it.", "Foo (born 1900) or it."),
    ("A ({{x}} or {{y}}), b (née {{x}}), c (* {{x}}; † {{y}}), d (* 1900; † {{y}}).", "A, b, c, d (* 1900)."),
    ('Said «{{x}}», "{{x}}", “{{y}}” and "no".', 'Said, and "no".'),
    ("He ([[Greek language|Greek]]: ''{{x}}'', born 1900; [[Latin]] {{y}}) is.", "He (born 1900) is."),
    (
        "Oak (/ˈoʊk/ {{x}}; a tree) and (1950?<ref>x</ref>) and (also<ref>y</ref>).",
        "Oak (/ˈoʊk/; a tree) and (1950?) and (also).",
    ),
    ("A ({{x}}[[a|b]]) c, (see {{x}} and b), ({{x}} or {{y}}, listen).", "A (b) c, (see and b), (listen)."),
    ("A (né le {{x}}) « {{y}} » est, ({{x}}؛ {{y}}، b).", "A est, (b)."),
    ("Sum ( ; 1900) of (a warming by CO2,) it.", "Sum (1900) of (a warming by CO2) it."),
    (
        "Oak, {{x}}. Elm; {{x}}! Fir: {{x}}? Yew ({{x}}), {{y}}. Box, {{x}}: a, {{x}}; b.",
        "Oak. Elm! Fir? Yew. Box: a, b.",
    ),
    (
        "A ({{x}}|B) c ({{x}}/foo) d (foo/{{x}}) e ({{x}} | 1900) f ({{x}}/ˈoʊk/).",
        "A (B) c (foo) d (foo) e (1900) f (/ˈoʊk/).",
    ),
    (
        "{{x}}'s book and {{x}}’s, Ann<ref>a</ref>'s, Bob{{x}}'s, '{{x}}' and 'a'.",
        "book and, Ann's, Bob's, and 'a'.",
    ),
]
PARTED = [
    ("plant.[[File:A.jpg|thumb|x]]The", "plant. The"),
    ("plant.<gallery>\nA.jpg\n</gallery>The", "plant. The"),
    ("plant.{{Infobox x|a=b}}The and{{clear}}so", "plant. The and so"),
    ("plant<pre>x y</pre>The", "plant x y The"),
    ('is<math display="block">\\frac{1}{2}</math>where', "is where"),
    ("plant.<ref>x</ref>The tree<ref name=a />, so", "plant. The tree, so"),
    ("a<table><tr><td>x</td></tr></table>b<math>\\frac12</math>c<ref name=x / >d", "a b cd"),
    ("Foo ({{x}})'s", "Foo's"),
    ("soft{{shy}}ware, anti<ref>x</ref>body", "software, antibody"),
    ("One.<ref>open\nTwo.<ref>x</ref> Three.", "One. Two. Three."),
    ("One.<ref>x</ref\n\nTwo. 5 > 3.", "One. Two. 5 > 3."),
    ('A.<ref>{{Cite web|title=First</ref name"n"> waves|url=b}}</ref> B.', "A. B."),
    ("A.<ref>x</ref name=a> B.<ref>y</ref> C.\n\nD.", "A. B. C. D."),
    ("A.<ref>x</ref B.\nC.<ref>y</ref> D.", "A. C. D."),
    ("A<ref>open.", "A open."),
    ('A.<ref name="x" Text.\n\nNext <b>p</b>', "A. Text. Next p"),
    ("5 <a 6\n\nb > c", "5 <a 6 b > c"),
]
NO_LISTS = [
    (
        "{{nowrap|#1}} a\n[[x|#2]] b\n<b>#3</b> c\n<i><b>*4</b></i> d\n[http://x #5] e",
        "#1 a #2 b #3 c *4 d #5 e",
    ),
    ("{{small|\n* a\n* b}}\n<!-- c -->* d\nEnd", "End"),
]
INVISIBLE = [("a\u202ab\u202c c\u2066d\u2069 \u2060e\u061c", "ab cd e"), ("a\u200cb", "a\u200cb")]
SWITCHES = [
    ("__NOTOC__ __FILE__ and __TEST__ __notoc__ __index__ __INDEX__", "__FILE__ and __TEST__ __index__"),
]


@pytest.mark.parametrize(("wikitext", "text"), [*EMPTIED, *PARTED, *NO_LISTS, *INVISIBLE, *SWITCHES])
def test_only_what_was_dropped_is_mended(wikitext, text):
    assert clean(wikitext) == text


def test_full_width_brackets():
    assert (
        clean("中文（{{lang|en|}}、{{x}}）很好（英語：{{y}}，1900年），是（）。", "zh")
        == "中文很好（1900年），是（）。"
    )
    assert (
        clean("東京（{{x}}、とうきょう）は「{{y}}」都。[[ファイル:A.jpg|x]]次", "ja")
        == "東京（とうきょう）は都。次"
    )


def test_the_marks_of_the_passes_are_not_text():
    assert clean("a \x01(\x02) b\x03") == "a () b"


def test_names_of_the_page():
    text = "{{PAGENAME}}, {{FULLPAGENAME}}, {{BASEPAGENAME}}, {{lc:{{PAGENAME}}}}, {{PAGENAME:X}}"
    assert clean(text, title="Oak: A/B") == "Oak: A/B, Oak: A/B, Oak: A/B, oak: a/b, X"
    assert clean("{{PAGENAME}} {{BASEPAGENAME}} {{SUBPAGENAME}}", title="User:A/B", namespace=2) == "A/B A B"
    assert clean("{{SEITENNAME}} ist", "de", title="Eiche") == "Eiche ist"
    assert clean("a {{PAGENAME}} b") == "a b"


@pytest.mark.parametrize(
    ("lang", "wikitext", "text"),
    [
        ("da", "[[Billede:A.jpg|thumb|x]]Træ. [[Kategori:B]]", "Træ."),
        ("bg", "[[Картинка:А|мини|x]]Дърво.", "Дърво."),
        ("nn", "[[Bilete:A.jpg|mini|x]][[Fil:B|x]]Tre.", "Tre."),
        ("ms", "[[Imej:A|x]][[Fail:B|x]]Pokok.", "Pokok."),
        ("sq", "[[Skeda:A|x]][[Figura:B|x]]Dru.", "Dru."),
        ("az", "Ağac. [[Kateqoriya:B]]", "Ağac."),
        ("cy", "Coeden. [[Categori:B]][[Delwedd:A|x]]", "Coeden."),
        ("nb", "[[Bilde:A|x]]Tre.", "Tre."),
        ("de-at", "[[Datei:A|x]]Baum.", "Baum."),
        ("vi", "[[Hình:A|nhỏ|x]]Cây.", "Cây."),
        ("en", "[[Fail: A Story|Fail]], [[Imagine: John Lennon]]", "Fail, Imagine: John Lennon"),
        ("en", "[[Archivo:x.JPG|z]][[Bild:b.svg|x]]Oak.[[Kategorie:B]][[Категория:Б|*]]", "Oak."),
        ("de", "[[File:A|x]][[Image:A|x]][[Category:B]]Eiche.", "Eiche."),
    ],
)  # fmt: skip
def test_prefixes_hold_on_the_wiki_of_their_language(lang, wikitext, text):
    assert clean(wikitext, lang) == text
