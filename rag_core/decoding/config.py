"""`DecodingConfig`: everything that decides what is decoded, stated per call and echoed in manifests.

Where a name is `transformers`' its meaning is theirs. Nothing is read from a model's generation
config: `transformers` 5 loses settings there without a word.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral
from typing import Any

from rag_core.models.target_layout import TargetLayout

WAYS = {
    "token": ("greedy", "beam"),
    "sequence": ("thorough", "fast"),
    "closed_book": ("greedy", "beam"),
}


LEAST = {
    **dict.fromkeys(("num_beams", "max_length", "num_return_sequences"), 1),
    **dict.fromkeys(("min_length", "no_repeat_ngram_size"), 0),
}
TOKENS = ("forced_bos_token_id", "forced_eos_token_id", "decoder_start_token_id", "eos_token_id")


@dataclass(frozen=True, slots=True)
class DecodingConfig:
    """How answers are decoded. Lengths count every token of the row, start and EOS included.

    decoding: greedy | beam (RAG-Token, closed book), thorough | fast (RAG-Sequence); None: greedy or
        beam by `num_beams`, thorough for RAG-Sequence.
    num_beams: beams per question (RAG-Token) or per passage (RAG-Sequence; 1 is greedy per passage).
    length_penalty: in beam search a hypothesis ranks by log-probability / length ** length_penalty.
    early_stopping: True, False or "never", as in `transformers`.
    num_return_sequences: how many hypotheses to return; fewer come back when fewer distinct ones exist.
    forced_bos_token_id, forced_eos_token_id, decoder_start_token_id, eos_token_id: None takes the
        checkpoint's target layout (no EOS is forced at max_length unless asked for).
    allowed_answers: labels, as text or token ids; exactly one token is scored and no EOS (FEVER).
    """

    decoding: str | None = None
    num_beams: int = 1
    max_length: int = 50
    min_length: int = 0
    length_penalty: float = 1.0
    early_stopping: bool | str = False
    no_repeat_ngram_size: int = 0
    num_return_sequences: int = 1
    forced_bos_token_id: int | None = None
    forced_eos_token_id: int | None = None
    decoder_start_token_id: int | None = None
    eos_token_id: int | None = None
    allowed_answers: tuple[str | int, ...] | None = None

    def __post_init__(self) -> None:
        ways = sorted({w for ways in WAYS.values() for w in ways})
        if self.decoding not in (None, *ways):
            raise ValueError(f"decoding {self.decoding!r}; right: {', '.join(ways)}")
        for name, least in LEAST.items():
            value = getattr(self, name)
            if not _is_integer(value) or value < least:
                raise ValueError(f"{name} {value!r}; right: an integer of at least {least}")
        for name in TOKENS:
            value = getattr(self, name)
            if value is not None and (not _is_integer(value) or value < 0):
                raise ValueError(f"{name} {value!r}; right: a token id, or None for the checkpoint's")
        penalty = self.length_penalty
        if isinstance(penalty, bool) or not isinstance(penalty, int | float) or not math.isfinite(penalty):
            raise ValueError(f"length_penalty {penalty!r}; right: a finite number")
        if not (isinstance(self.early_stopping, bool) or self.early_stopping == "never"):
            raise ValueError(f"early_stopping {self.early_stopping!r}; right: true, false or 'never'")
        if self.decoding == "greedy" and self.num_beams > 1:
            raise ValueError(f"decoding 'greedy' with num_beams {self.num_beams}; right: 1, or 'beam'")
        if self.decoding in (None, "greedy", "beam") and self.num_return_sequences > self.num_beams:
            if self.allowed_answers is None and self.decoding is not None:
                raise ValueError(
                    f"num_return_sequences {self.num_return_sequences} exceeds num_beams {self.num_beams}"
                )
        if isinstance(self.allowed_answers, str):
            raise ValueError(f"allowed_answers {self.allowed_answers!r}; right: a list of labels")
        if self.allowed_answers is not None:
            if not all(isinstance(a, str) or (_is_integer(a) and a >= 0) for a in self.allowed_answers):
                raise ValueError(f"allowed_answers {self.allowed_answers}; right: texts or token ids")
            object.__setattr__(self, "allowed_answers", tuple(self.allowed_answers))
            if not self.allowed_answers or len(set(self.allowed_answers)) < len(self.allowed_answers):
                raise ValueError(f"allowed_answers {self.allowed_answers}; right: distinct, at least one")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> DecodingConfig:
        """From parsed TOML or JSON; an unknown key is an error."""
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(f"unknown decoding option {unknown[0]!r}; known: {', '.join(sorted(known))}")
        return cls(**values)

    def resolved(self, kind: str, layout: TargetLayout) -> DecodingConfig:
        """The effective values for a model: what the manifest echoes and the decoders read."""
        way = self.decoding
        if way is None:
            way = "thorough" if kind == "sequence" else "beam" if self.num_beams > 1 else "greedy"
        if way not in WAYS[kind]:
            raise ValueError(
                f"decoding {way!r} does not exist for {kind} models; right: {', '.join(WAYS[kind])}"
            )

        def given(value: int | None, default: int | None) -> int | None:
            return default if value is None else value

        return replace(
            self,
            decoding=way,
            decoder_start_token_id=given(self.decoder_start_token_id, layout.start),
            eos_token_id=given(self.eos_token_id, layout.eos),
            forced_bos_token_id=given(self.forced_bos_token_id, layout.bos),
        )

    def check_tokens(self, vocabulary: int) -> None:
        """Raise ValueError for a token id that a vocabulary of this size does not have."""
        named = [(name, getattr(self, name)) for name in TOKENS]
        named += [("allowed_answers", a) for a in self.allowed_answers or () if not isinstance(a, str)]
        for name, token in named:
            if token is not None and token >= vocabulary:
                raise ValueError(f"{name} {token} lies beyond the vocabulary of {vocabulary} tokens")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
