"""Names in Japanese, Chinese and Korean beside their readings: often the subject of the article."""

from __future__ import annotations

from rag_core.wiki.templates.arguments import Arguments


def _with_glosses(head: str, *glosses: str) -> str:
    inside = ", ".join(filter(None, glosses))
    if not head:
        return inside
    return f"{head} ({inside})" if inside else head


def nihongo(arguments: Arguments) -> str:
    """{{nihongo|Mayor|市長|Shichō|extra|after}} → "Mayor (市長, Shichō, extra) after"."""
    text = _with_glosses(
        arguments.first(1, "english"),
        arguments.first(2, "kanji"),
        arguments.first(3, "romaji"),
        arguments.first(4, "extra"),
        f"lit. {arguments['lead']}" if arguments["lead"] not in ("", "yes") else "",
    )
    return f"{text} {arguments.first(5, 'extra2')}".strip()


def nihongo3(arguments: Arguments) -> str:
    """{{nihongo3|English|漢字|Rōmaji}} → "Rōmaji (漢字, English)"."""
    return _with_glosses(arguments[3], arguments[2], arguments[1], arguments[4])


def korean(arguments: Arguments) -> str:
    """{{Korean|hangul=한국|hanja=韓國|rr=Hanguk}} → "Korean: 한국; Hanja: 韓國; RR: Hanguk"."""
    fields = (
        ("Korean", arguments.first("hangul", 1)),
        ("Hanja", arguments["hanja"]),
        ("RR", arguments.first("rr", 2)),
        ("MR", arguments.first("mr", 3)),
        ("lit.", arguments["lit"]),
    )
    return _labelled(fields, arguments)


def chinese(arguments: Arguments) -> str:
    """{{zh|c=中国|p=Zhōngguó|l=Middle Land}} → "Chinese: 中国; pinyin: Zhōngguó; lit. 'Middle Land'"."""
    fields = (
        ("Chinese", arguments.first("c", 1)),
        ("simplified Chinese", arguments["s"]),
        ("traditional Chinese", arguments["t"]),
        ("pinyin", arguments.first("p", "hp")),
        ("Tongyong Pinyin", arguments["tp"]),
        ("Wade–Giles", arguments["w"]),
        ("Jyutping", arguments["j"]),
        ("Cantonese Yale", arguments["cy"]),
        ("Pe̍h-ōe-jī", arguments["poj"]),
        ("lit.", f"'{arguments['l']}'" if arguments["l"] else ""),
    )
    return _labelled(fields, arguments)


def _labelled(fields: tuple[tuple[str, str], ...], arguments: Arguments) -> str:
    labels = arguments["labels"] != "no" and arguments.lang == "en"
    parts = []
    for label, value in fields:
        if value:
            colon = "" if label.endswith(".") else ":"
            parts.append(f"{label}{colon} {value}" if labels else value)
    return "; ".join(parts)
