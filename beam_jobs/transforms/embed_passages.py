"""What embed does with a part: passages in, vectors out, the ones without a vector to the dead letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from beam_jobs.handlers import check_unchanged, once_per_process, shared_encoder
from rag_core.parts import PartLog
from rag_core.reuse import OldVectors
from rag_core.schemas import Passage, embeddings_schema
from rag_core.stages import read_part


@dataclass(frozen=True)
class EmbedWorker:
    """`PartWorker` of the embed job. `encoder` is a name; the model is loaded once per process."""

    encoder: str
    compute: str
    dtype: str
    dim: int
    reuse: str | None = None
    """A finished embeddings run by the same encoder: its vectors are copied, by content hash."""
    fingerprint: str = ""
    """Of the encoder that the run was planned with; another one is an error."""

    @property
    def schema(self) -> pa.Schema:
        return embeddings_schema(self.dim, self.dtype)

    def setup(self) -> None:
        shared_encoder(self.encoder, self.compute)

    def rows(self, source: dict[str, Any], log: PartLog) -> Iterator[pa.RecordBatch]:
        encoder = self._checked_encoder()
        table = pa.Table.from_batches(
            read_part(
                source["url"],
                ["passage_id", "title", "text", "content_hash"],
                row_groups=source["row_groups"],
            )
        )
        passages = [Passage(**row) for row in table.select(["passage_id", "title", "text"]).to_pylist()]
        log.read += len(passages)
        old = old_vectors(self.reuse).take(table["content_hash"].to_pylist()) if self.reuse else {}
        fresh = [row for row in range(len(passages)) if row not in old]
        before = _counters(encoder)
        fresh_vectors, fresh_faults = embed_passages(encoder, [passages[row] for row in fresh])
        vectors_ND = np.zeros((len(passages), self.dim), np.float32)
        vectors_ND[fresh] = fresh_vectors
        for row, vector in old.items():
            vectors_ND[row] = vector
        self._checked_encoder()
        faults = {fresh[i]: reason for i, reason in fresh_faults.items()}
        stored_ND, unfit = as_stored(vectors_ND, self.dtype)
        faults = {**unfit, **faults}
        log.stats.update(_counters(encoder) - before)
        log.stats["reused"] += len(old)
        for row, reason in sorted(faults.items()):
            log.reject(passages[row].passage_id, reason)
        good = [row for row in range(len(passages)) if row not in faults]
        log.written += len(good)
        table = table.take(pa.array(good, pa.int64()))  # typed: there may be none
        numbers = pa.array(stored_ND[good].reshape(-1))
        item = self.schema.field("vector").type
        columns = [
            table["passage_id"].combine_chunks(),
            table["content_hash"].combine_chunks(),
            pa.FixedSizeListArray.from_arrays(numbers, type=item),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _checked_encoder(self) -> Any:
        encoder = shared_encoder(self.encoder, self.compute)
        check_unchanged(self.encoder, encoder.loaded_fingerprint, self.fingerprint)
        return encoder


def as_stored(vectors_ND: np.ndarray, dtype: str) -> tuple[np.ndarray, dict[int, str]]:
    """Vectors in the dtype of the Parquet, and the rows that do not survive it, with the reason.

    float16 ends at 65,504 ("float16_overflow") and has nothing but zero below 3e-8 ("zero_vector").
    """
    with np.errstate(over="ignore"):
        stored_ND = vectors_ND.astype(dtype)
    faults = dict.fromkeys(np.flatnonzero(~stored_ND.any(axis=1)).tolist(), "zero_vector")
    infinite = np.flatnonzero(~np.isfinite(stored_ND).all(axis=1)).tolist()
    return stored_ND, {**faults, **dict.fromkeys(infinite, f"{dtype}_overflow")}


def _counters(encoder: Any) -> Counter[str]:
    return Counter(vars(encoder.counts))


def tokens_and_padding(counts: Mapping[str, int], seconds: float) -> str:
    """`1,234 tokens/s a process, padding 2.1%`; `seconds` of work, summed over processes."""
    tokens, padding = counts.get("tokens", 0), counts.get("padding", 0)
    if not tokens or not seconds:
        return "nothing computed"
    return f"{tokens / seconds:,.0f} tokens/s a process, padding {padding / (tokens + padding):.1%}"


def reused_and_computed(counts: Mapping[str, int], seconds: float) -> str:
    """The same with `--reuse`, and the share of passages that was not to be copied."""
    read, reused = counts.get("read", 0), counts.get("reused", 0)
    share = (read - reused) / read if read else 0.0
    return f"computed: {read - reused:,} ({share:.1%}); {tokens_and_padding(counts, seconds)}"


old_vectors = once_per_process(OldVectors)


def embed_passages(encoder: Any, passages: Sequence[Passage]) -> tuple[np.ndarray, dict[int, str]]:
    """Vectors [N, D] float32 of passages, and the rows that have none, with the reason.

    A row is at fault when its vector holds NaN or Inf ("not_finite"), is zero ("zero_vector"), or when
    the encoder raises on it ("encoder_error: …"), which is found by halving. The other rows keep the
    vectors they would have had. What the machine cannot do (memory, a broken device) is nobody's fault
    among the rows, and is raised.
    """
    vectors_ND = np.zeros((len(passages), encoder.dim), np.float32)
    faults: dict[int, str] = {}
    _embed_rows(encoder, passages, list(range(len(passages))), vectors_ND, faults)
    return vectors_ND, faults


def _embed_rows(
    encoder: Any, passages: Sequence[Passage], rows: list[int], vectors_ND: np.ndarray, faults: dict[int, str]
) -> None:
    from rag_core.encoders import NonFiniteVectorError

    if not rows:
        return
    chosen = [passages[row] for row in rows]
    try:
        vectors = encoder.encode_passages(
            [p.title for p in chosen], [p.text for p in chosen], ids=[p.passage_id for p in chosen]
        )
    except NonFiniteVectorError as error:
        bad = {rows[i] for i in error.rows}
        faults.update(dict.fromkeys(bad, "not_finite"))
        _embed_rows(encoder, passages, [row for row in rows if row not in bad], vectors_ND, faults)
        return
    except (ValueError, TypeError, IndexError, RuntimeError) as error:
        if _is_the_machines(error):
            raise
        if len(rows) == 1:
            faults[rows[0]] = f"encoder_error: {type(error).__name__}"
            return
        half = len(rows) // 2
        _embed_rows(encoder, passages, rows[:half], vectors_ND, faults)
        _embed_rows(encoder, passages, rows[half:], vectors_ND, faults)
        return
    vectors_ND[rows] = vectors
    zero = np.flatnonzero(~vectors.any(axis=1))
    faults.update({rows[i]: "zero_vector" for i in zero})


def _is_the_machines(error: Exception) -> bool:
    """Whether torch complains of memory or of a device: the next passages would fail as this one did."""
    text = str(error)
    signs = ("out of memory", "allocate memory", "CUDA error", "CUBLAS_STATUS", "CUDNN_STATUS", "device-side")
    return type(error).__name__ in ("AcceleratorError", "OutOfMemoryError") or any(s in text for s in signs)
