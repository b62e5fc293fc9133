"""RAG-Token decoding: search over the marginal transition p'(y_i) = Σ_z p(z|x) p(y_i | x, z, y_<i).

With one context per question this is the bare generator, so closed-book decoding is the same code.
"""

from __future__ import annotations

import torch

from rag_core.decoding.config import DecodingConfig
from rag_core.decoding.hypothesis import Hypothesis
from rag_core.decoding.scorers import MarginalScorer
from rag_core.decoding.search import Found, search
from rag_core.models import marginals
from rag_core.models.rag_model import EncodedContexts, RagModel


def decode_token(
    model: RagModel, contexts: EncodedContexts, config: DecodingConfig
) -> list[list[Hypothesis]]:
    """Greedy or beam search per question; log_prob and posteriors come from the search's own steps."""
    found = search(MarginalScorer(model.generator, contexts), config, contexts.prior_BK.device)
    return [
        [_hypothesis(model, f, contexts.prior_BK[b]) for f in rows[: config.num_return_sequences]]
        for b, rows in enumerate(found)
    ]


def _hypothesis(model: RagModel, found: Found, prior_K: torch.Tensor) -> Hypothesis:
    ids = torch.tensor(found.token_ids[1:], device=prior_K.device)
    scored_1T = (ids != model.target_layout.pad)[None]
    log_probs_1KT = found.log_probs_TK.T[None].expand(1, len(prior_K), len(ids))
    prior_1K = prior_K[None]
    log_prob = marginals.token_log_likelihood(log_probs_1KT, prior_1K, scored_1T)
    posterior_TK = marginals.token_posterior(log_probs_1KT, prior_1K, scored_1T)[0]
    if model.kind == "closed_book":
        posterior_TK = torch.ones(1)
    return Hypothesis(list(found.token_ids), float(log_prob), found.score, posterior_TK)
