"""HTML entities, decoded exactly once.

Not `html.unescape`: that also takes `&copy` and `&sect` without a semicolon, as no wiki does.
"""

from __future__ import annotations

import re
from html.entities import html5

_ENTITY = re.compile(r"&(?:#(?:[xX]([0-9a-fA-F]{1,6})|([0-9]{1,7}))|([a-zA-Z][a-zA-Z0-9]{1,31}));")


def decode_entities(text: str) -> str:
    """Decode named and numeric entities; what is none stays."""
    return _ENTITY.sub(_decode, text) if "&" in text else text


def _decode(match: re.Match[str]) -> str:
    hexadecimal, decimal, name = match.groups()
    if name:
        character = html5.get(name + ";")
        if character is None:
            return match.group()
    else:
        code = int(hexadecimal, 16) if hexadecimal else int(decimal)
        if not _is_text(code):
            return match.group()
        character = chr(code)
    return character


def _is_text(code: int) -> bool:
    return code in (9, 10, 13) or 32 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000
