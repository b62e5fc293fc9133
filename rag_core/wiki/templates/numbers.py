"""Numbers as a language writes them."""

from __future__ import annotations

import re

# (thousands separator, decimal mark); every other language: as in English.
_SEPARATORS = {
    **dict.fromkeys(
        ("de", "es", "it", "nl", "pt", "da", "id", "tr", "el", "ro", "vi", "sl", "hr", "ca"), (".", ",")
    ),
    **dict.fromkeys(
        ("fr", "ru", "uk", "pl", "sv", "cs", "fi", "no", "nb", "hu", "bg", "sk", "be"), (" ", ",")
    ),
}
_NUMBER = re.compile(r"(?<![\d.,])\d{4,30}(?!\d)")


def group_digits(text: str, lang: str) -> str:
    """Thousands separated in every plain number of a text: 1500 → 1,500 (en), 1 500 (fr), 1.500 (de)."""
    thousands, decimal = _SEPARATORS.get(lang, (",", "."))
    if decimal == "," and re.fullmatch(r"[-−+]?\d+\.\d+", text):
        text = text.replace(".", ",")
    return _NUMBER.sub(lambda m: f"{int(m.group()):,}".replace(",", thousands), text)


def ordinal(text: str) -> str:
    """English ordinal: 1 → 1st, 12 → 12th. Anything but a whole number comes back as it is."""
    if not text.isdecimal():
        return text
    tens, ones = divmod(int(text) % 100, 10)
    return text + ("th" if tens == 1 else {1: "st", 2: "nd", 3: "rd"}.get(ones, "th"))


def roman(text: str) -> str:
    """Roman numeral of 1…3999; anything else comes back as it is."""
    if not (text.isascii() and text.isdecimal() and len(text) < 5 and 0 < int(text) < 4000):
        return text
    n, out = int(text), []
    for value, letters in _ROMAN:
        count, n = divmod(n, value)
        out.append(letters * count)
    return "".join(out)


_ROMAN = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"),
    )
)

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))


def in_words(text: str) -> str:
    """A whole number below a trillion in English words; anything else comes back as it is."""
    plain = text.replace(",", "").replace("−", "-")
    digits = plain.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 13):
        return text
    return ("minus " if plain != digits else "") + _in_words(int(digits))


def _in_words(n: int) -> str:
    for scale, name in _SCALES:
        if n >= scale:
            head, rest = divmod(n, scale)
            return f"{_in_words(head)} {name}" + (f" {_in_words(rest)}" if rest else "")
    if n < 20:
        return _SMALL[n]
    tens, ones = divmod(n, 10)
    return _TENS[tens - 2] + (f"-{_SMALL[ones]}" if ones else "")


SUPERSCRIPTS = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
