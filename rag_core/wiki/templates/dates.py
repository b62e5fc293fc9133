"""Dates from their parts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_core.wiki.templates.arguments import Arguments

_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "sv": "januari februari mars april maj juni juli augusti september oktober november december",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września "
    "października listopada grudnia",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "uk": "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
}
MONTHS = {lang: names.split() for lang, names in _MONTHS.items()}


def month_name(month: str, lang: str) -> str:
    """ "5" or "05" → "May"; a name stays."""
    number = int(month) if month.isdecimal() and len(month) <= 2 else 0
    names = MONTHS.get(lang, MONTHS["en"])
    return names[number - 1] if 1 <= number <= 12 else month


def format_date(year: str, month: str, day: str, lang: str, month_first: bool = False) -> str:
    """The date as the language writes it, with whatever parts are there."""
    day = day.lstrip("0") if day.isdecimal() else day
    month_first = month_first and lang == "en"
    month = month_name(month, lang)
    if lang in ("ja", "zh"):
        return "".join(part + mark for part, mark in zip((year, month, day), "年月日") if part)
    if lang == "de" and day.isdecimal():
        day += "."
    if month_first and month and day:
        return f"{month} {day}, {year}" if year else f"{month} {day}"
    link = " de " if lang in ("es", "pt") else " "
    return link.join(filter(None, (day, month, year)))


def year_first(arguments: Arguments) -> str:
    """{{birth date|1931|5|4}} → "May 4, 1931"; with `df=y` "4 May 1931"."""
    year, month, day = (arguments[i] for i in (1, 2, 3))
    if iso := _ISO_DATE.fullmatch(year):
        year, month, day = iso.groups()
    if not year.lstrip("-").isdecimal():  # already written out: {{birth-date|4 May 1931}}
        return year
    return format_date(year, month, day, arguments.lang, month_first=arguments["df"][:1].lower() != "y")


def day_first(arguments: Arguments) -> str:
    """{{date|4|mai|1931}}: day, month, year, and the odd weekday or empty field between them."""
    parts = [part for part in arguments.unnamed()[:4] if part]
    if len(parts) == 1 and (iso := _ISO_DATE.fullmatch(parts[0])):
        return format_date(iso[1], iso[2], iso[3], arguments.lang)
    if len(parts) >= 2 and parts[0][:1].isdigit() and len(parts[0]) == 4 and parts[1].isdecimal():
        return format_date(parts[0], parts[1], parts[2] if len(parts) > 2 else "", arguments.lang)
    if parts and not parts[0][:1].isdigit() and len(parts) == 4:
        return f"{parts[0]} {_spoken(parts[1:], arguments.lang)}"
    return _spoken(parts, arguments.lang)


_ISO_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")


def _spoken(parts: Sequence[str], lang: str) -> str:
    if len(parts) == 3:
        return format_date(parts[2], parts[1], parts[0], lang)
    return " ".join(parts)


def as_of(arguments: Arguments) -> str:
    """{{as of|2010|5|lc=y}} → "as of May 2010"; `alt` replaces everything, `since` the words."""
    if arguments["alt"]:
        return arguments["alt"]
    words = "Since" if "since" in arguments else "As of"
    if arguments["lc"] or arguments["post"] == "lc":
        words = words.lower()
    date = format_date(arguments[1], arguments[2], arguments[3], "en", month_first=arguments["df"] == "us")
    return f"{words} {date}{arguments['post']}" if date else ""


def years_between(arguments: Arguments) -> str:
    """{{age|1900|5|4|1980|2|1}}: only when both dates are given; today's date is not the page's."""
    values = [int(value) if value.isdecimal() and len(value) < 6 else 0 for value in arguments.unnamed()]
    if len(values) < 6:
        return ""
    born, died = tuple(values[:3]), tuple(values[3:6])
    return str(died[0] - born[0] - (died[1:] < born[1:]))


def old_style(arguments: Arguments) -> str:
    """{{OldStyleDate|14 May|1907|1 May}} → "14 May [O.S. 1 May] 1907"."""
    date, year, old = arguments[1], arguments[2], arguments[3]
    return " ".join(filter(None, (date, f"[O.S. {old}]" if old else "", year)))
