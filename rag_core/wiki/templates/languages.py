"""Templates named after languages: {{lang-fr}}, {{IPA-fr}}, German {{frS}}, Polish {{ang.}}."""

from __future__ import annotations

import re

from rag_core.wiki.templates.arguments import Arguments
from rag_core.wiki.templates.building import Renderer, shown

_NAMES = """
af Afrikaans, ang Old English, ar Arabic, arc Aramaic, az Azerbaijani, be Belarusian, ber Berber,
bg Bulgarian, bn Bengali, bo Tibetan, br Breton, bs Bosnian, ca Catalan, cop Coptic, cs Czech, cy Welsh,
da Danish, de German, el Greek, en English, eo Esperanto, es Spanish, et Estonian, eu Basque,
fa Persian, fi Finnish, fr French, fro Old French, fy West Frisian, ga Irish, gd Scottish Gaelic,
gl Galician, gmh Middle High German, goh Old High German, got Gothic, grc Ancient Greek,
gsw Swiss German, gu Gujarati, gv Manx, ha Hausa, haw Hawaiian, he Hebrew, hi Hindi, hr Croatian,
hu Hungarian, hy Armenian, id Indonesian, is Icelandic, it Italian, ja Japanese, jv Javanese,
ka Georgian, kk Kazakh, km Khmer, kn Kannada, ko Korean, ku Kurdish, kw Cornish, ky Kyrgyz, la Latin,
lb Luxembourgish, lo Lao, lt Lithuanian, lv Latvian, mi Māori, mk Macedonian, ml Malayalam,
mn Mongolian, mr Marathi, ms Malay, mt Maltese, my Burmese, nah Nahuatl, nds Low German, ne Nepali,
nl Dutch, nn Norwegian Nynorsk, no Norwegian, nb Norwegian, non Old Norse, oc Occitan, or Odia,
ota Ottoman Turkish, pa Punjabi, pi Pali, pl Polish, ps Pashto, pt Portuguese, qu Quechua, ro Romanian,
ru Russian, sa Sanskrit, sco Scots, sd Sindhi, se Northern Sami, sh Serbo-Croatian, si Sinhala,
sk Slovak, sl Slovene, sq Albanian, sr Serbian, sv Swedish, sw Swahili, syr Syriac, ta Tamil, te Telugu,
tg Tajik, th Thai, tl Tagalog, tr Turkish, tt Tatar, ug Uyghur, uk Ukrainian, ur Urdu, uz Uzbek,
vi Vietnamese, yi Yiddish, yo Yoruba, zh Chinese, zu Zulu
"""
LANGUAGE_NAMES = dict(entry.strip().split(" ", 1) for entry in _NAMES.replace("\n", " ").split(","))

_LANG = re.compile(r"lang-([a-z]{2,3})((?:-[a-z0-9]+)*)|ipa-([a-z]{2,3})((?:-[a-z0-9]+)*)")
_GERMAN = re.compile(r"([a-z]{2,3})s")


def language_name(code: str) -> str:
    """The English name of a language code, "" when it is not among the common ones."""
    return LANGUAGE_NAMES.get(code.lower().partition("-")[0], "")


def language_template(name: str, lang: str) -> Renderer | None:
    """The renderer of a template that is named after a language, if `name` is such."""
    match = _LANG.fullmatch(name)
    if match:
        text_code, _, sound_code, _ = match.groups()
        return _IPA if sound_code else _labelled(LANGUAGE_NAMES.get(text_code, ""))
    if lang == "de" and (match := _GERMAN.fullmatch(name)) and match[1] in LANGUAGE_NAMES:
        return shown(1)
    return None


def _labelled(label: str) -> Renderer:
    def render(arguments: Arguments) -> str:
        text = arguments.first(1, "text")
        glosses = (arguments.first(2, "translit"), arguments.first(3, "lit", "translation"))
        text = ", ".join(filter(None, (text, *glosses)))
        return (
            f"{label}: {text}"
            if label and text and arguments.lang == "en" and not arguments["label"]
            else text
        )

    return render


def _IPA(arguments: Arguments) -> str:
    sound = arguments[1]
    return sound if not sound or sound[0] in "[/" else f"[{sound}]"
