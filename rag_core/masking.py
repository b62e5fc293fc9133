"""Secrets in text: what looks like one, or was given as one, is replaced before anybody reads it.

Manifests, `_run.json`, log lines and complaints go through here, so that a key given as an option or a
token in a URL is never written down.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MASK = "***"

# A name holds a secret when one of its words says so; a mistyped `s3_secret_acess_key` still does.
_NAME = r"(?:[\w\-]*[_\-])?(?:secret|password|passwd|credential|key|token|signature|sig)(?:[_\-][\w\-]*|s)?"
_NOT_SECRET = ("tokens", "keys", "kms_key")
_OPTION = re.compile(rf"(--{_NAME}(?:=|\s+))([^\s\-\"'][^\s\"']*)", re.IGNORECASE)
_QUERY = re.compile(rf"([?&;]{_NAME}=)([^\s&;\"']+)", re.IGNORECASE)
_FIELD = re.compile(rf"""(["']{_NAME}["']\s*:\s*["'])([^"']+)""", re.IGNORECASE)
_USER = re.compile(r"([a-zA-Z][a-zA-Z0-9+.\-]*://)[^/\s@]+@")
_BEARER = re.compile(r"(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=\-]{8,}", re.IGNORECASE)

_known: set[str] = set()


def is_secret_name(name: str) -> bool:
    """Whether an option of this name holds a secret: `s3_secret_access_key` does, `max_tokens` does not."""
    return bool(re.fullmatch(_NAME, name, re.IGNORECASE)) and not name.lower().endswith(_NOT_SECRET)


def masked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as they may be written down; the values of secret ones are remembered for `mask`."""
    shown: dict[str, Any] = {}
    for name, value in options.items():
        if is_secret_name(name) and value:
            if len(str(value)) >= 8:  # a shorter one would blank words like `test` in every line
                _known.add(str(value))
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
    text = _USER.sub(rf"\1{MASK}@", text)
    for pattern in (_BEARER, _OPTION, _QUERY, _FIELD):
        text = pattern.sub(rf"\1{MASK}", text)
    return text
