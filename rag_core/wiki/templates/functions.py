"""Parser functions, as far as they can be decided from the page alone."""

from __future__ import annotations

from rag_core.wiki.templates.arguments import Arguments
from rag_core.wiki.templates.building import Renderer, drop, shown
from rag_core.wiki.templates.expressions import evaluate, format_value
from rag_core.wiki.templates.numbers import group_digits


def _if(arguments: Arguments) -> str:
    return arguments[2] if arguments[1] else arguments[3]


def _ifeq(arguments: Arguments) -> str:
    return arguments[3] if _equal(arguments[1], arguments[2]) else arguments[4]


def _equal(a: str, b: str) -> bool:
    try:
        return float(a) == float(b)
    except ValueError:
        return a == b


def _ifexpr(arguments: Arguments) -> str:
    value = evaluate(arguments[1])
    return arguments[2] if value else arguments[3]


def _expr(arguments: Arguments) -> str:
    value = evaluate(arguments[1])
    return "" if value is None else format_value(value)


def _iferror(arguments: Arguments) -> str:
    """An expression that cannot be evaluated shows nothing here, and an error in MediaWiki."""
    if not arguments[1] and "#expr" in arguments.raw("1"):
        return arguments[2]
    return arguments.first(3, 1)


def _switch(arguments: Arguments) -> str:
    """A case without a value falls through to the next value; a last case without one is the default."""
    subject, *cases = arguments.cases()
    wanted = subject[1]()
    default = ""
    matched = is_default = False
    for i, (name, value) in enumerate(cases):
        case = value() if name is None else name
        if name is None and i == len(cases) - 1:
            return case
        matched = matched or _equal(case, wanted)
        is_default = is_default or case == "#default"
        if name is not None:
            if matched:
                return value()
            if is_default:
                default, is_default = value(), False
    return default


def _formatnum(arguments: Arguments) -> str:
    text = arguments[1]
    return text.replace(",", "") if arguments[2] == "R" else group_digits(text, arguments.lang)


def _tag(arguments: Arguments) -> str:
    return "" if arguments[1].lower() in ("ref", "references", "gallery", "math", "score") else arguments[2]


def _pad(left: bool) -> Renderer:
    def render(arguments: Arguments) -> str:
        text, filler = arguments[1], arguments[3] or "0"
        width = min(int(arguments[2]), 100) if arguments[2].isdecimal() else 0
        padding = (filler * width)[: max(0, width - len(text))]
        return padding + text if left else text + padding

    return render


def _capitalised(arguments: Arguments) -> str:
    return arguments[1][:1].upper() + arguments[1][1:]


def _uncapitalised(arguments: Arguments) -> str:
    return arguments[1][:1].lower() + arguments[1][1:]


FUNCTIONS: dict[str, Renderer] = {
    "#if": _if,
    "#ifeq": _ifeq,
    "#ifexpr": _ifexpr,
    "#iferror": _iferror,
    "#ifexist": shown(2),
    "#expr": _expr,
    "#switch": _switch,
    "#tag": _tag,
    "#dateformat": shown(1),
    "#formatdate": shown(1),
    "formatnum": _formatnum,
    "lc": lambda arguments: arguments[1].lower(),
    "uc": lambda arguments: arguments[1].upper(),
    "lcfirst": _uncapitalised,
    "ucfirst": _capitalised,
    "padleft": _pad(left=True),
    "padright": _pad(left=False),
    "plural": lambda arguments: arguments[2] if arguments[1] == "1" else arguments.first(3, 2),
    "gender": lambda arguments: arguments.first(4, 2),
    "grammar": shown(2),
    "urlencode": shown(1),
    "pagename": shown(1),
    "fullpagename": shown(1),
    "anchorencode": shown(1),
    **dict.fromkeys(
        "#invoke #time #timel #titleparts #lst #section #lsth #property #statements #coordinates #related "
        "#language #babel #assessment #mentor #parserfunction defaultsort displaytitle defaultsortkey "
        "defaultcategorysort fullurl localurl canonicalurl filepath int ns nse pagesincategory pagesize "
        "protectionlevel noexternallanglinks".split(),
        drop,
    ),
}
