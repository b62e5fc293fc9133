"""Digests: of rows, of values, of files.

A *row digest* stands for the rows of a part and for nothing else: not for how they were cut into
batches or row groups, nor for compression, dictionary encoding or the Parquet writer's version. Two
runs have equal content when their row digests are equal, part by part.

Each column feeds streams that are independent of batch boundaries (validity, lengths, bytes of the
values), one running SHA-256 a stream; the digest of the part is the hash of the streams' hashes.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rag_core import files

_BLOCK = 1 << 22


class RowDigest:
    """Running digest of the rows of one schema; `update` by batch, `hexdigest` at the end."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._streams: dict[str, Any] = {}
        self.rows = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch. Raises ValueError when its schema is another."""
        if not batch.schema.equals(self._schema):
            raise ValueError(f"batch of schema {batch.schema} in a digest of {self._schema}")
        self.rows += batch.num_rows
        for name, column in zip(batch.schema.names, batch.columns):
            self._array(name, column)

    def _feed(self, stream: str, data: Any) -> None:
        self._streams.setdefault(stream, hashlib.sha256()).update(data)

    def _array(self, name: str, array: pa.Array) -> None:
        kind = array.type
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        self._feed(f"{name}/valid", np.ascontiguousarray(valid).view(np.uint8))
        if array.null_count:
            array = array.drop_null()
        if pa.types.is_struct(kind):
            for index, field in enumerate(kind):
                self._array(f"{name}.{field.name}", pc.struct_field(array, [index]))
        elif pa.types.is_fixed_size_list(kind):
            self._array(f"{name}[]", array.flatten())
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            self._lengths(name, pc.list_value_length(array))
            self._array(f"{name}[]", array.flatten())
        elif pa.types.is_string(kind) or pa.types.is_binary(kind):
            self._lengths(name, pc.binary_length(array))
            self._feed(f"{name}/bytes", _string_bytes(array))
        elif pa.types.is_fixed_size_binary(kind):
            self._feed(f"{name}/bytes", b"".join(array.to_pylist()))
        elif pa.types.is_boolean(kind):
            self._feed(f"{name}/bytes", array.to_numpy(zero_copy_only=False).view(np.uint8))
        elif pa.types.is_primitive(kind):
            self._feed(f"{name}/bytes", np.ascontiguousarray(array.to_numpy(zero_copy_only=False)))
        else:
            raise TypeError(f"column {name}: no digest is defined for {kind}")

    def _lengths(self, name: str, lengths: pa.Array) -> None:
        self._feed(f"{name}/lengths", np.ascontiguousarray(lengths.to_numpy(zero_copy_only=False), np.int64))

    def hexdigest(self) -> str:
        """64 hexadecimal digits for all rows so far, the schema included."""
        parts = [f"{field.name}:{_kind(field.type)}" for field in self._schema]
        parts += [f"{name}={self._streams[name].hexdigest()}" for name in sorted(self._streams)]
        return hashlib.sha256("\n".join([*parts, str(self.rows)]).encode()).hexdigest()


def _kind(kind: pa.DataType) -> str:
    """A type as the digest sees it: what Parquet may rename or relax on the way (list items) left out."""
    if pa.types.is_struct(kind):
        return "{" + ",".join(f"{field.name}:{_kind(field.type)}" for field in kind) + "}"
    if pa.types.is_fixed_size_list(kind):
        return f"[{_kind(kind.value_type)}*{kind.list_size}]"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"[{_kind(kind.value_type)}]"
    return str(kind)


def _string_bytes(array: pa.Array) -> memoryview | bytes:
    """The values' bytes, back to back, without the ones a slice hides."""
    _, offsets, data = array.buffers()
    if data is None or len(array) == 0:
        return b""
    bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return memoryview(data)[int(bounds[0]) : int(bounds[-1])]


def digest_of(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form (sorted keys, no spaces)."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_digest(url: str) -> str:
    """SHA-256 of a file's bytes, read in blocks."""
    digest = hashlib.sha256()
    with files.open_input(url) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
