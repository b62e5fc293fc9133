"""Which texts are encoded together, and in what shape.

The plan is a function of the lengths and ids alone: not of the number of workers, not of the order
in which texts arrive. Texts are sorted by (length, id) and cut into batches; a batch is as long as
its longest text, rounded up to one of a few fixed lengths, and holds as many texts as the token
budget allows at that length. So only the last batch of a plan is not full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LENGTH_STEP = 16
# Small batches keep a layer's activations in a core's cache; a CPU gains nothing from larger ones.
CPU_TOKEN_BUDGET = 2048
INT8_TOKEN_BUDGET = 512  # integers are quick: the passes between the products count, and wait for memory
GPU_TOKEN_BUDGET = 65536


@dataclass(frozen=True, slots=True)
class Batch:
    """`rows`: positions in the input, longest text first; `length`: tokens each row is padded to."""

    rows: tuple[int, ...]
    length: int


def plan_batches(
    lengths: Sequence[int],
    ids: Sequence[str] | None = None,
    *,
    token_budget: int = CPU_TOKEN_BUDGET,
    max_length: int = 512,
) -> list[Batch]:
    """Cut texts of the given token counts into batches, longest first.

    `ids` break ties of length; without them the position does. Raises ValueError when a length lies
    outside 1..max_length (texts are truncated before they are planned).
    """
    if ids is not None and len(ids) != len(lengths):
        raise ValueError(f"{len(lengths)} lengths but {len(ids)} ids")
    for row, length in enumerate(lengths):
        if not 1 <= length <= max_length:
            raise ValueError(f"row {row}: {length} tokens; lengths must lie in 1..{max_length}")
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], ids[row] if ids else row))
    batches = []
    start = 0
    while start < len(order):
        longest = lengths[order[start]]
        length = min(-(-longest // LENGTH_STEP) * LENGTH_STEP, max_length)
        size = max(1, token_budget // length)
        batches.append(Batch(tuple(order[start : start + size]), length))
        start += size
    return batches


def padding_share(lengths: Sequence[int], batches: Sequence[Batch]) -> float:
    """The share of encoded positions that hold padding, 0 for an empty plan."""
    positions = sum(len(batch.rows) * batch.length for batch in batches)
    return 1.0 - sum(lengths) / positions if positions else 0.0
