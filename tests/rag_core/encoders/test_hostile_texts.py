"""Texts that nobody meant to write, and what is counted of them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from rag_core.encoders import NonFiniteVectorError, load_encoder, tokens

HOSTILE = {
    "empty": "",
    "blank": " \t\n\u3000",
    "ten thousand words": "the king " * 5000,
    "one word of 100,000 letters": "k" * 100_000,
    "Greek": "η λίμνη του βορρά",
    "Chinese": "北方的湖和國王",
    "Arabic, right to left": "البحيرة \u202eالشمالية\u202c",
    "Devanagari": "उत्तर की झील",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈" * 50,
    "combining marks": "k" + "\u0301" * 500 + "ing",
    "control characters": "".join(map(chr, range(32))) + "\x7f\x80\x9f",
    "lone surrogates": "the \ud800 king \udfff",
    "NUL": "\x00" * 100,
    "special tokens": "[SEP] [CLS] [PAD] [MASK] [UNK]",
    "noncharacters": "\ufffe\uffff\U0010ffff",
}


@pytest.mark.parametrize("compute", ["fp32", "bf16", "int8"])
def test_every_text_has_a_vector_that_its_neighbours_do_not_touch(bert_dir, compute):
    if compute == "int8" and not torch.cpu._is_vnni_supported():
        pytest.skip("no 8-bit dot products on this machine")
    encoder = load_encoder(bert_dir, compute)
    titles, texts = list(HOSTILE.values()) * 2, [*HOSTILE.values(), *reversed(HOSTILE.values())]
    together_ND = encoder.encode_passages(titles, texts)
    assert np.isfinite(together_ND).all() and (np.linalg.norm(together_ND, axis=1) > 0).all()
    for row in range(0, len(texts), 4):
        alone_D = encoder.encode_passages([titles[row]], [texts[row]])[0]
        cosine = alone_D @ together_ND[row] / np.linalg.norm(alone_D) / np.linalg.norm(together_ND[row])
        assert cosine >= (0.999 if compute == "bf16" else 0.9999)


def test_what_was_cut_or_mended_is_counted(bert_dir):
    encoder = load_encoder(bert_dir)
    encoder.encode_questions(list(HOSTILE.values()))
    assert encoder.counts.repaired == 1
    assert encoder.counts.truncated == sum(
        len(encoder.tokenizer(t.encode("utf-8", "replace").decode())["input_ids"]) > 64
        for t in HOSTILE.values()
    )


def test_texts_that_are_encoded_again_without_a_bad_neighbour_are_counted_once(bert_dir):
    encoder = load_encoder(bert_dir)
    queen = encoder.tokenizer.convert_tokens_to_ids("queen")
    with torch.no_grad():
        encoder.module.embeddings.word_embeddings.weight[queen] = float("inf")
    texts = ["the lake " * 90, "\ud800", "queen"]
    with pytest.raises(NonFiniteVectorError) as caught:
        encoder.encode_passages([""] * 3, texts)
    assert caught.value.rows == (2,) and (encoder.counts.truncated, encoder.counts.repaired) == (0, 0)
    encoder.encode_passages([""] * 2, texts[:2])
    assert (encoder.counts.truncated, encoder.counts.repaired) == (1, 1)


def test_tokens_do_not_depend_on_how_texts_are_dealt_out(bert_dir, monkeypatch):
    encoder = load_encoder(bert_dir)
    texts = ["the king", "", "lake " * 90, "a", "town " * 7] * 5
    right_ND = encoder.encode_passages(texts, texts[::-1])
    cut = encoder.counts.truncated
    monkeypatch.setattr(tokens, "TEXTS_PER_CALL", 3)
    monkeypatch.setattr(tokens, "CHARACTERS_PER_CALL", 20)
    calls = list(tokens._calls([len(t) for t in texts]))
    assert [row for start, stop in calls for row in range(start, stop)] == list(range(25))
    assert max(stop - start for start, stop in calls) <= 3 and len(calls) > 9
    assert (encoder.encode_passages(texts, texts[::-1]) == right_ND).all()
    assert encoder.counts.truncated == 2 * cut > 0
    assert list(tokens._calls([])) == []


@pytest.mark.parametrize("length", [4, 5, 16, 17, 64])
def test_cuts_are_those_of_the_tokenizers_library(bert_dir, length):
    from tokenizers import Tokenizer

    fast = load_encoder(bert_dir)._fast
    library = Tokenizer.from_str(fast.to_str())
    library.enable_truncation(length, strategy="longest_first")
    words = "the king of lake zz [SEP]".split()
    sizes = (
        0,
        1,
        2,
        length // 2 - 2,
        length // 2 - 1,
        length // 2,
        length - 3,
        length - 2,
        length,
        3 * length,
    )
    pairs = [
        [" ".join(words[(n * i) % 6] for i in range(size)) for size in (n, m)] for n in sizes for m in sizes
    ]
    for columns, inputs in ((list(zip(*pairs)), pairs), ([[one for one, _ in pairs]], [p[0] for p in pairs])):
        for found, right in zip(tokens.tokenize(fast, length, *columns), library.encode_batch(inputs)):
            assert (found.ids_S.tolist(), found.types_S.tolist()) == (right.ids, right.type_ids)
            assert found.truncated == bool(right.overflowing)


def test_a_long_title_over_a_long_text_takes_no_minutes(bert_dir):
    """The library pairs every piece beyond the cut of the one with every piece of the other: 27 s here."""
    encoder = load_encoder(bert_dir)
    started = time.process_time()
    encoder.encode_passages(["the king " * 5000], ["a lake " * 5000])
    assert time.process_time() - started < 3 and encoder.counts.truncated == 1


def test_equal_ids_are_no_trouble(bert_dir):
    encoder = load_encoder(bert_dir)
    titles, texts = ["a"] * 6, ["king", "queen", "lake", "town", "river", "king"]
    right_ND = encoder.encode_passages(titles, texts)
    assert np.abs(encoder.encode_passages(titles, texts, ids=["same"] * 6) - right_ND).max() <= 1e-6


@pytest.mark.parametrize("compute", ["fp32", "int8"])
def test_threads_give_what_one_thread_gives(bert_dir, compute):
    if compute == "int8" and not torch.cpu._is_vnni_supported():
        pytest.skip("no 8-bit dot products on this machine")
    encoder = load_encoder(bert_dir, compute)
    batches = [[f"{word} {other}" for other in "king queen lake".split()] for word in "a the of in".split()]
    right = [encoder.encode_questions(batch) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(encoder.encode_questions, batches * 4))
    for row, vectors in enumerate(found):
        assert (vectors == right[row % 4]).all()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("compute", ["fp32", "bf16", "int8"])
def test_a_model_without_finite_numbers_is_told_in_every_arithmetic(bert_dir, tmp_path, bad, compute):
    from transformers import BertModel

    if compute == "int8" and not torch.cpu._is_vnni_supported():
        pytest.skip("no 8-bit dot products on this machine")
    encoder = load_encoder(bert_dir)
    assert isinstance(encoder.module, BertModel)
    with torch.no_grad():
        encoder.module.encoder.layer[1].output.dense.weight[3, 5] = bad
    encoder.save_pretrained(tmp_path)
    with pytest.raises(NonFiniteVectorError, match="vector with NaN or Inf for p0, p1"):
        load_encoder(tmp_path, compute).encode_passages(["a", ""], ["king", "lake"], ids=["p0", "p1"])
