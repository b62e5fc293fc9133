"""RAG-Sequence decoding (Lewis et al. 2020, section 2.5): per-passage search, then thorough or fast.

*Thorough*: the union of all passages' hypotheses, each scored under every passage. *Fast*:
p(y|x,z) ≈ 0 where y was not in the beam of z; no second pass ranks anything (the rows that are
returned still get their exact log_prob).
Shapes: B questions, K passages, T tokens, N passages that exist.
"""

from __future__ import annotations

import numpy as np
import torch

from rag_core.decoding.candidates import Candidates, Row, score_candidates
from rag_core.decoding.config import DecodingConfig
from rag_core.decoding.hypothesis import Hypothesis
from rag_core.decoding.scorers import PassageScorer
from rag_core.decoding.search import Found, search
from rag_core.models.rag_model import EncodedContexts, RagModel


def decode_sequence(
    model: RagModel, contexts: EncodedContexts, config: DecodingConfig
) -> list[list[Hypothesis]]:
    """The n best rows of each question by the marginal (thorough) or its approximation (fast)."""
    scorer = PassageScorer(model.generator, contexts)
    found_N = search(scorer, config, contexts.prior_BK.device)
    pad, n_best = model.target_layout.pad, config.num_return_sequences
    prior_BK = contexts.prior_BK.double().cpu().numpy()
    present_BK = contexts.present_BK.cpu().numpy()
    number_BK = np.cumsum(present_BK).reshape(present_BK.shape) - 1
    questions, fast_scores = [], []
    for prior_K, present_K, number_K in zip(prior_BK, present_BK, number_BK):
        passages = number_K[present_K].tolist()
        held = _union([found_N[n] for n in passages], prior_K[present_K], pad)
        if config.decoding == "fast":
            held = dict(sorted(held.items(), key=lambda item: (-item[1], item[0]))[:n_best])
        fast_scores.append(held)
        questions.append(Candidates(passages, prior_K[present_K], list(held)))
    score_candidates(scorer.nodes, questions, pad, n_best)
    return [
        _ranked(question, present_K, fast if config.decoding == "fast" else None, n_best)
        for question, present_K, fast in zip(questions, present_BK, fast_scores)
    ]


def _union(found: list[list[Found]], prior_K: np.ndarray, pad: int) -> dict[Row, float]:
    """Every row some passage's beam held, with log Σ p(z|x) p(y|x,z) over the passages that held it."""
    held: dict[Row, list[float]] = {}
    for prior, rows in zip(prior_K.tolist(), found):
        for row in rows:
            scored_T = torch.tensor(row.token_ids[1:]) != pad
            held.setdefault(row.token_ids, []).append(
                prior + float(row.log_probs_TK[:, 0].cpu()[scored_T].double().sum())
            )
    return {row: float(np.logaddexp.reduce(terms)) for row, terms in held.items()}


def _ranked(
    question: Candidates, present_K: np.ndarray, fast: dict[Row, float] | None, n_best: int
) -> list[Hypothesis]:
    exact_C = np.minimum(question.lower_C(), 0.0).tolist()
    score_of = dict(zip(question.rows, exact_C)) if fast is None else fast
    order = sorted(range(len(question.rows)), key=lambda c: (-score_of[question.rows[c]], question.rows[c]))
    hypotheses = []
    for c in order[:n_best]:
        row, joint_K = question.rows[c], question.prior_K + question.partial_CK[c]
        posterior_K = torch.zeros(len(present_K))
        share_K = np.where(question.done_CK[c], np.exp(joint_K - exact_C[c]), 0.0)
        posterior_K[torch.from_numpy(present_K)] = torch.from_numpy(share_K).float()
        hypotheses.append(Hypothesis(list(row), exact_C[c], score_of[row], posterior_K))
    return hypotheses
