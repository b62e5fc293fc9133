"""Vectors, their identity, and what training needs of an encoder."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from rag_core.encoders import NonFiniteVectorError, load_encoder
from rag_core.encoders import compute as computes
from rag_core.encoders.text_encoder import pool

TITLES = ["river", "lake north", "", "king of the north", "town"] * 4
TEXTS = [
    "the king is in a town",
    "a",
    "",
    "the river of the south " * 30,
    "queen \x00\x07 ελλάδα 東京 " + "town " * 9,
] * 4


def one_by_one(directory, kind, tokenizer, titles, texts, max_length):
    """DPR's vectors, one text at a time, by transformers alone."""
    model = kind.from_pretrained(directory).eval()
    vectors = []
    for title, text in zip(titles, texts):
        tokens = tokenizer([title], [text], truncation=True, max_length=max_length, return_tensors="pt")
        tokens["token_type_ids"].zero_()
        with torch.no_grad():
            vectors.append(model(**tokens).pooler_output[0].numpy())
    return np.stack(vectors)


def test_dpr_vectors_are_those_of_transformers_one_by_one(dpr_dirs, tokenizer):
    from transformers import DPRContextEncoder

    encoder = load_encoder(dpr_dirs[0])
    assert (encoder.dim, encoder.max_length, encoder.score_scale) == (32, 64, 1.0)
    assert encoder.fits_passage_encoder is None
    vectors_ND = encoder.encode_passages(TITLES, TEXTS)
    right_ND = one_by_one(dpr_dirs[0], DPRContextEncoder, tokenizer, TITLES, TEXTS, 64)
    assert vectors_ND.dtype == np.float32
    assert np.abs(vectors_ND - right_ND).max() <= 1e-5
    assert encoder.counts.truncated == 4


@pytest.mark.parametrize("which", ["dpr", "bert"])
def test_a_vector_does_not_depend_on_its_neighbours(which, dpr_dirs, bert_dir):
    encoder = load_encoder(dpr_dirs[0] if which == "dpr" else bert_dir)
    together_ND = encoder.encode_passages(TITLES, TEXTS)
    for row in range(5):
        alone_D = encoder.encode_passages([TITLES[row]], [TEXTS[row]])[0]
        assert np.abs(alone_D - together_ND[row]).max() <= 1e-5


def test_mean_pooling_leaves_padding_out(bert_dir):
    encoder = load_encoder(bert_dir)
    ids_BS, mask_BS = encoder.tokenize_questions(["the king", "a town in the north of the south"])
    hidden_BSD = encoder.module(input_ids=ids_BS, attention_mask=mask_BS).last_hidden_state
    right_D = hidden_BSD[0, : int(mask_BS[0].sum())].mean(0)
    assert torch.allclose(pool(hidden_BSD, mask_BS, "mean")[0], right_D, atol=1e-6)


def test_order_of_the_input_changes_no_bit(bert_dir):
    encoder = load_encoder(bert_dir)
    ids = [f"{i:02d}" for i in range(len(TITLES))]
    order = np.random.default_rng(0).permutation(len(TITLES))
    plain_ND = encoder.encode_passages(TITLES, TEXTS, ids=ids)
    shuffled_ND = encoder.encode_passages(
        [TITLES[i] for i in order], [TEXTS[i] for i in order], ids=[ids[i] for i in order]
    )
    assert (plain_ND[order] == shuffled_ND).all()


def test_lone_surrogates_are_read_as_the_replacement_character_and_counted(bert_dir):
    encoder = load_encoder(bert_dir)
    vectors_QD = encoder.encode_questions(["the \ud800 king", "the \ufffd king"])
    assert (vectors_QD[0] == vectors_QD[1]).all()
    assert encoder.counts.repaired == 1


def test_nothing_in_nothing_out_and_other_types_are_refused(bert_dir):
    encoder = load_encoder(bert_dir)
    assert encoder.encode_questions([]).shape == (0, 32)
    assert encoder.encode_passages([], []).shape == (0, 32)
    with pytest.raises(ValueError, match="text 1 is NoneType"):
        encoder.encode_questions(["a", None])
    with pytest.raises(ValueError, match="2 titles but 1 texts"):
        encoder.encode_passages(["a", "b"], ["c"])


def test_nan_is_refused_by_name_and_the_rest_can_go_on(bert_dir):
    encoder = load_encoder(bert_dir)
    king = encoder.tokenizer.convert_tokens_to_ids("king")
    with torch.no_grad():
        encoder.module.embeddings.word_embeddings.weight[king] = float("nan")
    with pytest.raises(NonFiniteVectorError, match="NaN or Inf for p1") as caught:
        encoder.encode_passages(["a", "a", "a"], ["town", "king", "lake"], ids=["p0", "p1", "p2"])
    assert caught.value.rows == (1,)
    assert np.isfinite(encoder.encode_passages(["a"], ["lake"])).all()


@pytest.mark.parametrize("fused", [False, True])
def test_training_through_embed_and_back(bert_dir, tmp_path, fused):
    """A trained question encoder is another encoder that still fits the frozen passages' index."""
    encoder = load_encoder(bert_dir)
    frozen = encoder.fingerprint
    assert encoder.fits_passage_encoder == frozen
    optimizer = torch.optim.AdamW(encoder.module.parameters(), lr=0.1, fused=fused)
    encoder.embed(*encoder.tokenize_questions(["the river", "a town"])).pow(2).sum().backward()
    optimizer.step()
    assert encoder.fingerprint != frozen
    encoder.save_pretrained(tmp_path / "trained")
    again = load_encoder(tmp_path / "trained")
    assert again.fingerprint == encoder.fingerprint
    assert again.fits_passage_encoder == frozen
    assert again.spec == encoder.spec
    questions = ["the king is in the north", "a lake"]
    assert (again.encode_questions(questions) == encoder.encode_questions(questions)).all()


def test_encoding_leaves_training_mode_as_it_was(bert_dir):
    encoder = load_encoder(bert_dir)
    encoder.module.train()
    first = encoder.encode_questions(["the king"])
    assert (first == encoder.encode_questions(["the king"])).all()
    assert encoder.module.training


def test_truncation_set_by_others_changes_nothing(bert_dir):
    encoder = load_encoder(bert_dir)
    before = encoder.encode_questions(["the king is in a town of the north"])
    encoder.tokenizer("the king is", truncation=True, max_length=3, padding="max_length")
    assert (encoder.encode_questions(["the king is in a town of the north"]) == before).all()


@pytest.mark.parametrize("compute", ["bf16", "int8"])
def test_cheaper_arithmetic_stays_close_and_keeps_the_fingerprint(dpr_dirs, bert_dir, compute):
    if compute == "int8" and not torch.cpu._is_vnni_supported():
        pytest.skip("no 8-bit dot products on this machine")
    for directory in (dpr_dirs[0], bert_dir):
        plain, cheap = load_encoder(directory), load_encoder(directory, compute=compute)
        assert cheap.fingerprint == plain.fingerprint
        right_ND, vectors_ND = (e.encode_passages(TITLES, TEXTS) for e in (plain, cheap))
        cosines_N = (right_ND * vectors_ND).sum(1)
        cosines_N /= np.linalg.norm(right_ND, axis=1) * np.linalg.norm(vectors_ND, axis=1)
        assert cosines_N.min() >= 0.999
        with pytest.raises(ValueError, match="save needs fp32"):
            cheap.save_pretrained("nowhere")


def test_int8_vectors_do_not_depend_on_their_neighbours(bert_dir):
    if not torch.cpu._is_vnni_supported():
        pytest.skip("no 8-bit dot products on this machine")
    encoder = load_encoder(bert_dir, compute="int8")
    together_ND = encoder.encode_passages(TITLES, TEXTS)
    for row in range(5):
        alone_D = encoder.encode_passages([TITLES[row]], [TEXTS[row]])[0]
        assert np.abs(alone_D - together_ND[row]).max() <= 1e-2


def test_threads_count_for_themselves(bert_dir):
    encoder = load_encoder(bert_dir)
    encoder.encode_questions(["the king"] * 3)
    own = encoder.counts.tokens
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: encoder.counts.tokens).result() == 0
        pool.submit(encoder.encode_questions, ["the king"]).result()
    assert encoder.counts.tokens == own == 12


def test_the_fastest_arithmetic_is_measured(bert_dir, monkeypatch):
    seconds = {"fp32": 1.0, "bf16": 0.9, "int8": 0.5}
    monkeypatch.setattr(computes, "has_instructions", lambda name, device: True)
    timed = computes._timed
    monkeypatch.setattr(computes, "_timed", lambda e, texts: (seconds[e.compute], timed(e, texts)[1]))
    if computes.is_supported(torch.device("cpu")):
        assert computes.fastest_compute(bert_dir) == "int8"
        seconds["int8"] = 0.95
        assert computes.fastest_compute(bert_dir) == "fp32"  # a tenth is not worth it
    seconds |= {"bf16": 0.3, "int8": 0.4}
    monkeypatch.setattr(computes, "has_instructions", lambda name, device: name == "bf16")
    assert computes.fastest_compute(bert_dir) == "bf16"
    monkeypatch.setattr(computes, "_timed", lambda e, texts: (seconds[e.compute], -timed(e, texts)[1])
                        if e.compute == "bf16" else (seconds[e.compute], timed(e, texts)[1]))  # fmt: skip
    assert computes.fastest_compute(bert_dir) == "fp32"  # fast, but other vectors


@pytest.mark.skipif(sys.platform != "linux", reason="mappings are read from /proc")
def test_weights_are_mapped_and_so_held_once_a_machine(bert_dir):
    """Processes that load one file share its pages: no copy of the weights for each of them."""
    encoder = load_encoder(bert_dir)
    with open("/proc/self/maps") as stream:
        mapped = [line.split() for line in stream if line.rstrip().endswith("model.safetensors")]
    spans = [tuple(int(end, 16) for end in line[0].split("-")) for line in mapped]
    for parameter in encoder.module.parameters():
        assert any(low <= parameter.data_ptr() < high for low, high in spans)


@pytest.mark.parametrize("arithmetic, tolerance", [("fp32", 1e-4), ("bf16", 2e-2)])
def test_scores_hardly_depend_on_the_size_of_batches(bert_dir, monkeypatch, arithmetic, tolerance):
    """Sums in another order give other last digits; the plan is fixed so that a run does not meet them."""
    encoder = load_encoder(bert_dir, compute=arithmetic)
    words = "king queen river lake town north south".split()
    texts = [" ".join(words[(i * j) % 7] for j in range(1 + i % 23)) for i in range(64)]
    query_D = encoder.encode_questions(["the king of the north"])[0]
    scores = []
    for rows in (1, 7, 64):
        monkeypatch.setattr(type(encoder), "token_budget", rows * 32)
        vectors_ND = encoder.encode_passages([""] * 64, texts)
        scores.append(vectors_ND @ query_D / np.linalg.norm(vectors_ND, axis=1) / np.linalg.norm(query_D))
    assert np.abs(scores[1] - scores[0]).max() <= tolerance
    assert np.abs(scores[2] - scores[0]).max() <= tolerance
