"""Language converter markup, `-{zh-hans:软件; zh-hant:軟體}-`: one spelling is chosen.

Only wikis written in several scripts have it; elsewhere `-{` is text.
"""

from __future__ import annotations

import re

# Language → its variants, the preferred one first.
_CHINESE = ("zh-hans", "zh-cn", "zh", "zh-sg", "zh-my", "zh-hant", "zh-tw", "zh-hk", "zh-mo")
_VARIANTS = {
    "zh": _CHINESE,
    "sr": ("sr-ec", "sr-cyrl", "sr", "sr-el", "sr-latn"),
    "sh": ("sh-latn", "sh", "sh-cyrl"),
    "kk": ("kk-cyrl", "kk-kz", "kk", "kk-latn", "kk-arab"),
    "ku": ("ku-latn", "ku", "ku-arab"),
    "uz": ("uz-latn", "uz", "uz-cyrl"),
    "tg": ("tg-cyrl", "tg", "tg-latn"),
    "iu": ("ike-cans", "iu", "ike-latn"),
    "wuu": ("wuu-hans", "wuu", "wuu-hant", *_CHINESE),
    "gan": ("gan-hans", "gan", "gan-hant", *_CHINESE),
    "shi": ("shi-latn", "shi", "shi-tfng"),
    "crh": ("crh-latn", "crh", "crh-cyrl"),
}
_MARK = re.compile(r"-\{|\}-(?!\})")
_MAX_NESTING = 10


def choose_variants(text: str, lang: str) -> str:
    """Text in one variant of `lang`; unchanged where the language has none."""
    variants = _VARIANTS.get(lang.partition("-")[0])
    if variants is None or "-{" not in text:
        return text
    out: list[str] = []
    open_at: list[int] = []
    position = 0
    for mark in _MARK.finditer(text):
        out.append(text[position : mark.start()])
        position = mark.end()
        if mark.group() == "-{":
            open_at.append(len(out))
        elif open_at:
            start = open_at.pop()
            if len(open_at) < _MAX_NESTING:
                out[start:] = [_choose("".join(out[start:]), variants)]
    out.append(text[position:])
    return "".join(out)


def _choose(content: str, variants: tuple[str, ...]) -> str:
    flags, rules = "", content
    if head := _FLAGS.match(content):
        flags, rules = head[1], content[head.end() :]
    flag_set = {flag.strip() for flag in flags.split(";")}
    if flag_set & {"H", "T", "-"}:  # hidden rule, page title, removed rule
        return ""
    if flag_set & {"R"}:
        return rules
    by_variant = {}
    codes = list(_CODE.finditer(rules))
    for code, following in zip(codes, [*codes[1:], None]):
        spelling = rules[code.end() : following.start() if following else len(rules)]
        if (name := code[1].lower()) in variants:
            by_variant[name] = spelling.strip().removesuffix(";").rstrip()
    if not by_variant:
        return rules
    return next(by_variant[code] for code in variants if code in by_variant)


# Capital letters or codes before the first bar: `A|`, `zh-hans;zh-hant|`. A link's bar is none of these.
_FLAGS = re.compile(r"([ A-Z;-]*+|[ a-z;-]*+)\|")
# A rule starts with its code; any other `;` and `:` is part of a spelling.
_CODE = re.compile(r"(?:^|;)(?:[^;:=]*+=>)?+\s*+([a-zA-Z]{2,4}(?:-[a-zA-Z]{2,5})?+)\s*+:")
