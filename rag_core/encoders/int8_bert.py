"""BERT's forward pass with its linear layers in 8-bit integers, for encoding on a CPU.

Weights have one scale an output column, activations one range a token, taken anew for every token: so a
token's numbers, and a text's vector, do not depend on the texts beside it. Sums are exact 32-bit
integers; everything between the linear layers stays in float32.

Shapes: B texts · S tokens · T = B·S · H hidden size · A heads · I, O sizes of a linear layer.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional


class Int8Linear:
    """One or more linear layers that read the same input, as one integer product."""

    def __init__(self, *layers: torch.nn.Linear) -> None:
        weight_OI = torch.cat([layer.weight.detach().float() for layer in layers])
        self.bias_O = torch.cat([layer.bias.detach().float() for layer in layers])
        self.scale_O = weight_OI.abs().amax(1).clamp_(min=1e-30) / 127
        integers_OI = (weight_OI / self.scale_O[:, None]).round_().to(torch.int8)
        self._sums_O = (integers_OI.float() * self.scale_O[:, None]).sum(1)
        self._packed = torch.ops.onednn.qlinear_prepack(integers_OI, None)
        self._zeros_O = torch.zeros(len(self.bias_O), dtype=torch.int32)

    def __call__(self, input_TI: torch.Tensor) -> torch.Tensor:
        """[T, O] float32: with x = least + step·u, x·W = step·(u·W) + least·(column sums of W)."""
        rows_TI, step_T1, least_T1 = quantise_rows(input_TI)
        products_TO = torch.ops.onednn.qlinear_pointwise(
            rows_TI,
            1.0,
            0,
            self._packed,
            self.scale_O,
            self._zeros_O,
            None,
            1.0,
            0,
            torch.float32,
            "none",
            [],
            "",
        )
        torch.addcmul(self.bias_O, products_TO, step_T1, out=products_TO)
        return products_TO.addcmul_(least_T1, self._sums_O)


def quantise_rows(rows_TI: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Each row as u in 0..255 (uint8) [T, I], its step and its least number [T, 1]: x ≈ least + step·u.

    From the row's least to its largest number, because GELU gives hardly any below 0.
    """
    least_T1 = rows_TI.amin(1, keepdim=True)
    step_T1 = (rows_TI.amax(1, keepdim=True) - least_T1).clamp_(min=1e-30).div_(255)
    # The conversion cuts; half a step more makes it round to the nearest.
    steps_TI = (rows_TI - least_T1).mul_(step_T1.reciprocal()).add_(0.5)
    return steps_TI.to(torch.uint8), step_T1, least_T1


class Int8Bert:
    """`last_hidden_state` [B, S, H] of a `transformers.BertModel`, its linear layers in integers."""

    def __init__(self, bert: Any) -> None:
        if bert.config.hidden_act != "gelu":
            raise ValueError(f"hidden_act {bert.config.hidden_act!r}; int8 knows 'gelu'")
        self._embeddings = bert.embeddings
        self._heads = bert.config.num_attention_heads
        self._layers = [_Layer(layer) for layer in bert.encoder.layer]

    def __call__(
        self, input_ids_BS: torch.Tensor, mask_BS: torch.Tensor, types_BS: torch.Tensor | None
    ) -> torch.Tensor:
        hidden_BSH = self._embeddings(input_ids=input_ids_BS, token_type_ids=types_BS)
        shape = hidden_BSH.shape
        mask_B11S = mask_BS.bool()[:, None, None, :]
        hidden_TH = hidden_BSH.reshape(-1, shape[-1])
        for layer in self._layers:
            hidden_TH = layer(hidden_TH, mask_B11S, shape, self._heads)
        return hidden_TH.view(shape)


class _Layer:
    def __init__(self, layer: Any) -> None:
        attention = layer.attention.self
        self._query_key_value = Int8Linear(attention.query, attention.key, attention.value)
        self._attended = Int8Linear(layer.attention.output.dense)
        self._attention_norm = layer.attention.output.LayerNorm
        self._inner = Int8Linear(layer.intermediate.dense)
        self._outer = Int8Linear(layer.output.dense)
        self._output_norm = layer.output.LayerNorm

    def __call__(
        self, hidden_TH: torch.Tensor, mask_B11S: torch.Tensor, shape: torch.Size, heads: int
    ) -> torch.Tensor:
        batch, length, size = shape
        joined_T3H = self._query_key_value(hidden_TH)
        joined = joined_T3H.view(batch, length, 3, heads, size // heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*joined.unbind(0), attn_mask=mask_B11S)
        mixed_TH = mixed.transpose(1, 2).reshape(-1, size)
        hidden_TH = self._attention_norm(self._attended(mixed_TH).add_(hidden_TH))
        inner_TI = functional.gelu(self._inner(hidden_TH))
        return self._output_norm(self._outer(inner_TI).add_(hidden_TH))
