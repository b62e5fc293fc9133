"""How a target is laid out in a labels row: one rule for training, decoding and rescoring.

A row is the decoder's input sequence, as in `transformers`' RAG: `start [bos] t1 … tn [eos]`, padded
on the right. The start token is conditioned on and never scored; every later token but padding is.
BART-large was trained with a BOS behind its start token, BART-base without: which one holds is a
property of the checkpoint, so it is stored there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class TargetLayout:
    """Token ids of a labels row; `bos` is None where targets have no BOS behind the start token."""

    start: int
    bos: int | None
    eos: int
    pad: int

    @classmethod
    def from_config(cls, config: Mapping[str, Any], generation: Mapping[str, Any]) -> TargetLayout:
        """Read the layout from a generator's raw `config.json` and `generation_config.json`.

        Raw, because `transformers` 5 drops generation settings from configs. The generation config
        wins where it names a value. Raises ValueError when start, EOS or padding is nowhere given.
        """

        def value(name: str) -> int | None:
            found = generation.get(name)
            found = config.get(name) if found is None else found
            return found[0] if isinstance(found, list) else found

        ids = {"eos": value("eos_token_id"), "pad": value("pad_token_id")}
        ids["start"] = value("decoder_start_token_id")
        if ids["start"] is None and config.get("model_type") == "t5":
            ids["start"] = ids["pad"]  # T5 starts from padding; its older configs do not say so
        missing = [name for name, token in ids.items() if token is None]
        if missing:
            raise ValueError(
                f"the generator's config names no {', '.join(missing)} token; "
                "decoder_start_token_id, eos_token_id and pad_token_id are needed"
            )
        return cls(bos=value("forced_bos_token_id"), **ids)

    @property
    def prefix(self) -> list[int]:
        """What stands before the first token of the text."""
        return [self.start] if self.bos is None else [self.start, self.bos]

    def row(self, token_ids: Sequence[int], *, label: bool = False) -> list[int]:
        """The labels row of a text. `label=True`: start and the label's token alone (FEVER)."""
        if label:
            return [self.start, *token_ids]
        return [*self.prefix, *token_ids, self.eos]

    def text_positions(self, row: Sequence[int]) -> list[int]:
        """Where the text's tokens stand in a row: behind start and BOS, before EOS, padding left out."""
        prefix = self.prefix
        begin = len(prefix) if list(row[: len(prefix)]) == prefix else 1
        end = next((i for i in range(begin, len(row)) if row[i] == self.eos), len(row))
        return [i for i in range(begin, end) if row[i] != self.pad]

    def text_ids(self, row: Sequence[int]) -> list[int]:
        """The text's tokens of a row: without start, BOS, EOS and padding."""
        return [row[i] for i in self.text_positions(row)]

    def batch(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        """Rows of any lengths as labels_BT, padded on the right."""
        import torch

        width = max((len(r) for r in rows), default=1)
        labels_BT = torch.full((len(rows), width), self.pad, dtype=torch.long)
        for i, row in enumerate(rows):
            labels_BT[i, : len(row)] = torch.tensor(row, dtype=torch.long)
        return labels_BT

    def to_json(self) -> dict[str, int | None]:
        return asdict(self)
