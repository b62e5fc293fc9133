"""How MS MARCO's evaluation script reads answers: lower case, spaCy's English tokens, punctuation kept.

Source: `ms_marco_eval.py` of microsoft/MSMARCO-Question-Answering. The tokeniser is spaCy's blank English
one (no model is needed); it comes with the extra `[msmarco]`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from rag_core.datasets.msmarco import NO_ANSWER
from rag_core.errors import UsageError


@functools.cache
def _tokenizer() -> Any:
    try:
        import spacy
    except ImportError:
        raise UsageError("MS MARCO's official metrics need spaCy: pip install 'ragline[msmarco]'") from None
    return spacy.blank("en").tokenizer


@functools.cache
def tokenizer_version() -> str:
    _tokenizer()
    from importlib import metadata

    return f"spacy-{metadata.version('spacy')}"


@functools.lru_cache(maxsize=1 << 14)
def normalize(text: str) -> str:
    """Lower-cased tokens joined by a space; a token of white space is empty, so two spaces follow.

    The text is tokenised as it stands and each token lower-cased after, as the script does: spaCy's
    exceptions ("St.", "Dr.", "Inc.") know their capitals.
    """
    tokenizer = _tokenizer()
    text = text.encode("utf-8", "replace").decode()  # spaCy refuses lone surrogates
    if len(text) > 1_000_000:  # spaCy refuses longer texts; cut at white space, which ends a token
        return " ".join(normalize(piece) for piece in _pieces(text))
    return " ".join(token.text.strip().lower() for token in tokenizer(text))


def _pieces(text: str, size: int = 500_000) -> list[str]:
    pieces = []
    while text:
        cut = text.rfind(" ", 0, size) if len(text) > size else len(text)
        cut = cut if cut > 0 else size
        pieces.append(text[:cut])
        text = text[cut:].lstrip(" ")
    return pieces


def is_unanswerable(references: Sequence[str]) -> bool:
    """Whether the question has no answer: such questions enter the official F1 and nothing else."""
    return NO_ANSWER in references


def check_rule(unanswerable: str) -> str:
    """The rule for questions without an answer: left out ("drop", the script's) or scored as texts."""
    if unanswerable not in ("drop", "score"):
        raise ValueError(f"unanswerable={unanswerable!r}: use 'drop' or 'score'")
    return unanswerable


def answer_text(prediction: str) -> str:
    """The text that is scored: abstaining on an answerable question is an empty answer."""
    return "" if prediction == NO_ANSWER else prediction
