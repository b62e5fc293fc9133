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
    ("A.<table><tr><td>x<table><tr><td>y</td></tr></table>z</td></tr></table>B.", "A.B."),
    ("{| a\n| b\n|}\nAfter.", "After."),
    ("{{Infobox\n|a=\n{|\n| b\n|}}}\nAfter.", "After."),
    ("Set {|x|} and {{{1|default}}} stay.", "Set {|x|} and default stay."),
]
REFERENCES = [
    ("Oak<ref name=a/> and elm<ref>Book, p. 2</ref> grow.", "Oak and elm grow."),
    ("Oak<ref name=\"a\" /><REF>y</REF > elm<ref group='n'>z</ref>.<references />", "Oak elm."),
    ("Oak<ref name=a>Book <ref name=b/>p. 2</ref> elm.", "Oak elm."),
    ("Oak<ref>{{cite|a=[[b]]</ref> after.", "Oak after."),
    ("Oak<ref>open. Elm<ref>Book</ref> ash.\n\nNext.", "Oak ash. Next."),
    ("Oak<ref>never closed.\n\nNext.", "Oaknever closed. Next."),
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
    ("__NOTOC__\nText __FORCETOC__ and __init__ __FOO_BAR__", "Text and __init__"),
    ("== A ==\n\n=== B [[c]] === \nText.\n==D==", "Text."),
    ("a = b == c\n== Broken\nd", "a = b == c == Broken d"),
    ("Intro.\n* one\n# two\n; term : def\n: indented\n----\nEnd.", "Intro. End."),
]
TRACES = [
    ("Oak ({{lang|el}}; {{unknown|x}}) grows.", "Oak grows."),
    ("Elm ({{audio|x.ogg|}}, born 1900) too.", "Elm (born 1900) too."),
    ("Ash (; {{x}}), fir ((,)) and yew (tree, {{y}}).", "Ash, fir and yew (tree)."),
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
        ("sr", "-{sr-ec:ћир; sr-el:lat}- -{Text}-", "ћир Text"),
        ("en", "-{not a variant}-", "-{not a variant}-"),
        ("de", "__KEIN_INHALTSVERZEICHNIS__Text __ABSCHNITTE_NICHT_BEARBEITEN__", "Text"),
        ("ja", "__目次非表示__本文", "本文"),
        ("sv", "Text.\n[[Kategori:Träd]]\n[[Fil:x.jpg|miniatyr|y]]", "Text."),
    ],
)
def test_other_languages(lang, wikitext, text):
    assert clean(wikitext, lang) == text
