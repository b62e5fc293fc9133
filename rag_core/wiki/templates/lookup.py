"""From the name in a call to its renderer."""

from __future__ import annotations

from functools import lru_cache

from rag_core.wiki.marks import without_marks
from rag_core.wiki.templates.building import Renderer, drop, unknown
from rag_core.wiki.templates.english import ENGLISH
from rag_core.wiki.templates.functions import FUNCTIONS
from rag_core.wiki.templates.languages import language_template
from rag_core.wiki.templates.others import BY_LANGUAGE, name_template
from rag_core.wiki.templates.silent import is_silent

_TEMPLATE_NAMESPACES = frozenset(
    "template vorlage modèle modele plantilla predefinição predefinicao sjabloon szablon шаблон "
    "mall malline skabelon mal şablon 模板 テンプレート 틀 قالب תבנית format sablon predložak "
    "шаблён".split()
)


_PREFIXES = _TEMPLATE_NAMESPACES | {"subst", "safesubst", "msg", "msgnw", "raw"}


def normalize_name(name: str) -> str:
    """One spelling for all: "_" is a space, case and `Template:` do not matter."""
    name = " ".join(without_marks(name).replace("_", " ").split()).casefold()
    while ":" in name:
        prefix, _, rest = name.partition(":")
        if prefix.strip() not in _PREFIXES:
            break
        name = rest.strip()
    return name


def find_function(name: str) -> Renderer | None:
    """The parser function of this name, if it is one (`#if`, `formatnum`, …)."""
    return FUNCTIONS.get(name.strip().lower())


def find_template(name: str, lang: str) -> Renderer | None:
    """How to render a template; `drop` when it is known to carry no prose; None when nobody knows."""
    return _find(name, lang)


@lru_cache(maxsize=1 << 14)
def _find(name: str, lang: str) -> Renderer | None:
    name = normalize_name(name)
    found = BY_LANGUAGE.get(lang, {}).get(name) or ENGLISH.get(name)
    if found is None:
        found = language_template(name, lang) or name_template(name, lang)
    if found is None and is_silent(name):
        found = drop
    return None if found is unknown else found
