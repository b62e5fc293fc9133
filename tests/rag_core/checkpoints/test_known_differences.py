"""Faults of `transformers` 5.24's RAG, shown as they are, and what is right here beside them."""

import numpy as np
import pytest
import torch
from transformers.models.rag.retrieval_rag import HFIndexBase

from rag_core import DecodingConfig, RagModel
from rag_core.training.loss import window_loss
from tests.rag_core.checkpoints.test_huggingface import batch_for, their_loss, theirs


def both(tmp_path, kind="sequence", n_docs=3):
    reference = theirs(kind, "bart", n_docs)
    reference.save_pretrained(tmp_path)
    return reference, RagModel.from_pretrained(str(tmp_path))


def their_answers(reference, ids, mask, scores, **options):
    return reference.generate(
        context_input_ids=ids[0], context_attention_mask=mask[0], doc_scores=scores, **options
    )


@torch.no_grad()
def test_theirs_fails_when_fewer_distinct_answers_exist_than_asked_for(tmp_path):
    reference, ours = both(tmp_path)
    ids, mask, scores, _ = (t[:1] for t in batch_for(reference, padded=False))
    ids = ids[:, :1].repeat(1, 3, 1)  # one passage three times: every beam holds the same
    with pytest.raises(RuntimeError, match="out of range"):
        their_answers(reference, ids, mask, scores, n_docs=3, num_return_sequences=3, max_length=6)
    config = DecodingConfig(decoding="thorough", num_return_sequences=3, max_length=6)
    (found,) = ours.decode(ids, mask, scores, config)
    assert len(found) == 1


@torch.no_grad()
def test_theirs_reads_the_number_of_passages_from_its_config_when_it_rescores(tmp_path):
    """generate(n_docs=2) with n_docs 4 in the config: rescored in groups of four, or not at all."""
    reference, ours = both(tmp_path, n_docs=4)
    ids, mask, scores, _ = (t[:1] for t in batch_for(reference, K=2, padded=False))
    (found,) = ours.decode(ids, mask, scores, DecodingConfig(num_beams=2, max_length=6))
    rescored = {}
    for n_docs in (2, 4):
        reference.config.n_docs = n_docs
        try:
            rows = their_answers(reference, ids, mask, scores, n_docs=2, num_beams=2, max_length=6)
            rescored[n_docs] = [t for t in rows[0].tolist() if t != 1]
        except (AssertionError, RuntimeError) as error:
            rescored[n_docs] = type(error).__name__
    assert rescored[4] != rescored[2]
    assert -found[0].log_prob == pytest.approx(
        float(ours.nll(ids, mask, scores, torch.tensor([found[0].token_ids]))), abs=1e-5
    )


@pytest.mark.parametrize("kind", ["sequence", "token"])
@torch.no_grad()
def test_their_smoothed_loss_is_not_a_smoothed_marginal(tmp_path, kind):
    """RAG-Sequence smooths each passage's distribution inside the sum: another number, and it ranks their
    answers. RAG-Token smooths the marginal, as here."""
    reference, ours = both(tmp_path, kind)
    *batch, labels = batch_for(reference)
    plain = their_loss(reference, *batch, labels)
    torch.testing.assert_close(window_loss(ours, batch, labels), plain, atol=1e-4, rtol=0)
    reference.config.label_smoothing = 0.2
    smoothed, right = their_loss(reference, *batch, labels), window_loss(ours, batch, labels, 0.2)
    if kind == "token":
        torch.testing.assert_close(right, smoothed, atol=1e-4, rtol=0)
    else:
        assert (smoothed - right).abs().max() > 0.05
    # Smoothing a distribution costs what its targets' uniform share costs, never less than the plain part.
    assert (right > 0.8 * plain).all()
    found = [h for h, *_ in ours.decode(*batch, DecodingConfig(max_length=5))]
    for b, h in enumerate(found):  # ranking here never sees smoothing
        nll = ours.nll(*(t[b : b + 1] for t in batch), torch.tensor([h.token_ids]))
        assert h.log_prob == pytest.approx(-float(nll), abs=1e-5)


def test_a_passage_that_was_not_found_is_their_last_passage():
    """FAISS says −1; indexing by it takes the last row. Here it has score −inf and takes part in nothing."""

    class Rows(list):
        def __getitem__(self, ids):
            return [list.__getitem__(self, i) for i in ids]

    index = HFIndexBase.__new__(HFIndexBase)
    index.dataset = Rows(["first", "second", "last"])
    assert index.get_doc_dicts(np.array([[0, -1]])) == [["first", "last"]]


@torch.no_grad()
def test_a_passage_that_was_not_found_takes_part_in_nothing_here(tmp_path):
    _, ours = both(tmp_path)
    reference = theirs("sequence", "bart")
    ids, mask, scores, labels = batch_for(reference)
    scores[:, 2] = -torch.inf
    without = ours.nll(ids[:, :2], mask[:, :2], scores[:, :2], labels)
    torch.testing.assert_close(ours.nll(ids, mask, scores, labels), without)


@torch.no_grad()
def test_theirs_generates_from_padded_contexts_without_their_mask(tmp_path):
    """The same contexts, padded more: their RAG-Sequence answers otherwise, ours do not."""
    reference, ours = both(tmp_path)
    moved = 0
    for seed in range(12):
        ids, mask, scores, _ = (t[:1] for t in batch_for(reference, seed=seed))
        wide = [torch.nn.functional.pad(ids, (0, 9), value=1), torch.nn.functional.pad(mask, (0, 9))]
        options = {"n_docs": 3, "max_length": 6}
        narrow_row = their_answers(reference, ids, mask, scores, **options)[0].tolist()
        moved += narrow_row != their_answers(reference, *wide, scores, **options)[0].tolist()
        one, other = (
            ours.decode(*contexts, scores, DecodingConfig(max_length=6))[0][0]
            for contexts in ((ids, mask), wide)
        )
        assert one.token_ids == other.token_ids
    assert moved > 0
