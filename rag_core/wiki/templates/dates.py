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
    "cs": "ledna února března dubna května června července srpna září října listopadu prosince",
    "tr": "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",
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
    if marks := {"ja": "年月日", "zh": "年月日", "ko": "년월일"}.get(lang):
        month = month.lstrip("0")
        separator = " " if lang == "ko" else ""
        return separator.join(part + mark for part, mark in zip((year, month, day), marks) if part)
    month = month_name(month, lang)
    if lang in ("de", "cs") and day.isdecimal():
        day += "."
    if lang == "fr" and day == "1" and month:
        day = "1er"
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
    return _spoken(parts[:3], arguments.lang)  # a fourth: the subject whose calendar is linked


def formatted(arguments: Arguments) -> str:
    """{{date|2010-05-04|mdy}} → "May 4, 2010"; what is no date stays as it is written."""
    date, form = arguments[1], arguments[2].lower()
    if form.isdecimal() or arguments[2][:3].lower() in _MONTH_NUMBERS:  # {{date|4|May|2010}}
        return day_first(arguments)
    if form == "iso" or not (parts := _parse_date(date)):
        return date
    return format_date(*parts, "en", month_first=form == "mdy" or (not form and date[:1].isalpha()))


def _parse_date(text: str) -> tuple[str, str, str] | None:
    """(year, month, day) of a date that is written in English or as numbers."""
    if match := _ISO_DATE.fullmatch(text):
        return match[1], match[2], match[3]
    if match := _ENGLISH_DATE.fullmatch(text):
        day, month, month_2, day_2, year = match.groups()
        number = _MONTH_NUMBERS.get((month or month_2)[:3].lower())
        if number and MONTHS["en"][number - 1].lower().startswith((month or month_2).lower()):
            return year, str(number), day or day_2 or ""
    if match := re.fullmatch(r"(\d{4})-(\d\d)", text):
        return match[1], match[2], ""
    return None


_MONTH_NUMBERS = {name[:3].lower(): i for i, name in enumerate(MONTHS["en"], start=1)}
_ENGLISH_DATE = re.compile(r"(?:(\d{1,2}) +([A-Za-z]+)|([A-Za-z]+)(?: +(\d{1,2}))?),? +(\d{1,4})")


_ISO_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")


def _spoken(parts: Sequence[str], lang: str) -> str:
    if len(parts) == 3:
        return format_date(parts[2], parts[1], parts[0], lang)
    if len(parts) == 2 and len(parts[0]) < 3 and parts[0].isdecimal():
        if parts[1].isalpha() or len(parts[1]) < 3:
            return format_date("", parts[1], parts[0], lang)
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


def julian_to_gregorian(year: int, month: int, day: int) -> tuple[int, int, int]:
    """A date of the Julian calendar in the Gregorian one."""
    return _from_day_number(_day_number(year, month, day, gregorian=False), gregorian=True)


def gregorian_to_julian(year: int, month: int, day: int) -> tuple[int, int, int]:
    """A date of the Gregorian calendar in the Julian one."""
    return _from_day_number(_day_number(year, month, day, gregorian=True), gregorian=False)


def _day_number(year: int, month: int, day: int, gregorian: bool) -> int:
    """Days since 1 March of year 0: February, with its leap day, ends a year."""
    if month < 3:
        year, month = year - 1, month + 12
    days = 365 * year + year // 4 + (153 * (month - 3) + 2) // 5 + day - 1
    return days - year // 100 + year // 400 if gregorian else days - 2


def _from_day_number(days: int, gregorian: bool) -> tuple[int, int, int]:
    year = (days + 400) // 365
    while _day_number(year, 3, 1, gregorian) > days:
        year -= 1
    rest = days - _day_number(year, 3, 1, gregorian)
    month = (5 * rest + 2) // 153
    day = rest - (153 * month + 2) // 5 + 1
    return (year + (month > 9), month + 3 if month < 10 else month - 9, day)


def _whole_date(*parts: str) -> tuple[int, int, int] | None:
    """(year, month, day) from year, number or name of the month, day; None where they are no date."""
    year, month, day = parts
    if not month.isdecimal():
        month = str(
            next((i for names in MONTHS.values() for i, name in enumerate(names, 1) if name == month), 0)
        )
    if not (year.isdecimal() and day.isdecimal() and len(year) < 5 and len(month) < 3 and len(day) < 3):
        return None
    numbers = int(year), int(month), int(day)
    return numbers if 1 <= numbers[1] <= 12 and 1 <= numbers[2] <= 31 else None


def julian_and_gregorian(arguments: Arguments) -> str:
    """{{JULGREGDATUM|22|4|1870}} → "10. April jul. / 22. April 1870 greg."; the date given is Gregorian."""
    day, month, year = (arguments[i] for i in (1, 2, 3))
    new = _whole_date(year, month, day)
    if new is None:
        return format_date(year, month, day, "de")
    old_year, old_month, old_day = gregorian_to_julian(*new)
    old = format_date(str(old_year) if old_year != new[0] else "", str(old_month), str(old_day), "de")
    return f"{old} jul. / {format_date(year, str(new[1]), day, 'de')} greg."


def russian_calendars(arguments: Arguments) -> str:
    """{{СС3|26.5.1799}}, a Julian date → "26 мая [6 июня] 1799"."""
    day, _, rest = arguments[1].partition(".")
    month, _, year = rest.partition(".")
    old = _whole_date(year.strip(), month.strip(), day.strip())
    if old is None:
        return arguments[1]
    new = julian_to_gregorian(*old)
    (year, month, day), (new_year, new_month, new_day) = map(str, old), map(str, new)
    if year != new_year:
        return f"{format_date(year, month, day, 'ru')} [{format_date(new_year, new_month, new_day, 'ru')}]"
    if month != new_month:
        return f"{format_date('', month, day, 'ru')} [{format_date('', new_month, new_day, 'ru')}] {year}"
    return f"{day} [{new_day}] {format_date(year, month, '', 'ru')}"


def old_style_russian(arguments: Arguments) -> str:
    """{{OldStyleDate|6|6|1799|26|5}} → "26 мая (6 июня) 1799"; in words, "14 мая (1 мая) 1907"."""
    values = [arguments[i] for i in range(1, 6)]
    if values[1].isdecimal() and len(values[1]) < 3:
        day, month, year, old_day, old_month = values
        new = format_date("", month, day, "ru")
        old = format_date("", old_month or month, old_day, "ru") if old_day else ""
        return " ".join(filter(None, (old, f"({new})" if old else new, year)))
    date, year, old = values[:3]
    return " ".join(filter(None, (date, f"({old})" if old else "", year)))


def old_style(arguments: Arguments) -> str:
    """{{OldStyleDate|14 May|1907|1 May}} → "14 May [O.S. 1 May] 1907"."""
    date, year, old = arguments[1], arguments[2], arguments[3]
    return " ".join(filter(None, (date, f"[O.S. {old}]" if old else "", year)))


def old_style_two_years(arguments: Arguments) -> str:
    """{{OldStyleDateDY|1 January|1900|20 December 1899}} → "1 January 1900 [O.S. 20 December 1899]"."""
    new = " ".join(filter(None, (arguments[1], arguments[2])))
    return f"{new} [O.S. {arguments[3]}]" if arguments[3] else new
