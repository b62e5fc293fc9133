"""Spans are found where they stand; the guide's losses know right from wrong."""

from __future__ import annotations

import torch

from eval.miniature.guidance import Guide, find_spans
from eval.miniature.mini_bart import Size, new_generator, train_tokenizer
from eval.miniature.reading import sample_texts


def test_spans_are_the_first_answer():
    rows = [[0, 7, 8, 9, 7, 8, 2], [0, 5, 5, 2]]
    spans = find_spans(rows, [[8], [5, 5]], [True, False])
    assert spans.start_N.tolist() == [2, -1]
    assert spans.length_N.tolist() == [1, 2]


def test_marks_and_places_say_where_the_answer_is_copied_from():
    spans = find_spans([[0, 7, 8, 9, 2], [0, 5, 5, 2]], [[8, 9], [6]], [True, True])
    assert spans.marks(5)[0].int().tolist() == [[0, 0], [0, 0], [1, 1], [1, 0], [0, 0]]
    assert not spans.marks(5)[1].any()
    assert spans.places(4).tolist() == [[2, 3, -1, -1], [-1, -1, -1, -1]]


def test_tags_cost_nothing_when_they_are_right():
    size = Size(width=8, encoder_layers=2, decoder_layers=1, heads=4, feed_forward=8, positions=64)
    generator = new_generator(train_tokenizer(sample_texts(0, 20), 300), size, seed=0)
    guide = Guide(generator)
    with torch.no_grad():
        guide.tags.weight.zero_()
        guide.tags.weight[:, 0] = 50.0
        guide.tags.bias.fill_(0.0)
    spans = find_spans([[0, 7, 8, 2]], [[7]], [True])
    right = torch.zeros(1, 4, 8)
    right[0, :, 0] = torch.tensor([-1.0, 1.0, -1.0, -1.0])
    mask_NS = torch.ones(1, 4, dtype=torch.long)
    assert guide.tag_loss(right, mask_NS, spans.marks(4)).item() < 1e-6
    assert guide.tag_loss(-right, mask_NS, spans.marks(4)).item() > 10
