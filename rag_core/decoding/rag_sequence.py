"""RAG-Sequence decoding (Lewis et al. 2020, section 2.5): per-passage search, then thorough or fast.

*Thorough*: the union of all passages' hypotheses, each scored under every passage. *Fast*:
p(y|x,z) ≈ 0 where y was not in the beam of z; no second pass ranks anything.
Shapes: B questions, K passages, C candidates of a question, T tokens, N passages that exist.
"""

from __future__ import annotations

import torch

from rag_core.decoding.config import DecodingConfig
from rag_core.decoding.hypothesis import Hypothesis
from rag_core.decoding.scorers import PassageScorer
from rag_core.decoding.search import Found, search
from rag_core.models.rag_model import EncodedContexts, RagModel

Row = tuple[int, ...]


def decode_sequence(
    model: RagModel, contexts: EncodedContexts, config: DecodingConfig
) -> list[list[Hypothesis]]:
    """The n best rows of each question by the marginal (thorough) or its approximation (fast)."""
    found_N = search(PassageScorer(model.generator, contexts), config, contexts.prior_BK.device)
    pad = model.target_layout.pad
    B, K = contexts.prior_BK.shape
    known: list[dict[Row, torch.Tensor]] = [{} for _ in range(B)]  # log p(y|x,z) per passage, NaN: unknown
    cells = contexts.present_BK.nonzero().tolist()
    for (b, k), rows in zip(cells, found_N):
        for row in rows:
            scores_K = known[b].setdefault(row.token_ids, torch.full((K,), torch.nan))
            scores_K[k] = _log_likelihood(row, pad)
    prior_BK = contexts.prior_BK.cpu()
    ranked = []
    for b in range(B):
        if config.decoding == "fast":
            fast = {row: _marginal(prior_BK[b], s.nan_to_num(nan=-torch.inf)) for row, s in known[b].items()}
            order = sorted(fast, key=lambda r: (-fast[r], r))[: config.num_return_sequences]
            known[b] = {row: known[b][row] for row in order}
            ranked.append([(row, fast[row]) for row in order])
    _fill_unknown(model, contexts, known)
    answers = []
    for b in range(B):
        exact = {row: _marginal(prior_BK[b], s) for row, s in known[b].items()}
        if config.decoding == "thorough":
            order = sorted(exact, key=lambda r: (-exact[r], r))[: config.num_return_sequences]
            ranked.append([(row, exact[row]) for row in order])
        answers.append(
            [
                Hypothesis(
                    list(row), exact[row], score, torch.softmax(_joint(prior_BK[b], known[b][row]), dim=0)
                )
                for row, score in ranked[b]
            ]
        )
    return answers


def _log_likelihood(found: Found, pad: int) -> torch.Tensor:
    scored_T = torch.tensor(found.token_ids[1:]) != pad
    return found.log_probs_TK[:, 0].cpu()[scored_T].sum()


def _joint(prior_K: torch.Tensor, scores_K: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.isneginf(prior_K), -torch.inf, prior_K + scores_K)


def _marginal(prior_K: torch.Tensor, scores_K: torch.Tensor) -> float:
    return float(torch.logsumexp(_joint(prior_K, scores_K), dim=0))


def _fill_unknown(model: RagModel, contexts: EncodedContexts, known: list[dict[Row, torch.Tensor]]) -> None:
    """Score every candidate under the passages whose beams did not hold it, from cached states."""
    layout, device = model.target_layout, contexts.mask_NS.device
    cell_of = {cell: n for n, cell in enumerate(map(tuple, contexts.present_BK.nonzero().tolist()))}
    wanted = [
        (cell_of[b, k], row, scores_K, k)
        for b, candidates in enumerate(known)
        for row, scores_K in candidates.items()
        for k in torch.isnan(scores_K).nonzero()[:, 0].tolist()
        if (b, k) in cell_of
    ]
    for at in range(0, len(wanted), 256):
        part = wanted[at : at + 256]
        labels_MT = layout.batch([row for _, row, _, _ in part]).to(device)
        n_M = torch.tensor([n for n, *_ in part], device=device)
        inputs_MT, targets_MT = labels_MT[:, :-1], labels_MT[:, 1:]
        if not targets_MT.numel():
            log_likelihood_M = torch.zeros(len(part))
        else:
            hidden = model.generator.decode(contexts.states_NSD[n_M], contexts.mask_NS[n_M], inputs_MT)
            logits = model.generator.project(hidden).float()
            nll_MT = torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets_MT, reduction="none")
            log_likelihood_M = -nll_MT.masked_fill(targets_MT == layout.pad, 0.0).sum(dim=1).cpu()
        for (_, _, scores_K, k), value in zip(part, log_likelihood_M):
            scores_K[k] = value
