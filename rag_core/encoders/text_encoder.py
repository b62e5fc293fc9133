"""`TextEncoder`: texts in, vectors out; the same object serves jobs and training.

Shapes: N passages · Q questions · B rows of a batch · S tokens of a row · D numbers of a vector.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from rag_core import files
from rag_core.encoders._quiet import quiet_transformers
from rag_core.encoders.batch_plan import (
    CPU_TOKEN_BUDGET,
    GPU_TOKEN_BUDGET,
    INT8_TOKEN_BUDGET,
    Batch,
    plan_batches,
)
from rag_core.encoders.tokens import Tokens, tokenize, valid_texts
from rag_core.errors import DataError

METADATA_FILE = "ragline_encoder.json"


@dataclass(frozen=True, slots=True)
class EncoderSpec:
    """What, besides weights and tokenizer, decides a vector.

    pooling: "cls" (the first token's last hidden state, as DPR) or "mean" (over unmasked tokens).
    normalize: divide by the L2 norm. score_scale: inner product × this = logit of p(z|x).
    max_length: tokens, special ones included. pair_token_types: the text of a passage has token type
    1 (as BERT's pairs); else all are 0, as in DPR.
    """

    pooling: str
    normalize: bool
    score_scale: float
    max_length: int
    pair_token_types: bool

    def __post_init__(self) -> None:
        if self.pooling not in ("cls", "mean"):
            raise DataError(f"pooling {self.pooling!r}; known are 'cls' and 'mean'")
        if type(self.max_length) is not int or self.max_length < 4:
            raise DataError(f"max_length {self.max_length!r}; a passage needs at least 4 tokens")
        if not isinstance(self.score_scale, int | float) or not math.isfinite(self.score_scale):
            raise DataError(f"score_scale {self.score_scale!r}; need a finite number")
        if type(self.normalize) is not bool or type(self.pair_token_types) is not bool:
            raise DataError("normalize and pair_token_types; need true or false")


class NonFiniteVectorError(DataError):
    """The model gave NaN or Inf. `rows`: positions in the input whose vectors are not finite."""

    def __init__(self, name: str, rows: Sequence[int], labels: Sequence[str]) -> None:
        self.rows = tuple(rows)
        shown = ", ".join(labels[:3]) + (f" and {len(labels) - 3} more" if len(labels) > 3 else "")
        super().__init__(f"encoder {name}: vector with NaN or Inf for {shown}")


class EncodedCounts(threading.local):
    """Counted by each thread for itself, so that a job's part counts its own texts alone.

    truncated: texts cut at max_length. repaired: texts with lone surrogates, each read as U+FFFD; both
    of calls that gave vectors. tokens, padding: positions that went through the model, with a token and
    without.
    """

    def __init__(self) -> None:
        self.truncated = self.repaired = self.tokens = self.padding = 0


class TextEncoder:
    """A BERT-style encoder with its tokenizer and `EncoderSpec`; made by `load_encoder`.

    name: what it was loaded as. dim: numbers in a vector. fingerprint: SHA-256 over weights, tokenizer
    and spec; loaded_fingerprint: what it was at first. fits_passage_encoder: fingerprint of the passage
    encoder whose vectors the question vectors belong with (its own for a bi-encoder, None where unknown,
    kept through training).
    counts: what this thread has encoded with it, see `EncodedCounts`.
    """

    def __init__(
        self,
        name: str,
        module: torch.nn.Module,
        tokenizer: Any,
        spec: EncoderSpec,
        *,
        dim: int,
        fits_passage_encoder: str | None = None,
        is_bi_encoder: bool = True,
        compute: str = "fp32",
        forward: Callable[..., torch.Tensor] | None = None,
    ) -> None:
        from tokenizers import Tokenizer

        if tokenizer.padding_side != "right":
            raise DataError(f"{name}: tokenizer pads on the {tokenizer.padding_side}, need right")
        self.name = name
        self.module = module
        self.tokenizer = tokenizer
        self.spec = spec
        self.dim = dim
        self.compute = compute
        self.counts = EncodedCounts()
        self._forward = forward
        self._pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        # A private copy: whoever sets truncation or padding on `.tokenizer` does not change vectors.
        self._fast = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self._fast.no_padding()
        self._fast.no_truncation()
        self._tokenizer_digest = _tokenizer_digest(self._fast)
        self._digest_before_rounding: str | None = None
        self.loaded_fingerprint = self.fingerprint
        if fits_passage_encoder is None and is_bi_encoder:
            fits_passage_encoder = self.loaded_fingerprint
        self.fits_passage_encoder = fits_passage_encoder

    # -- identity ---------------------------------------------------------------------------------

    @property
    def max_length(self) -> int:
        return self.spec.max_length

    @property
    def score_scale(self) -> float:
        return self.spec.score_scale

    @property
    def device(self) -> torch.device:
        return next(self.module.parameters()).device

    @property
    def token_budget(self) -> int:
        """Tokens of a batch, padding included."""
        if self.device.type == "cuda":
            return GPU_TOKEN_BUDGET
        return INT8_TOKEN_BUDGET if self.compute == "int8" else CPU_TOKEN_BUDGET

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the weights as they are now, the tokenizer and the spec.

        `compute` does not enter: vectors of one model in fp32, bf16 and int8 belong together.
        """
        # Not remembered: a fused optimiser changes weights without a trace in their version counters.
        weights = self._digest_before_rounding or weights_digest(self.module)
        spec = asdict(self.spec)
        # How scores are scaled afterwards does not change a vector.
        del spec["score_scale"]
        identity = json.dumps([weights, self._tokenizer_digest, spec], sort_keys=True)
        return hashlib.sha256(identity.encode()).hexdigest()

    def keep_identity(self) -> None:
        """The weights are about to lose digits (see `compute`); the fingerprint stays what it is."""
        self._digest_before_rounding = weights_digest(self.module)

    # -- vectors ----------------------------------------------------------------------------------

    def encode_passages(
        self, titles: Sequence[str], texts: Sequence[str], *, ids: Sequence[str] | None = None
    ) -> np.ndarray:
        """Vectors [N, D] float32 of passages, read as `[CLS] title [SEP] text [SEP]`.

        `ids` break ties in the batch plan and name rows in errors. Raises NonFiniteVectorError.
        """
        if len(titles) != len(texts):
            raise ValueError(f"{len(titles)} titles but {len(texts)} texts")
        return self._encode([titles, texts], ids)

    def encode_questions(self, questions: Sequence[str], *, ids: Sequence[str] | None = None) -> np.ndarray:
        """Vectors [Q, D] float32 of questions, read as `[CLS] question [SEP]`."""
        return self._encode([questions], ids)

    def tokenize_questions(self, questions: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """`input_ids_BS` and `attention_mask_BS` (int64), padded to the longest, for `embed`."""
        texts, repaired = valid_texts(questions)
        tokens = tokenize(self._fast, self.max_length, texts)
        self._count_texts(tokens, repaired)
        length = max(map(len, tokens), default=0)
        input_ids_BS, mask_BS, _ = self._tensors(tokens, range(len(tokens)), length)
        return input_ids_BS, mask_BS

    def embed(
        self,
        input_ids_BS: torch.Tensor,
        attention_mask_BS: torch.Tensor,
        token_type_ids_BS: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """`vectors_BD` float32, differentiable; pooling and normalisation are inside.

        Token types are 0 where they are not given (questions; DPR's passages).
        """
        if self._forward is not None:
            pooled_BD = self._forward(input_ids_BS, attention_mask_BS, token_type_ids_BS)
        else:
            output = self.module(
                input_ids=input_ids_BS,
                attention_mask=attention_mask_BS,
                token_type_ids=token_type_ids_BS,
            )
            # DPR's classes pool, and project where they must, themselves.
            if "last_hidden_state" not in output:
                pooled_BD = output.pooler_output
            else:
                pooled_BD = pool(output.last_hidden_state, attention_mask_BS, self.spec.pooling)
        pooled_BD = pooled_BD.float()
        return torch.nn.functional.normalize(pooled_BD, dim=-1) if self.spec.normalize else pooled_BD

    def _encode(self, columns: Sequence[Sequence[str]], ids: Sequence[str] | None) -> np.ndarray:
        valid = [valid_texts(column) for column in columns]
        tokens = tokenize(self._fast, self.max_length, *(texts for texts, _ in valid))
        vectors_ND = np.empty((len(tokens), self.dim), dtype=np.float32)
        plan = plan_batches(
            list(map(len, tokens)), ids, token_budget=self.token_budget, max_length=self.max_length
        )
        was_training = self.module.training
        self.module.eval()
        try:
            with torch.inference_mode():
                for batch in plan:
                    self._encode_batch(tokens, batch, vectors_ND)
        finally:
            self.module.train(was_training)
        bad = np.flatnonzero(~np.isfinite(vectors_ND).all(axis=1)).tolist()
        if bad:
            labels = [ids[row] if ids is not None else f"row {row}" for row in bad]
            raise NonFiniteVectorError(self.name, bad, labels)
        # Only now: whoever takes the bad ones out and calls again shall not count the rest twice.
        self._count_texts(tokens, sum(repaired for _, repaired in valid))
        return vectors_ND

    def _encode_batch(self, tokens: list[Tokens], batch: Batch, vectors_ND: np.ndarray) -> None:
        input_ids_BS, mask_BS, types_BS = self._tensors(tokens, batch.rows, batch.length)
        device = self.device
        vectors_BD = self.embed(
            input_ids_BS.to(device),
            mask_BS.to(device),
            types_BS.to(device) if self.spec.pair_token_types else None,
        )
        vectors_ND[list(batch.rows)] = vectors_BD.cpu().numpy()
        n_tokens = sum(len(tokens[row]) for row in batch.rows)
        self.counts.tokens += n_tokens
        self.counts.padding += len(batch.rows) * batch.length - n_tokens

    def _tensors(
        self, tokens: list[Tokens], rows: Iterable[int], length: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        rows = list(rows)
        input_ids_BS = np.full((len(rows), length), self._pad_id, dtype=np.int64)
        mask_BS = np.zeros((len(rows), length), dtype=np.int64)
        types_BS = np.zeros((len(rows), length), dtype=np.int64)
        for i, row in enumerate(rows):
            n = len(tokens[row])
            input_ids_BS[i, :n] = tokens[row].ids_S
            types_BS[i, :n] = tokens[row].types_S
            mask_BS[i, :n] = 1
        return torch.from_numpy(input_ids_BS), torch.from_numpy(mask_BS), torch.from_numpy(types_BS)

    def _count_texts(self, tokens: list[Tokens], repaired: int) -> None:
        self.counts.truncated += sum(1 for t in tokens if t.truncated)
        self.counts.repaired += repaired

    # -- storage ----------------------------------------------------------------------------------

    def save_pretrained(self, directory: str | os.PathLike[str]) -> None:
        """Write weights (safetensors), config, tokenizer and `ragline_encoder.json` to a local directory.

        `load_encoder(directory)` gives an equal encoder; `transformers` opens the weights too.
        """
        if self.compute != "fp32":
            raise ValueError(f"{self.name}: loaded with compute={self.compute!r}; save needs fp32")
        directory = os.fspath(directory)
        os.makedirs(directory, exist_ok=True)
        metadata = {
            **asdict(self.spec),
            "fingerprint": self.fingerprint,
            "fits_passage_encoder": self.fits_passage_encoder,
        }
        with tempfile.TemporaryDirectory(dir=directory, prefix=files.ATTEMPT) as attempt:
            with quiet_transformers():
                self.module.save_pretrained(attempt)
            self.tokenizer.save_pretrained(attempt)
            files.write_json(files.join(attempt, METADATA_FILE), metadata)
            # config.json goes first and comes last: what has none is no model, whatever else lies there.
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(directory, "config.json"))
            for name in sorted(os.listdir(attempt), key=lambda name: name == "config.json"):
                os.replace(os.path.join(attempt, name), os.path.join(directory, name))


def pool(hidden_BSD: torch.Tensor, attention_mask_BS: torch.Tensor, pooling: str) -> torch.Tensor:
    """`[B, D]` from the last hidden states: the first token's, or the mean over unmasked tokens."""
    if pooling == "cls":
        return hidden_BSD[:, 0]
    mask_BS1 = attention_mask_BS.unsqueeze(-1).to(hidden_BSD.dtype)
    return (hidden_BSD * mask_BS1).sum(1) / mask_BS1.sum(1).clamp(min=1e-9)


def weights_digest(module: torch.nn.Module) -> str:
    """SHA-256 over names, types, shapes and bytes of all weights, in name order."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        tensor = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _tokenizer_digest(fast: Any) -> str:
    """SHA-256 over what decides token ids; truncation and padding are set per use and left out."""
    state = json.loads(fast.to_str())
    for key in ("version", "truncation", "padding", "decoder"):
        state.pop(key, None)
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
