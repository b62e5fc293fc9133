"""When an answer is right: normalisation, exact match, token F1, and whether a text holds an answer.

The rules are those of the official scorers, known false positives included ("3.5" equals "35"):
a number that differs from the official one by its tokeniser is a wrong number.

Sources: SQuAD v1.1 `evaluate-v1.1.py` (normalisation, EM, F1; KILT's and DPR's reader evaluation use
the same rules), DPR `dpr/data/qa_validation.py` and its `SimpleTokenizer` (`has_answer`), DrQA
`drqa/reader/utils.py` and `scripts/pipeline/eval.py --regex` (`regex_match`).
"""

from __future__ import annotations

import functools
import re
import string
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable

import regex

_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
_PUNCTUATION_BYTES = string.punctuation.encode()
_LOWER_BYTES = bytes(range(128)).lower() + bytes(range(128, 256))
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_ARTICLES = frozenset(("a", "an", "the"))
_TOKEN = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]", regex.UNICODE)
_SEPARATOR = "\x1f"  # \p{C}: inside no token
_REGEX_FLAGS = regex.IGNORECASE | regex.UNICODE | regex.MULTILINE


def normalize_answer(text: str) -> str:
    """Lower-case, delete ASCII punctuation, drop the articles a/an/the, squeeze white space.

    Punctuation is deleted, not replaced by a space ("U.S.A." is "usa"), and only `string.punctuation`
    is: a curly apostrophe or an en dash stays. Nothing is done about Unicode forms: composed and
    decomposed letters differ, as they do in the SQuAD, DPR and KILT scorers (DrQA's pipeline composes
    first). Articles go by the standard library's `\\b`, as in SQuAD and KILT, for which a combining
    mark is no letter: "À la carte" written as A + U+0300 loses its A as an article, and equals a bare
    U+0300 with " la carte". DPR's, DrQA's and Atlas' `regex` module takes the mark for a letter and keeps
    the A: there the two differ. Only text in decomposed form with a mark on a lone a shows it; SQuAD's
    rule is the one in use here, under every name that has it.
    """
    if text.isascii() and text.isprintable():  # the fast way: every word boundary is a space
        text = f" {text.encode().translate(_LOWER_BYTES, _PUNCTUATION_BYTES).decode()} "
        if "  " in text:
            text = f" {' '.join(text.split())} "
        if " the " in text or " a " in text or " an " in text:
            return " ".join([word for word in text.split() if word not in _ARTICLES])
        return text[1:-1]
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_DELETE_PUNCTUATION)).split())


def exact_match(prediction: str, references: Iterable[str]) -> bool:
    """Whether the normalised prediction equals one of the normalised references.

    Two answers of which nothing is left ("..." and "!!!") are equal. Raises ValueError when there is
    no reference.
    """
    wanted = normalize_answer(prediction)
    for reference in _some(references):
        if normalize_answer(reference) == wanted:
            return True
    return False


def f1(prediction: str, references: Iterable[str]) -> float:
    """Best F1 of the bags of normalised words over the references: 2·common / (predicted + gold words).

    0 when either side has no word left (SQuAD v1.1; v2 gives 1 when both have none).
    """
    common, total = f1_statistics(prediction, _some(references))
    return 2 * common / total if common else 0.0


def f1_statistics(prediction: str, references: Iterable[str]) -> tuple[int, int]:
    """The integers behind `f1`: (words in common, words of both sides) of the best reference."""
    wanted = normalize_answer(prediction)
    predicted = wanted.split()
    kinds = set(predicted)
    best = (0, 1)
    for reference in references:
        text = normalize_answer(reference)
        if text == wanted and predicted:
            return len(predicted), 2 * len(predicted)
        gold = text.split()
        shared = kinds.intersection(gold)
        common, total = len(shared), len(predicted) + len(gold)
        if shared and len(kinds) < len(predicted) and len(set(gold)) < len(gold):
            common = sum((Counter(predicted) & Counter(gold)).values())  # words repeated on both sides
        if common * best[1] > best[0] * total:
            best = (common, total)
    return best


def answer_tokens(text: str) -> str:
    """DPR's tokens, lower-cased, each between separators, as one string: `in` is a match of tokens.

    NFD first, then runs of letters, digits and marks, or single other characters that are neither
    separators (\\p{Z}) nor controls (\\p{C}).
    """
    if not text.isascii():
        text = unicodedata.normalize("NFD", text)
    tokens = _TOKEN.findall(text)
    return _SEPARATOR + _SEPARATOR.join(tokens).lower() + _SEPARATOR if tokens else _SEPARATOR


def has_answer(text: str, answers: Iterable[str], match: str = "string") -> bool:
    """Whether the text holds one of the answers, by DPR's rule for top-k accuracy.

    `match="string"`: an answer's tokens stand in the text, contiguous and without regard to case. An
    empty answer is in every text: loaders drop it. `match="regex"`: the pattern is found anywhere;
    one that does not compile is found nowhere.
    """
    if match == "string":
        tokens = answer_tokens(text)
        return any(answer_tokens(answer) in tokens for answer in answers)
    if match == "regex":
        return any(regex_search(text, pattern) for pattern in answers)
    raise ValueError(f"match={match!r}: use 'string' or 'regex'")


def regex_search(text: str, pattern: str) -> bool:
    """DPR's rule for CuratedTREC: the pattern matches somewhere in the text, both in NFD."""
    compiled = compile_answer(pattern)
    return compiled is not None and compiled.search(unicodedata.normalize("NFD", text)) is not None


def regex_match(text: str, pattern: str) -> bool:
    """DrQA's rule for CuratedTREC: the pattern matches from the start of the text, both in NFD.

    The end is free: "1967" matches "1967 or so". Punctuation and articles are left alone.
    """
    compiled = compile_answer(pattern)
    return compiled is not None and compiled.match(unicodedata.normalize("NFD", text)) is not None


@functools.lru_cache(maxsize=8192)
def compile_answer(pattern: str) -> regex.Pattern | None:
    """A regex answer, compiled (ignoring case, Unicode, multi-line); None with a warning if it is not one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ambiguous sets in the published patterns are no news
            return regex.compile(unicodedata.normalize("NFD", pattern), _REGEX_FLAGS)
    except regex.error as error:
        warnings.warn(
            f"answer pattern {pattern!r} does not compile ({error}): it matches nothing", stacklevel=2
        )
        return None


def _some(references: Iterable[str]) -> tuple[str, ...]:
    references = (references,) if isinstance(references, str) else tuple(references)
    if not references:
        raise ValueError("no reference answers: such a record is rejected when the test set is loaded")
    return references
