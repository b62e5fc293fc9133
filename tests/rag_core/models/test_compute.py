"""Decoding in bf16 and with an int8 encoder: close to float32, and refused where it cannot be."""

import copy

import pytest
import torch

from rag_core.errors import UsageError
from rag_core.int8 import is_supported
from rag_core.models.compute import lower_precision
from tests.reference.tiny_models import generator_of, tiny_bart, tiny_t5

MODELS = {
    "bart": lambda: tiny_bart(vocab_size=12, d_model=64, std=0.15),
    "t5": lambda: tiny_t5(vocab_size=12, d_model=64, factor=1.0),
    "t5 gated": lambda: tiny_t5(vocab_size=12, d_model=64, factor=1.0, gated=True),
}
IDS_NS = torch.tensor([[3, 4, 5, 6], [7, 8, 1, 1]])
MASK_NS = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("compute", ["bf16", "int8"])
@torch.inference_mode()
def test_states_stay_close(name, compute):
    if compute == "int8" and not is_supported(torch.device("cpu")):
        pytest.skip("no 8-bit dot products on this machine")
    exact = generator_of(MODELS[name]())
    cheap = generator_of(copy.deepcopy(exact.model))
    lower_precision(cheap, compute)
    wanted, found = (g.encode(IDS_NS, MASK_NS)[MASK_NS.bool()].float() for g in (exact, cheap))
    cosines = torch.nn.functional.cosine_similarity(wanted, found, dim=-1)
    assert float(cosines.min()) > 0.995
    assert not torch.equal(wanted, found)
    states = cheap.encode(IDS_NS, MASK_NS)
    hidden = cheap.decode(states, MASK_NS, IDS_NS[:, :3])
    assert torch.isfinite(cheap.project(hidden).float()).all()


def test_float32_is_left_alone_and_other_names_are_refused():
    generator = generator_of(tiny_bart(vocab_size=12))
    before = {n: t.clone() for n, t in generator.state_dict().items()}
    lower_precision(generator, "fp32")
    assert all(torch.equal(t, before[n]) for n, t in generator.state_dict().items())
    with pytest.raises(UsageError, match="compute 'fp8'; known are fp32, bf16, int8"):
        lower_precision(generator, "fp8")


def test_int8_needs_a_cpu(monkeypatch):
    monkeypatch.setattr("rag_core.int8.is_supported", lambda device: False)
    with pytest.raises(UsageError, match="needs a CPU with VNNI"):
        lower_precision(generator_of(tiny_bart(vocab_size=12)), "int8")
