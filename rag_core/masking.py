"""Secrets in text: what looks like one, or was given as one, is replaced before anybody reads it.

Manifests, `_run.json`, log lines and complaints go through here, so that a key given as an option or a
token in a URL is never written down.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

MASK = "***"

_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# One such word makes the name of a secret; a mistyped `s3_secret_acess_key` still has it.
_SECRET_WORD = re.compile(
    r"\w*(?:secret|passw|passphrase|credential)\w*|pwd|auth|sig|signature"
    r"|(?:api|access|account|auth|private|secret|session|storage)?(?:key|token)s?"
)
_NOT_SECRET = ("tokens", "keys", "kms_key")

_VALUE = r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|"""
_OPTION = re.compile(rf"--([\w\-]+)(=|\s+)(?!--){_VALUE}\S+)")
_ASSIGNED = re.compile(rf"(?<![\w\-])([\w\-]+)(=){_VALUE}[^\s&;,\"']+)")
_FIELD = re.compile(rf"""["']([\w\-]+)(["']\s*:\s*){_VALUE}(?!))""")
_SETTING = re.compile(rf"(?<![\w\-])([\w\-]+)(:\s+){_VALUE}[^\s,\"']+)")
_USER = re.compile(r"([a-zA-Z][a-zA-Z0-9+.\-]*://)[^/\s]*@")
# A secret key may hold slashes; what follows a colon is a port where digits and a slash follow.
_USER_WITH_SLASH = re.compile(
    r"(\b(?:s3|gs)://(?=[^/\s@]*:)|[a-zA-Z][a-zA-Z0-9+.\-]*://(?=[^/\s@]*:(?!\d+/)))[^\s@]*@"
)
_BEARER = re.compile(r"(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=\-]{8,}", re.IGNORECASE)

_known: set[str] = set()


def is_secret_name(name: str) -> bool:
    """Whether an option of this name holds a secret: `s3_secret_access_key` does, `max_tokens` does not."""
    words = _words(name)
    return not "_".join(words).endswith(_NOT_SECRET) and any(map(_SECRET_WORD.fullmatch, words))


def _words(name: str) -> list[str]:
    """`x-amz-SecurityToken` → x, amz, security, token."""
    return [word for word in re.split(r"[^a-z0-9]+", _WORD_STARTS.sub("_", name).lower()) if word]


def _remember(secret: str) -> None:
    """Mask this value wherever it stands from now on, as it is and as it may be quoted."""
    if len(secret) >= 8:  # a shorter one would blank words like `test` in every line
        _known.update({secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], quote(secret, safe="")})


def masked_words(words: Sequence[str]) -> list[str]:
    """A command line as it may be shown; the secrets in it are remembered for `mask`."""
    shown: list[str] = []
    for before, word in zip(["", *words], words):
        name, equals, value = word.partition("=")
        if name.startswith("--") and equals and is_secret_name(name):
            _remember(value)
            shown.append(f"{name}={MASK}")
        elif "=" not in before and before.startswith("--") and is_secret_name(before) and word[:2] != "--":
            _remember(word)
            shown.append(MASK)
        else:
            for found in (_USER_WITH_SLASH.search(word), _USER.search(word)):
                if found:
                    _remember(found[0].removeprefix(found[1])[:-1].partition(":")[2])
            shown.append(mask(word))
    return shown


def masked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as they may be written down; the values of secret ones are remembered for `mask`."""
    shown: dict[str, Any] = {}
    for name, value in options.items():
        if is_secret_name(name) and value and not isinstance(value, bool | int | float):
            _remember(str(value))
            shown[name] = MASK
        else:
            shown[name] = masked_value(value)
    return shown


def masked_value(value: Any) -> Any:
    """A JSON value with every string in it masked."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list | tuple):
        return [masked_value(item) for item in value]
    if isinstance(value, Mapping):
        return masked_options({str(name): item for name, item in value.items()})
    return value if isinstance(value, bool | int | float) or value is None else mask(str(value))


def mask(text: str) -> str:
    """`text` without secrets: by the names before them, in URLs, and every value known as one."""
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, MASK)
    for pattern in (_USER_WITH_SLASH, _USER):
        text = pattern.sub(rf"\1{MASK}@", text)
    text = _BEARER.sub(rf"\1{MASK}", text)
    for pattern in (_OPTION, _ASSIGNED, _FIELD, _SETTING):
        text = pattern.sub(_masked, text)
    return text


def _masked(found: re.Match[str]) -> str:
    """What a pattern found, its value masked if its name tells a secret; quotes stay."""
    name, between, value = found.groups()
    number = value.isdigit() and not found[0].startswith("-")
    prose = between.startswith(":") and len(_words(name)) < 2  # `key: value`
    if value == MASK or number or prose:
        return found[0]
    if not is_secret_name(name):  # `labels=token=…`
        return found[0].removesuffix(value) + _ASSIGNED.sub(_masked, value)
    quote_mark = value[0] if value[0] in "\"'" and value[-1] == value[0] else ""
    return found[0].removesuffix(value) + quote_mark + MASK + quote_mark
