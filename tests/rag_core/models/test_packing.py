"""Packed encoder and decoder against the `transformers` modules whose weights they use."""

import pytest
import torch

from rag_core.models.packing import Packing, length_groups
from tests.reference.tiny_models import generator_of, tiny_bart, tiny_t5

MODELS = {
    "bart": lambda: tiny_bart(vocab_size=12),
    "t5": lambda: tiny_t5(vocab_size=12),
    "t5 gated": lambda: tiny_t5(vocab_size=12, gated=True),
}
LENGTHS = [7, 1, 4]


def batch(lengths):
    g = torch.Generator().manual_seed(0)
    ids_NS = torch.randint(3, 12, (len(lengths), max(lengths)), generator=g)
    mask_NS = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    targets_NT = torch.randint(3, 12, (len(lengths), 5), generator=g)
    return ids_NS, mask_NS, targets_NT


def theirs(model, ids_NS, mask_NS, targets_NT):
    states = model.get_encoder()(input_ids=ids_NS, attention_mask=mask_NS).last_hidden_state
    decoded = model.get_decoder()(
        input_ids=targets_NT,
        encoder_hidden_states=states,
        encoder_attention_mask=mask_NS,
        use_cache=False,
    ).last_hidden_state
    return states, decoded


def ours(model, ids_NS, mask_NS, targets_NT):
    training = model.training
    generator = generator_of(model).train(training)
    states = generator.encode(ids_NS, mask_NS)
    return states, generator.decode(states, mask_NS, targets_NT)


def gradients(model, run, inputs):
    model.zero_grad()
    states, decoded = run(model, *inputs)
    real = inputs[1][:, :, None]
    ((states * real).pow(2).sum() + decoded.pow(3).sum()).backward()
    return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("lengths", [LENGTHS, [5, 5]], ids=["uneven", "even"])
@pytest.mark.parametrize("name", MODELS)
def test_states_and_gradients_are_those_of_transformers(name, lengths):
    model, inputs = MODELS[name](), batch(lengths)
    (expected, decoded), (found, found_decoded) = theirs(model, *inputs), ours(model, *inputs)
    real = inputs[1][:, :, None]
    torch.testing.assert_close(found * real, expected * real, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found_decoded, decoded, rtol=1e-5, atol=1e-5)
    assert torch.equal(found * (1 - real), torch.zeros_like(found))
    want, have = gradients(model, theirs, inputs), gradients(model, ours, inputs)
    assert want.keys() == have.keys() and len(want) > 20
    largest = max(float(g.abs().max()) for g in want.values())
    for key in want:
        torch.testing.assert_close(have[key], want[key], rtol=1e-3, atol=1e-5 * largest)


@pytest.mark.parametrize("name", MODELS)
def test_gradient_checkpointing_changes_nothing(name):
    model, inputs = MODELS[name]().train(), batch(LENGTHS)
    plain = gradients(model, ours, inputs)
    model.gradient_checkpointing_enable()
    kept = gradients(model, ours, inputs)
    for key in plain:
        torch.testing.assert_close(kept[key], plain[key])


@pytest.mark.parametrize("name", MODELS)
def test_dropout_is_theirs_in_the_mean_and_only_in_training(name):
    model, inputs = MODELS[name](), batch(LENGTHS)
    model.config.dropout_rate = 0.3
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.3
        elif isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.3
    torch.testing.assert_close(ours(model, *inputs), ours(model, *inputs), rtol=0, atol=0)
    model.train()
    torch.manual_seed(0)
    with torch.no_grad():
        mine = torch.stack([ours(model, *inputs)[1] for _ in range(300)])
        other = torch.stack([theirs(model, *inputs)[1] for _ in range(300)])
    assert not torch.equal(mine[0], mine[1])
    spread = other.std(0).mean() + 1e-6
    assert float((mine.mean(0) - other.mean(0)).abs().max() / spread) < 0.5
    assert float((mine.std(0).mean() - other.std(0).mean()).abs() / spread) < 0.1


def test_layers_are_left_out_in_training_alone():
    model, inputs = tiny_bart(vocab_size=12), batch(LENGTHS)
    whole = ours(model, *inputs)[0]
    model.model.encoder.layerdrop = model.model.decoder.layerdrop = 1.0
    torch.testing.assert_close(ours(model, *inputs)[0], whole)
    model.train()
    encoder, ids_NS, mask_NS = model.model.encoder, *inputs[:2]
    positions = encoder.embed_positions.weight[2 : 2 + ids_NS.shape[1]]
    bare = encoder.layernorm_embedding(encoder.embed_tokens(ids_NS) + positions)
    torch.testing.assert_close(ours(model, *inputs)[0], bare * mask_NS[:, :, None])


def test_bfloat16_autocast_trains():
    for make in MODELS.values():
        model, inputs = make().train(), batch(LENGTHS)
        exact = gradients(model, ours, inputs)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            states, decoded = ours(model, *inputs)
        assert states.shape == (3, 7, 16) and torch.isfinite(decoded.float()).all()
        assert exact.keys()


def test_packing_and_padding_are_inverse():
    mask_NS = torch.tensor([[1, 0, 0], [1, 1, 0]])
    packing = Packing(mask_NS)
    x_NSD = torch.arange(12.0).view(2, 3, 2)
    assert packing.pack(x_NSD).tolist() == [[6.0, 7.0], [8.0, 9.0], [0.0, 1.0]]  # the longest first
    assert torch.equal(packing.pad(packing.pack(x_NSD)), x_NSD * mask_NS[:, :, None])
    assert packing.index_T.tolist() == [3, 4, 0]


def test_squares_are_of_like_lengths():
    assert length_groups([160] * 60, 0) == [(0, 60)]
    assert length_groups([300, 290, 30, 20], 128) == [(0, 2), (2, 4)]
    assert length_groups([300, 290, 290, 20], 0) == [(0, 1), (1, 3), (3, 4)]
    assert length_groups([7], 128) == [(0, 1)]
    assert length_groups([400, 300, 200], 128) == [(0, 2), (2, 3)]
    mask_NS = (torch.arange(9) < torch.tensor([[9], [8], [8]])).long()
    assert [len(Packing(mask_NS, width)._squares) for width in (192, 768)] == [1, 2]


def test_attention_in_several_squares_is_attention_in_one(monkeypatch):
    model, inputs = tiny_bart(vocab_size=12), batch([19, 3, 12, 1, 19, 7])
    whole = ours(model, *inputs)[0]
    monkeypatch.setattr("rag_core.models.packing.SQUARE_PADDING", 4)
    assert len(Packing(inputs[1])._squares) == 4
    torch.testing.assert_close(ours(model, *inputs)[0], whole, rtol=1e-5, atol=1e-5)
