"""Integer products against their float32 layers."""

import pytest
import torch

from rag_core.int8 import GELU_LEAST, Int8Linear, gelu_levels, is_supported, levels

pytestmark = pytest.mark.skipif(
    not is_supported(torch.device("cpu")), reason="no 8-bit dot products on this machine"
)


@torch.no_grad()
def test_the_error_is_that_of_eight_bits():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(96, 48), torch.nn.Linear(96, 32, bias=False)]
    x_BSI = torch.randn(3, 5, 96)
    wanted = torch.cat([layer(x_BSI) for layer in layers], dim=-1)
    found = Int8Linear(*layers)(x_BSI)
    assert found.shape == (3, 5, 80)
    # Each factor is off by half a level at most; 96 products of them add up like noise.
    assert float((found - wanted).abs().max()) < 0.03
    assert float((found - wanted).pow(2).mean().sqrt() / wanted.std()) < 0.015


@torch.no_grad()
def test_gelus_outputs_use_the_whole_range():
    torch.manual_seed(0)
    layer = torch.nn.Linear(256, 64)
    x_TI = torch.nn.functional.gelu(torch.randn(7, 256))
    wanted = layer(x_TI)
    products = Int8Linear(layer, after_gelu=True)(x_TI.clone())
    assert float((products - wanted).pow(2).mean().sqrt() / wanted.std()) < 0.012
    found, step_T1 = gelu_levels(x_TI.clone())
    torch.testing.assert_close(GELU_LEAST + step_T1 * found, x_TI, rtol=0, atol=float(step_T1.max()) * 0.51)
    assert found.amax(1).eq(255).all()


def test_levels_reach_from_the_least_to_the_largest():
    rows = torch.tensor([[-1.0, 0.0, 4.1], [2.0, 2.0, 2.0]])
    found, step_T1, least_T1 = levels(rows)
    assert found.tolist() == [[0, 50, 255], [0, 0, 0]]
    torch.testing.assert_close(step_T1[0], torch.tensor([0.02]))
    assert least_T1[:, 0].tolist() == [-1.0, 2.0]


@torch.no_grad()
def test_a_row_does_not_depend_on_its_neighbours():
    torch.manual_seed(0)
    layer = Int8Linear(torch.nn.Linear(64, 32))
    x_TI = torch.randn(40, 64) * torch.logspace(-3, 3, 40)[:, None]
    together = layer(x_TI)
    for row in range(40):
        assert torch.equal(layer(x_TI[row : row + 1])[0], together[row])
