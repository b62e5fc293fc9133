"""Linear layers in 8-bit integers on a CPU with dot products of bytes (VNNI).

Weights have one scale an output column, activations one scale a token, taken anew for every token: so
a token's numbers do not depend on the tokens beside it. Sums are exact 32-bit integers.

Shapes: T tokens · I, O sizes of a linear layer.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from rag_core.errors import UsageError

ROWS = 64  # products are of multiples of so many rows: every shape costs a kernel of its own, which is kept
GELU_LEAST = -0.17  # GELU's minimum is -0.16997: one range for all, and no pass to look for it


def is_supported(device: torch.device) -> bool:
    """Whether products of bytes pay on this device."""
    return device.type == "cpu" and torch.cpu._is_vnni_supported()


def check_supported(device: torch.device) -> None:
    """Raise UsageError where products of bytes cannot be had."""
    if not is_supported(device):
        raise UsageError(f"compute int8: needs a CPU with VNNI, this is {device.type}; use bf16 or fp32")


class Int8Linear(torch.nn.Module):
    """One or more linear layers that read the same input, as one integer product; float32 in and out.

    With x = least + step·u, u in 0..255: x·W = step·(u·W) + least·(column sums of W).
    after_gelu: the input comes from GELU and is nobody else's; it is overwritten.
    """

    weight = None  # `transformers` asks for its type

    def __init__(self, *layers: torch.nn.Linear, after_gelu: bool = False) -> None:
        super().__init__()
        weight_OI = torch.cat([layer.weight.detach().float() for layer in layers])
        self._bias_O = torch.cat([_bias(layer) for layer in layers])
        self._scale_O = weight_OI.abs().amax(1).clamp_(min=1e-30) / 127
        integers_OI = (weight_OI / self._scale_O[:, None]).round_().to(torch.int8)
        self._sums_O = (integers_OI.double().sum(1) * self._scale_O).float()
        self._after_gelu = after_gelu
        if after_gelu:  # `least` is the same for all tokens
            self._bias_O += GELU_LEAST * self._sums_O
        self._packed = torch.ops.onednn.qlinear_prepack(integers_OI, None)
        self._zeros_O = torch.zeros(len(self._bias_O), dtype=torch.int32)

    def forward(self, input_XI: torch.Tensor) -> torch.Tensor:
        """[..., O] from [..., I]."""
        input_TI = input_XI.flatten(0, -2)
        if self._after_gelu:
            levels_TI, step_T1 = gelu_levels(input_TI)
        else:
            levels_TI, step_T1, least_T1 = levels(input_TI)
        T = len(levels_TI)
        products_TO = torch.ops.onednn.qlinear_pointwise(
            F.pad(levels_TI, (0, 0, 0, -T % ROWS)), 1.0, 0, self._packed, self._scale_O, self._zeros_O, None,
            1.0, 0, torch.float32, "none", [], "",
        )[:T]  # fmt: skip
        torch.addcmul(self._bias_O, products_TO, step_T1, out=products_TO)
        if not self._after_gelu:
            products_TO.addcmul_(least_T1, self._sums_O)
        return products_TO.unflatten(0, input_XI.shape[:-1])


def levels(rows_TI: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Each row as u in 0..255 (uint8) [T, I], its step and its least number [T, 1]: x ≈ least + step·u.

    From the row's least to its largest number: a range about 0 would waste half of its levels on rows
    with one large number, which encoders have, and cost four times the error.
    """
    least_T1 = rows_TI.amin(1, keepdim=True)
    step_T1 = (rows_TI.amax(1, keepdim=True) - least_T1).clamp_(min=1e-30).div_(255)
    # The conversion cuts; half a level more makes it round to the nearest.
    steps_TI = (rows_TI - least_T1).mul_(step_T1.reciprocal()).add_(0.5)
    return steps_TI.to(torch.uint8), step_T1, least_T1


def gelu_levels(rows_TI: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Each row of GELU's outputs as u in 0..255 (uint8) and its step: x ≈ GELU_LEAST + step·u. Overwrites."""
    step_T1 = (rows_TI.amax(1, keepdim=True) - GELU_LEAST).clamp_(min=1e-30).div_(255)
    steps_T1 = step_T1.reciprocal()
    return rows_TI.mul_(steps_T1).add_(steps_T1.mul(-GELU_LEAST).add_(0.5)).to(torch.uint8), step_T1


def _bias(layer: torch.nn.Linear) -> torch.Tensor:
    return torch.zeros(layer.out_features) if layer.bias is None else layer.bias.detach().float()
