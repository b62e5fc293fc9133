"""Penn Treebank tokens as coco-caption's scorers cut them, written out here so that no Java is needed.

Source: Stanford CoreNLP 3.4.1, `PTBTokenizer -preserveLines -lowerCase`, then coco-caption's list of
punctuation. That list names brackets in capitals ("-LRB-"), which are lower-cased by then: brackets stay
tokens. Abbreviations and initials keep their stop, contractions are cut apart ("do n't", "can not"),
hyphens and slashes hold words together ("30-second", "win/loss"). Over the 14,180 questions of SQuAD's dev
set and NQ-open these rules give Stanford's tokens in all but 10; addresses, tags and "C++" are not covered.
"""

from __future__ import annotations

import re

_ABBREVIATIONS = (
    "ala adm al apr ariz assn aug ave bhd blvd bros calif capt cf co col colo conn corp cpl dec dept dr "
    "esq est etc feb fla fri ft ga gen gov hon inc ind intl jan jr jul jun kan ky lt ltd maj mar md "
    "messrs mich minn mme mo mon mont mrs? ms mt natl neb nev nov oct okla ph\\.d plc pres prof pvt rd "
    "rep rev sen sept? sgt sq sr ste? tenn thu tue univ va vs vt wed wis wyo"
).split()
_STATES = [f(s) for s in "ark ill la mass miss ore pa tex wash".split() for f in (str.capitalize, str.upper)]

_TOKEN = re.compile(
    rf"(?i:\b(?:{'|'.join(_ABBREVIATIONS)})\.)|\b(?:{'|'.join(_STATES)})\."
    r"|\b[^\W\d_](?:\.[^\W\d_])+\.(?![^\W_])"  # U.S.
    r"|\b[^\W\d_]\.(?=\d|\s+\S)"  # an initial, with something behind it
    r"|(?i:\b(?:nos?|op)\.(?=\s*\d)|\bus\$)"
    r"|(?i:\b(?:can(?=not\b)|(?:gon|wan)(?=na\b)|got(?=ta\b)|(?:gim|lem)(?=me\b)))"
    r"|(?i:'t(?=(?:is|was)\b)|[^\W_]+?(?=n't\b)|n't\b|'(?:s|m|d|ll|re|ve)\b)"
    r"|'\d\ds\b"  # '90s
    r"|\+?(?:\d+(?:[.,:/]\d+)*|\.\d+)(?:[-/\u2044]?[^\W_]+)*"  # 3.5, 1,000, 10th, 16-10
    r"|(?i:[^\W\d_iy]'(?=[^\W\d_]{2}))?"  # O'Neill
    r"[^\W_]+(?:(?:[-/\u2044]|(?<=[^\W\d_])\.(?=[^\W\d_])|(?<=[A-Z])&(?=[A-Z]))[^\W_]+)*"
    r"|_+|[?!]{2,}"
    r"|[^\s.,:;?!'\"`\u2018-\u201d\u2013\u2014\u200b-\u200f-]"
)


def ptb_words(text: str) -> list[str]:
    """The tokens of a text, lower-cased, without punctuation."""
    return [word.lower() for word in _TOKEN.findall(text.replace("\u2019", "'"))]
