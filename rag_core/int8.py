"""Linear layers in 8-bit integers on a CPU with dot products of bytes (VNNI).

Weights have one scale an output column, activations one scale a token, taken anew for every token: so
a token's numbers do not depend on the tokens beside it. Sums are exact 32-bit integers.

Shapes: T tokens · I, O sizes of a linear layer.
"""

from __future__ import annotations

import torch

GELU_LEAST = -0.17  # GELU's minimum is -0.16997: one range for all, and no pass to look for it
_ZERO = 128  # where 0 lies among the 256 levels of a range that is symmetric about it


def is_supported(device: torch.device) -> bool:
    """Whether products of bytes pay on this device."""
    return device.type == "cpu" and torch.cpu._is_vnni_supported()


class Int8Linear(torch.nn.Module):
    """One or more linear layers that read the same input, as one integer product; float32 in and out.

    after_gelu: the input comes from GELU and is nobody else's; it is overwritten.
    """

    weight = None  # `transformers` asks for its type

    def __init__(self, *layers: torch.nn.Linear, after_gelu: bool = False) -> None:
        super().__init__()
        weight_OI = torch.cat([layer.weight.detach().float() for layer in layers])
        biases = [_bias(layer) for layer in layers]
        self._scale_O = weight_OI.abs().amax(1).clamp_(min=1e-30) / 127
        integers_OI = (weight_OI / self._scale_O[:, None]).round_().to(torch.int8)
        sums_O = (integers_OI.double().sum(1) * self._scale_O).float()
        self._after_gelu = after_gelu
        # x·W = step·(u·W) + least·(column sums of W), and for the symmetric range step·(u·W − 128·sums).
        self._bias_O = torch.cat(biases) + (GELU_LEAST * sums_O if after_gelu else 0.0)
        self._shift_O = None if after_gelu else -float(_ZERO) * sums_O
        self._packed = torch.ops.onednn.qlinear_prepack(integers_OI, None)
        self._zeros_O = torch.zeros(len(self._bias_O), dtype=torch.int32)

    def forward(self, input_XI: torch.Tensor) -> torch.Tensor:
        """[..., O] from [..., I]."""
        input_TI = input_XI.flatten(0, -2)
        levels_TI, step_T1 = gelu_levels(input_TI) if self._after_gelu else symmetric_levels(input_TI)
        products_TO = torch.ops.onednn.qlinear_pointwise(
            levels_TI, 1.0, 0, self._packed, self._scale_O, self._zeros_O, self._shift_O,
            1.0, 0, torch.float32, "none", [], "",
        )  # fmt: skip
        torch.addcmul(self._bias_O, products_TO, step_T1, out=products_TO)
        return products_TO.unflatten(0, input_XI.shape[:-1])


def symmetric_levels(rows_TI: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Each row as u in 1..255 (uint8) [T, I] and its step [T, 1]: x ≈ step·(u − 128)."""
    largest_T1 = torch.maximum(rows_TI.amax(1, keepdim=True), -rows_TI.amin(1, keepdim=True))
    step_T1 = largest_T1.clamp_(min=1e-30).div_(127)
    # The conversion cuts; half a level more makes it round to the nearest.
    return (rows_TI * step_T1.reciprocal()).add_(_ZERO + 0.5).to(torch.uint8), step_T1


def gelu_levels(rows_TI: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Each row of GELU's outputs as u in 0..255 (uint8) and its step: x ≈ GELU_LEAST + step·u. Overwrites."""
    step_T1 = (rows_TI.amax(1, keepdim=True) - GELU_LEAST).clamp_(min=1e-30).div_(255)
    steps_T1 = step_T1.reciprocal()
    return rows_TI.mul_(steps_T1).add_(steps_T1.mul(-GELU_LEAST).add_(0.5)).to(torch.uint8), step_T1


def _bias(layer: torch.nn.Linear) -> torch.Tensor:
    return torch.zeros(layer.out_features) if layer.bias is None else layer.bias.detach().float()
