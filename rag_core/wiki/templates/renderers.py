"""Renderers that are more than a choice of arguments; `units`, `dates` and `east_asian` hold others."""

from __future__ import annotations

import re

from rag_core.wiki.marks import BREAK
from rag_core.wiki.templates.arguments import Arguments
from rag_core.wiki.templates.building import Renderer
from rag_core.wiki.templates.languages import language_name
from rag_core.wiki.templates.numbers import SUPERSCRIPTS, group_digits, in_words, ordinal, roman


def ruby(arguments: Arguments) -> str:
    return f"{arguments[1]} ({arguments[2]})" if arguments[2] else arguments[1]


def sic(arguments: Arguments) -> str:
    """{{sic|teh}} → "teh [sic]"; `hide=y` shows the words alone."""
    words = "".join(value for value in arguments.unnamed() if value not in ("?", "!"))
    if arguments["hide"][:1].lower() == "y":
        return words
    return f"{words} [sic]".strip()


def music(arguments: Arguments) -> str:
    signs = {
        "flat": "♭",
        "b": "♭",
        "sharp": "♯",
        "#": "♯",
        "natural": "♮",
        "doublesharp": "𝄪",
        "doubleflat": "𝄫",
    }
    return signs.get(arguments[1].lower(), arguments[2] or arguments[1])


def fraction(arguments: Arguments) -> str:
    """{{frac|1|2}} → 1/2; {{frac|3|1|2}} → 3 1/2; {{frac|2}} → 1/2. Apart from a digit before it."""
    parts = arguments.unnamed()
    if len(parts) >= 3:
        return f"{parts[0]} {parts[1]}/{parts[2]}"
    if len(parts) == 2:
        return f"{BREAK}{parts[0]}/{parts[1]}"
    return f"{BREAK}1/{parts[0]}" if parts and parts[0] else ""


def value(arguments: Arguments) -> str:
    """{{val|6.02|e=23|u=m}} → "6.02 × 10²³ m"; an uncertainty follows "±"."""
    text = group_digits(arguments[1], arguments.lang)
    if arguments[2]:
        text += f" ± {arguments[2].lstrip('+±')}"
    if arguments["e"]:
        text += f" × 10{arguments['e'].translate(SUPERSCRIPTS)}"
    prefix, suffix = arguments.first("p"), arguments.first("s")
    unit = arguments.first("ul", "u")
    text = f"{prefix}{text}{suffix}"
    if arguments.first("upl", "up"):
        unit = f"{unit}/{arguments.first('upl', 'up')}"
    return f"{text}{'' if unit in ('%', '°') else ' '}{unit}".strip()


def power_of_ten(arguments: Arguments) -> str:
    return f" × 10{arguments[1].translate(SUPERSCRIPTS)}" if arguments[1] else ""


def grouped(arguments: Arguments) -> str:
    return group_digits(arguments[1], arguments.lang)


def rounded(arguments: Arguments) -> str:
    number, digits = arguments[1], arguments[2] or "0"
    try:
        return f"{float(number):.{max(0, min(12, int(digits)))}f}"
    except ValueError:
        return number


def ordinal_number(arguments: Arguments) -> str:
    return ordinal(arguments[1])


def number_in_words(arguments: Arguments) -> str:
    """{{spellnum|12}} → "twelve"."""
    return in_words(arguments[1])


def degrees(arguments: Arguments) -> str:
    """{{DMS|12|34|56|N}} → "12°34′56″N"."""
    values = [value for value in arguments.unnamed()[:4] if value]
    numbers = [value for value in values if value[0].isdigit() or value[0] in "-−"]
    text = "".join(number + sign for number, sign in zip(numbers, "°′″"))
    return text + (values[-1] if values and values[-1].isalpha() else "")


def roman_numeral(arguments: Arguments) -> str:
    return roman(arguments[1])


def percentage(arguments: Arguments) -> str:
    """{{percentage|1|3|1}} → "33.3%"."""
    try:
        ratio = 100 * float(arguments[1].replace(",", "")) / float(arguments[2].replace(",", ""))
        digits = int(arguments[3] or 0)
    except (ValueError, ZeroDivisionError):
        return f"{arguments[1]}%" if arguments[1] and not arguments[2] else ""
    return f"{ratio:.{max(0, min(9, digits))}f}%"


def height(arguments: Arguments) -> str:
    """{{height|ft=6|in=1}} → "6 ft 1 in"; {{weight|kg=70}} → "70 kg"."""
    units = (("m", "m"), ("cm", "cm"), ("ft", "ft"), ("in", "in"), ("kg", "kg"), ("st", "st"), ("lb", "lb"))
    return " ".join(f"{arguments[key]} {unit}" for key, unit in units if arguments[key])


def duration(arguments: Arguments) -> str:
    """{{duration|m=3|s=5}} → "3:05"."""
    hours, minutes, seconds = (arguments[key] or arguments[i] for i, key in enumerate("hms", start=1))
    parts = [hours, minutes, seconds] if hours else [minutes or "0", seconds]
    return ":".join([parts[0], *(part.zfill(2) for part in parts[1:])]) if any(parts) else ""


def chemical(arguments: Arguments) -> str:
    """{{chem|H|2|O}} → H2O; {{chem2|H2O}} → H2O."""
    return "".join(part.replace("|", "") for part in arguments.unnamed())


_SIGNS = {
    "USD": "US$", "GBP": "£", "EUR": "€", "JPY": "¥", "INR": "₹", "CNY": "CN¥", "AUD": "A$", "CAD": "CA$",
    "NZD": "NZ$", "KRW": "₩", "RUB": "₽", "BRL": "R$", "ILS": "₪", "TRY": "₺", "PHP": "₱", "NGN": "₦",
}  # fmt: skip


def currency(arguments: Arguments) -> str:
    amount, code = arguments[1], arguments[2].upper() or "USD"
    return f"{_SIGNS[code]}{amount}" if code in _SIGNS else f"{code} {amount}"


def pounds_shillings_pence(arguments: Arguments) -> str:
    units = (("l", "£{}"), ("s", "{}s"), ("d", "{}d"))
    return " ".join(form.format(arguments[key]) for key, form in units if arguments[key])


def rupees(arguments: Arguments) -> str:
    scales = {
        "m": "million",
        "b": "billion",
        "c": "crore",
        "l": "lakh",
        "k": "thousand",
        "t": "trillion",
        "lc": "lakh crore",
    }
    return f"₹{arguments[1]} {scales.get(arguments[2].lower(), '')}".strip()


def dated(prefix: str) -> Renderer:
    """{{circa|1500|1510}} → "c. 1500 – c. 1510"; {{reign|1500|1510}} → "r. 1500–1510"."""

    def render(arguments: Arguments) -> str:
        first, second = arguments[1], arguments[2]
        if not first:
            return prefix.strip()
        if not second:
            return prefix + first
        return f"{prefix}{first} – {prefix}{second}" if prefix == "c. " else f"{prefix}{first}–{second}"

    return render


def marriage(arguments: Arguments) -> str:
    """{{marriage|Ann|1990|2000|end=div}} → "Ann (m. 1990; div. 2000)"."""
    name, since, until = arguments[1], arguments[2], arguments[3]
    how = {"d": "died", "death": "died"}.get(arguments["end"], arguments.first("end", "reason") or "div.")
    facts = "; ".join(filter(None, (f"m. {since}" if since else "", f"{how} {until}" if until else "")))
    return f"{name} ({facts})" if facts else name


def last_unnamed(arguments: Arguments) -> str:
    """{{transl|ar|ALA|text}} and {{transl|ar|text}}: the text comes last."""
    return (arguments.unnamed() or [""])[-1]


def language_and_text(arguments: Arguments) -> str:
    """{{langx|fr|Liberté}} → "French: Liberté"."""
    label = "" if arguments["label"] == "none" else arguments["label"] or language_name(arguments[1])
    text = arguments.first(2, "text")
    extra = ", ".join(
        filter(None, (arguments.first(3, "translit"), arguments.first(4, "lit", "translation")))
    )
    shown = f"{text}, {extra}" if extra else text
    return f"{label}: {shown}" if label and shown and arguments.lang == "en" else shown


def ipa(arguments: Arguments) -> str:
    """{{IPA|/x/}} and {{IPA|fr|x}}: the sound, in brackets when it has none."""
    sound = (
        arguments[2]
        if re.fullmatch(r"[a-z]{2,3}(?:-[\w-]+)?", arguments[1]) and arguments[2]
        else arguments[1]
    )
    return sound if not sound or sound[0] in "[/⟨|" else f"[{sound}]"


_NOT_A_SOUND = {"us", "uk", "uklang", "uslang", "lang", "also", "pron", "ipa", "us also", "uk also"}


def ipa_english(arguments: Arguments) -> str:
    """{{IPAc-en|ˈ|ɒ|r|ɪ|n|dʒ}} → "/ˈɒrɪndʒ/"."""
    sounds = (value for value in arguments.unnamed() if value and value.lower() not in _NOT_A_SOUND)
    text = "".join(
        ", " if sound in (",", "_or_") else " " if sound == "_" else sound
        for sound in sounds
        if not sound.endswith((".ogg", ".wav"))
    )
    return f"/{text}/" if text else ""


def block_quote(arguments: Arguments) -> str:
    """The words, and who said them where."""
    text = arguments.first("text", "quote", "content", 1)
    by = ", ".join(
        filter(
            None,
            (
                arguments.first("author", "sign", "by", 2),
                arguments.first("title", "source", "cite", "work", 3),
            ),
        )
    )
    if not text:
        return ""
    return f"\n{text} — {by}\n" if by else f"\n{text}\n"


def flagged(arguments: Arguments) -> str:
    return arguments.first("name", 1)


def ship(arguments: Arguments) -> str:
    """{{ship|HMS|Victory|1765}} → "HMS Victory"."""
    return " ".join(filter(None, (arguments[1], arguments[2])))


def ship_of(prefix: str) -> Renderer:
    return lambda arguments: f"{prefix} {arguments[1]}" if arguments[1] else prefix


def ship_class(arguments: Arguments) -> str:
    """{{sclass|Iowa|battleship}} → "Iowa-class battleship"."""
    return f"{arguments[1]}-class {arguments[2]}".strip()


def station(arguments: Arguments) -> str:
    return arguments.first("name", 1)


def road(arguments: Arguments) -> str:
    """{{jct|state=CA|I|5}} → "I-5"."""
    parts = arguments.unnamed()
    return " / ".join("-".join(filter(None, parts[i : i + 2])) for i in range(0, len(parts), 2))


def plural(arguments: Arguments) -> str:
    """{{plural|3|goose|geese}} → "3 geese"."""
    n, one, many = arguments[1], arguments[2], arguments[3] or f"{arguments[2]}s"
    return f"{n} {one if n == '1' else many}"


def with_suffix(suffix: str) -> Renderer:
    """{{av JC|44}} → "44 av. J.-C.", and the words alone without a number."""
    return lambda arguments: f"{arguments[1]} {suffix}".strip()


def with_prefix(prefix: str) -> Renderer:
    """{{AD|79}} → "AD 79", and the letters alone without a number."""
    return lambda arguments: f"{prefix} {arguments[1]}".strip()


def french_century(era: str) -> Renderer:
    """{{s|XIX|e}} → "XIXe siècle"; {{-s|II|e}} → "IIe siècle av. J.-C."."""

    def render(arguments: Arguments) -> str:
        numeral = arguments[1]
        suffix = arguments[2] or ("er" if numeral == "I" else "e")
        after = " ".join(filter(None, arguments.unnamed(3)))
        return f"{numeral}{suffix} siècle{era} {after}".rstrip() if numeral else ""

    return render


def french_centuries(arguments: Arguments) -> str:
    """{{sp|XIX|e|au|XX|e}} → "XIXe au XXe siècle"."""
    first, first_suffix, word, second, second_suffix, after = (arguments[i] for i in range(1, 7))
    return f"{first}{first_suffix} {word} {second}{second_suffix} siècle {after}".rstrip()


def romance_century(word: str) -> Renderer:
    """{{siglo|XIX||s}} → "siglo XIX"."""

    def render(arguments: Arguments) -> str:
        numeral = arguments[1].upper()
        era = {"a": " a. C.", "d": " d. C.", "ac": " a. C.", "dc": " d. C."}.get(arguments[2].lower(), "")
        return f"{word}{numeral}{era}" if numeral else ""

    return render


def italian_quantity(arguments: Arguments) -> str:
    """{{M|5|-|km}} and {{M|5|u=km}} → "5 km"."""
    number = group_digits(arguments[1], arguments.lang)
    error, *units = [*(value for value in arguments.unnamed(2) if value != "-"), ""]
    if not error[:1].isdigit():
        error, units = "", [error, *units]
    unit = arguments.first("u", "ul") or "".join(units)
    return " ".join(filter(None, (number, f"± {error}" if error else "", unit)))


def with_mark(mark: str) -> Renderer:
    """{{by|2005}} and {{by|2005年}} → "2005年"."""
    return lambda arguments: arguments[1].removesuffix(mark) + mark if arguments[1] else ""


def japanese_reading(arguments: Arguments) -> str:
    return f"{arguments[1]}({arguments[2]})" if arguments[2] else arguments[1]


def chinese_life(arguments: Arguments) -> str:
    """{{bd|1900年|1月2日|1980年|3月4日}} → "1900年1月2日-1980年3月4日"."""
    born, died = arguments[1] + arguments[2], arguments[3] + arguments[4]
    return f"{born}－{died}" if born or died else ""


def labelled_japanese(arguments: Arguments) -> str:
    return ", ".join(filter(None, (arguments.first("j", "kanji"), arguments["hg"], arguments["rm"])))
