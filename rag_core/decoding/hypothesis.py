"""What decoding returns: hypotheses over token ids, predictions over text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One decoded answer.

    token_ids: a whole labels row, start token and any EOS included.
    log_prob: the marginal log-likelihood, −nll(labels=token_ids); never penalised, never a beam score.
    score: what ranked it (log_prob, length-penalised beam score, or the fast approximation).
    doc_posterior: p(z|x,y) [K]; for RAG-Token p(z|x,y_i,y_<i) [T, K], one row per scored token.
    """

    token_ids: list[int]
    log_prob: float
    score: float
    doc_posterior: torch.Tensor


@dataclass(frozen=True, slots=True)
class Prediction:
    """One row of the predictions stage (`rag_core.schemas.PREDICTIONS`)."""

    question_id: str
    status: str
    prediction: str | None = None
    log_prob: float | None = None
    candidates: tuple[tuple[str, float], ...] = ()
    passage_ids: tuple[str, ...] = ()
    doc_prior: tuple[float, ...] = ()
    doc_posterior: tuple[float, ...] = ()
    tokens: tuple[str, ...] = ()
    token_posterior: tuple[tuple[float, ...], ...] | None = None
    predicted_evidence: tuple[tuple[str, int], ...] | None = None
    error: str | None = None

    def to_row(self) -> dict[str, Any]:
        """The record as a dict that fits the stage's Arrow schema."""
        row = asdict(self)
        row["candidates"] = [{"text": t, "log_prob": p} for t, p in self.candidates]
        if self.predicted_evidence is not None:
            row["predicted_evidence"] = [{"page": p, "line": n} for p, n in self.predicted_evidence]
        return row
