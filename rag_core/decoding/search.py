"""Greedy and beam search over a scorer, batched over problems; finished problems leave the batch.

Beam search follows `transformers` 5: 2·num_beams continuations are drawn, only the best num_beams of
them may finish, finished ones rank by score / length ** length_penalty. Two differences, on purpose:
a beam that does not exist is −inf instead of −1e9 and is never returned, and each problem stops by
itself, so that an answer does not depend on the batch.

Shapes: P problems, H running beams, C continuations drawn, F finished kept (num_beams), L max_length,
K passages of a problem, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from rag_core.decoding.config import DecodingConfig
from rag_core.decoding.processors import process


@dataclass(frozen=True, slots=True)
class Found:
    """A finished row: its ids, what ranked it, and log p(token | x, z, prefix) [tokens, K]."""

    token_ids: tuple[int, ...]
    score: float
    log_probs_TK: torch.Tensor


class Scorer(Protocol):
    n_problems: int

    def step(self, tokens_PH: torch.Tensor, parents_PH: torch.Tensor | None) -> torch.Tensor: ...
    def chosen(self, parents_PC: torch.Tensor, tokens_PC: torch.Tensor) -> torch.Tensor: ...
    def keep(self, problems: torch.Tensor) -> None: ...


def search(scorer: Scorer, config: DecodingConfig, device: torch.device) -> list[list[Found]]:
    """The finished rows of every problem, best first: one by greedy search, up to num_beams by beams."""
    if config.max_length == 1:
        start = (config.decoder_start_token_id,)
        return [[Found(start, 0.0, torch.empty((0, 1)))] for _ in range(scorer.n_problems)]
    if config.num_beams == 1:
        return greedy_search(scorer, config, device)
    return beam_search(scorer, config, device)


def greedy_search(scorer: Scorer, config: DecodingConfig, device: torch.device) -> list[list[Found]]:
    """The best next token until EOS or max_length."""
    P = scorer.n_problems
    rows_P1t = torch.full((P, 1, 1), config.decoder_start_token_id, device=device)
    zeros_P1 = torch.zeros((P, 1), dtype=torch.long, device=device)
    history: list[torch.Tensor] = []
    scores_P = torch.zeros(P, device=device)
    open_P = torch.ones(P, dtype=torch.bool, device=device)
    problem_P = torch.arange(P, device=device)
    found: list[list[Found]] = [[] for _ in range(P)]
    while True:
        log_probs_P1V = process(scorer.step(rows_P1t[:, :, -1], None), rows_P1t, config)
        best_P1 = log_probs_P1V.argmax(dim=-1)
        step_P = log_probs_P1V.gather(2, best_P1[:, :, None])[:, 0, 0]
        blocked_P = torch.isneginf(step_P)  # every token is banned: the row ends as it stands
        scores_P = scores_P + step_P.masked_fill(blocked_P, 0.0)
        history.append(scorer.chosen(zeros_P1, best_P1))
        rows_P1t = torch.cat([rows_P1t, best_P1[:, :, None]], dim=2)
        ends_P = (best_P1[:, 0] == config.eos_token_id) | (rows_P1t.shape[2] == config.max_length)
        ends_P = ends_P | blocked_P
        for i in (ends_P & open_P).nonzero()[:, 0].tolist():
            path_TK = torch.cat([chosen_P1K[i] for chosen_P1K in history])
            row = tuple(rows_P1t[i, 0].tolist())
            if blocked_P[i]:
                row, path_TK = row[:-1], path_TK[:-1]
            found[int(problem_P[i])] = [Found(row, float(scores_P[i]), path_TK)]
        open_P = open_P & ~ends_P
        if not open_P.any():
            return found
        if _worth_dropping(open_P):
            alive = open_P.nonzero()[:, 0]
            scorer.keep(alive)
            rows_P1t, zeros_P1, scores_P = rows_P1t[alive], zeros_P1[alive], scores_P[alive]
            history = [chosen_P1K[alive] for chosen_P1K in history]
            open_P, problem_P = open_P[alive], problem_P[alive]


def beam_search(scorer: Scorer, config: DecodingConfig, device: torch.device) -> list[list[Found]]:
    """The best num_beams finished rows of every problem, by penalised score."""
    P, F, L = scorer.n_problems, config.num_beams, config.max_length
    full = config.early_stopping is True
    rows_PHt = torch.full((P, 1, 1), config.decoder_start_token_id, device=device)
    running_PH = torch.zeros((P, 1), device=device)
    parents_PH: torch.Tensor | None = None
    history_PHTK: torch.Tensor | None = None
    open_P = torch.ones(P, dtype=torch.bool, device=device)
    problem_P = torch.arange(P, device=device)
    found: list[list[Found]] = [[] for _ in range(P)]
    for length in range(1, L):
        log_probs_PHV = process(scorer.step(rows_PHt[:, :, -1], parents_PH), rows_PHt, config)
        total_PHV = log_probs_PHV + running_PH[:, :, None]
        V = total_PHV.shape[2]
        top_PC, flat_PC = total_PHV.flatten(1).topk(min(2 * F, total_PHV[0].numel()), dim=1)
        beam_PC, token_PC = flat_PC // V, flat_PC % V
        chosen_PCK = scorer.chosen(beam_PC, token_PC)
        ends_PC = (token_PC == config.eos_token_id) | (length + 1 == L)

        # Finished rows: only the best num_beams continuations may end here.
        may_end_PF = ends_PC[:, :F] & ~torch.isneginf(top_PC[:, :F]) & open_P[:, None]
        for p, c in may_end_PF.nonzero().tolist():
            kept = found[int(problem_P[p])]
            b = int(beam_PC[p, c])
            row = (*rows_PHt[p, b].tolist(), int(token_PC[p, c]))
            past = [] if history_PHTK is None else [history_PHTK[p, b]]
            path_TK = torch.cat([*past, chosen_PCK[p, c][None]])
            kept.append(Found(row, float(top_PC[p, c]) / length**config.length_penalty, path_TK))
        # Where every continuation is banned and nothing has finished, rows end as they stand.
        for p in (torch.isneginf(top_PC[:, 0]) & open_P).nonzero()[:, 0].tolist():
            kept = found[int(problem_P[p])]
            for b in [] if kept else (~torch.isneginf(running_PH[p])).nonzero()[:, 0].tolist():
                past_TK = chosen_PCK.new_empty((0, chosen_PCK.shape[2]))
                past_TK = past_TK if history_PHTK is None else history_PHTK[p, b]
                score = float(running_PH[p, b]) / max(length - 1, 1) ** config.length_penalty
                kept.append(Found(tuple(rows_PHt[p, b].tolist()), score, past_TK))
        for p in problem_P.tolist():
            found[p] = sorted(found[p], key=lambda f: -f.score)[:F]

        # Running rows: the best num_beams continuations that go on.
        next_PC = top_PC.masked_fill(ends_PC, -torch.inf)
        running_PH, pick_PH = next_PC.topk(min(F, next_PC.shape[1]), dim=1)
        parents_PH, tokens_PH = beam_PC.gather(1, pick_PH), token_PC.gather(1, pick_PH)
        rows_PHt = torch.cat([_pick(rows_PHt, parents_PH), tokens_PH[:, :, None]], dim=2)
        new_PHK = _pick(chosen_PCK, pick_PH)
        history_PHTK = (
            new_PHK[:, :, None]
            if history_PHTK is None
            else torch.cat([_pick(history_PHTK, parents_PH), new_PHK[:, :, None]], dim=2)
        )

        # A problem stops when no running row can enter its finished ones any more.
        best_length = L - 1 if config.early_stopping == "never" and config.length_penalty > 0 else length
        best_P = (running_PH[:, 0] / best_length**config.length_penalty).tolist()
        for i, p in enumerate(problem_P.tolist()):
            # (early_stopping=True: it is full, and nothing may be added to a full one.)
            if len(found[p]) == F and (full or best_P[i] <= found[p][-1].score):
                open_P[i] = False
            elif torch.isneginf(running_PH[i, 0]):
                open_P[i] = False
        if not open_P.any():
            break
        if _worth_dropping(open_P):
            alive = open_P.nonzero()[:, 0]
            scorer.keep(alive)
            rows_PHt, running_PH, parents_PH = rows_PHt[alive], running_PH[alive], parents_PH[alive]
            history_PHTK, problem_P, open_P = history_PHTK[alive], problem_P[alive], open_P[alive]
    return found


def _worth_dropping(open_P: torch.Tensor) -> bool:
    """Finished problems leave once they are a quarter: leaving copies the keys of those that stay."""
    return 4 * int(open_P.sum()) <= 3 * len(open_P)


def _pick(values: torch.Tensor, index_PH: torch.Tensor) -> torch.Tensor:
    """values[p, index[p, h]] for tensors [P, C, ...]."""
    shape = (*index_PH.shape, *values.shape[2:])
    index = index_PH.reshape(*index_PH.shape, *[1] * (values.dim() - 2)).expand(shape)
    return values.gather(1, index)
