"""HTML whose text is escaped by construction, and pages that need nothing from outside.

`element` is the only way markup is made: what is not `Markup` already is text and is escaped. Data travel
as JSON in a script block that no browser runs; scripts build text nodes from it.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_VOID = {"meta", "input", "link", "br"}
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Controls, marks of direction, lone surrogates: what would show nothing, or reorder its neighbours."""


class Markup(str):
    """Text that is HTML already."""


def visible(text: str) -> str:
    """The text with controls and marks of direction written out, as in `⟨U+202E⟩`."""
    return _UNSEEN.sub(lambda m: f"⟨U+{ord(m.group()):04X}⟩", text)


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """`element("a", "text", class_="x", aria_label="y")`. Lists are flattened; None is nothing.

    An attribute that is None or False is left out, one that is True has no value.
    """
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        written.append(key if value is True else f'{key}="{html.escape(visible(str(value)))}"')
    start = " ".join([tag, *written])
    return Markup(f"<{start}>" if tag in _VOID else f"<{start}>{_inner(children)}</{tag}>")


def _inner(children: Sequence[Any]) -> str:
    out = []
    for child in children:
        if isinstance(child, Markup):
            out.append(child)
        elif isinstance(child, list | tuple):
            out.append(_inner(child))
        elif child is not None:
            out.append(html.escape(visible(str(child)), quote=False))
    return "".join(out)


def script_json(value: Any) -> str:
    """JSON that can stand in a script block: ASCII, without `<`, `>`, `&`. ValueError on NaN and Inf."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page(title: str, body: Sequence[Markup], data: Any, name: str) -> str:
    """A whole page in one text: `base.css` and `{name}.css`, `base.js` and `{name}.js`, data for the script.

    Its content security policy allows just this style and this script, by hash, and nothing from outside.
    Without data (None) there is no script at all.
    """
    css = _sources(name, "css")
    js = None if data is None else _sources(name, "js")
    script = "'none'" if js is None else _hash_source(js)
    policy = (
        f"default-src 'none'; script-src {script}; style-src {_hash_source(css)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        Markup(f"<style>{css}</style>"),
    ]
    tail = []
    if js is not None:
        tail = [
            Markup(f'<script type="application/json" id="data">{script_json(data)}</script>'),
            Markup(f"<script>{js}</script>"),
        ]
    whole = element("html", element("head", head), element("body", list(body), tail), lang="en")
    return f"<!doctype html>\n{whole}\n"


def _sources(name: str, kind: str) -> str:
    return "\n".join((_HERE / f"{part}.{kind}").read_text("utf-8") for part in ("base", name))


def _hash_source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def cut(text: str, limit: int) -> str:
    """The text itself, or its start with a note of how long it is in all."""
    return text if len(text) <= limit else f"{text[:limit]} … [cut: {len(text):,} characters in all]"
