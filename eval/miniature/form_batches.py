"""Readings of several forms as tensors, and the losses of a batch.

Legend: N rows, S input tokens, T target tokens, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from eval.miniature.form_readings import FormReading
from eval.miniature.guidance import Guide, find_spans
from eval.miniature.matching import Matcher, Matches, find_matches
from eval.miniature.mini_bart import PAD
from eval.miniature.pretrain import Batches
from eval.miniature.statements import LABELS
from rag_core.decoding.labels import label_tokens
from rag_core.models.context import pad_rows
from rag_core.models.generator import Generator
from rag_core.schemas import Passage


@dataclass(frozen=True, slots=True)
class FormBatch:
    """`marks_NS2`: the input tokens that the target rests on, and which begin a name; `place_NT`: the
    input token that each scored token copies (-1: none); `matches`: of claims alone."""

    ids_NS: torch.Tensor
    mask_NS: torch.Tensor
    labels_NT: torch.Tensor
    marks_NS2: torch.Tensor
    place_NT: torch.Tensor
    matches: Matches | None


class FormBatches:
    """Builds batches for one generator; claims and other forms do not mix in one."""

    def __init__(self, generator: Generator) -> None:
        self._batches = Batches(generator)
        self.layout, self.tokenizer = generator.layout, generator.tokenizer
        self.label_tokens = label_tokens(LABELS, generator.tokenizer)

    def build(self, readings: Sequence[FormReading]) -> FormBatch:
        contexts = self._batches.contexts
        asked = contexts.question_ids([r.question for r in readings])
        shown = contexts.passage_ids([Passage("", r.title, r.text) for r in readings])
        rows = [contexts.join([p], q)[0] for p, q in zip(shown, asked)]
        ids_NS, mask_NS = pad_rows(rows, PAD)
        claims = readings[0].claimed is not None
        targets = self._targets(readings, claims)
        labels_NT = self.layout.batch(targets)
        marks_NS2 = torch.zeros((*ids_NS.shape, 2), dtype=torch.bool)
        place_NT = torch.full((len(rows), labels_NT.shape[1] - 1), -1)
        for which in range(max(len(r.copied) for r in readings)):
            names = [r.copied[which] if which < len(r.copied) else "" for r in readings]
            pieces = self.tokenizer.encode(names)
            spans = find_spans(rows, pieces, [bool(name) for name in names])
            marks_NS2 |= spans.marks(ids_NS.shape[1])
            if not claims:
                said = find_spans([row[1:] for row in targets], pieces, [bool(name) for name in names])
                for n, (place, start) in enumerate(zip(said.start_N.tolist(), spans.start_N.tolist())):
                    if place >= 0 and start >= 0:
                        place_NT[n, place : place + len(pieces[n])] = start + torch.arange(len(pieces[n]))
        matches = None
        if claims:
            begins = [len(row) - len(q) - len(self.tokenizer.after) for row, q in zip(rows, asked)]
            claimed = self.tokenizer.encode([r.claimed or "" for r in readings])
            agrees = [r.claimed in r.copied for r in readings]
            matches = find_matches(rows, begins, claimed, agrees)
        return FormBatch(ids_NS, mask_NS, labels_NT, marks_NS2, place_NT, matches)

    def _targets(self, readings: Sequence[FormReading], claims: bool) -> list[list[int]]:
        if claims:
            tokens = dict(zip(LABELS, self.label_tokens))
            return [self.layout.row([tokens[r.target]], label=True) for r in readings]
        return [self.layout.row(ids) for ids in self.tokenizer.encode([r.target for r in readings])]


def form_loss(
    generator: Generator, batch: FormBatch, guide: Guide, matcher: Matcher
) -> tuple[torch.Tensor, torch.Tensor]:
    """(mean negative log-likelihood of every scored token, the sum of the auxiliary losses)."""
    inner_NSD = None
    if batch.matches is None:
        states_NSD = generator.encode(batch.ids_NS, batch.mask_NS)
    else:
        states_NSD, inner_NSD = matcher.states(batch.ids_NS, batch.mask_NS)
    hidden_NTD = generator.decode(states_NSD, batch.mask_NS, batch.labels_NT[:, :-1])
    logits_NTV = generator.project(hidden_NTD)
    nll = F.cross_entropy(logits_NTV.flatten(0, 1), batch.labels_NT[:, 1:].flatten(), ignore_index=PAD)
    guidance = guide.tag_loss(states_NSD, batch.mask_NS, batch.marks_NS2)
    guidance = guidance + guide.alignment_loss(states_NSD, batch.mask_NS, batch.place_NT)
    if batch.matches is not None:
        guidance = guidance + matcher(states_NSD, inner_NSD, batch.mask_NS, batch.matches)
    return nll, guidance


@torch.no_grad()
def choose_labels(generator: Generator, batches: FormBatches, readings: Sequence[FormReading]) -> list[str]:
    """The likeliest label of each claim, from its one passage."""
    batch = batches.build(readings)
    states_NSD = generator.encode(batch.ids_NS, batch.mask_NS)
    hidden_ND = generator.decode(states_NSD, batch.mask_NS, batch.labels_NT[:, :1])[:, 0]
    best_N = generator.project(hidden_ND)[:, batches.label_tokens].argmax(-1)
    return [LABELS[i] for i in best_N.tolist()]
