"""The vectors of one part of an embeddings run, read straight into one buffer.

Vectors are written plain and uncompressed, one page a row group. Decoding them as lists costs several
times their size in memory; read raw, they cost nothing beyond the block, and the page's checksum is
compared all the same. A part that is laid out otherwise is decoded.

Parquet: https://parquet.apache.org/docs/file-format/data-pages/ (the page header is Thrift's compact
protocol; the checksum is CRC-32 over the page after its header; levels come before the values).
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rag_core import files
from rag_core.errors import DataError

LONGEST_HEADER = 4096
_I32, _STRUCT = 5, 12


def part_blocks(
    url: str, block_rows: int, hidden: Collection[str] = (), buffer_ND: np.ndarray | None = None
) -> Iterator[tuple[list[str], np.ndarray]]:
    """A part less the passages in `hidden`, as (ids, vectors [N, D]): whole row groups, up to `block_rows`.

    A row group larger than `block_rows` is a block of its own. Blocks share one buffer, `buffer_ND` where
    one is given and fits: be done with one before taking the next. DataError names a file that is cut,
    damaged or no embeddings.
    """
    with files.open_input(url) as stream:
        try:
            yield from _blocks(stream, url, block_rows, hidden, buffer_ND)
        except (pa.ArrowException, OSError, KeyError) as error:
            raise DataError(f"{url}: not readable as Parquet: {error}") from error


def _blocks(
    stream: BinaryIO, url: str, block_rows: int, hidden: Collection[str], buffer_ND: np.ndarray | None
) -> Iterator[tuple[list[str], np.ndarray]]:
    parquet = pq.ParquetFile(stream, page_checksum_verification=True)
    metadata = parquet.metadata
    kind = parquet.schema_arrow.field("vector").type
    dim, dtype = kind.list_size, np.dtype(kind.value_type.to_pandas_dtype())
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    least = max([min(block_rows, sum(groups)), *groups], default=0)
    if buffer_ND is None or len(buffer_ND) < least or (buffer_ND.shape[1], buffer_ND.dtype) != (dim, dtype):
        buffer_ND = np.empty((least, dim), dtype)
    names: list[str] = []
    for number, n_rows in enumerate(groups):
        if len(names) + n_rows > len(buffer_ND):
            yield names, buffer_ND[: len(names)]
            names = []
        names_read = parquet.read_row_group(number, ["passage_id"], use_threads=False)
        ids = names_read.column("passage_id").to_pylist()
        target_ND = buffer_ND[len(names) : len(names) + n_rows]
        if not _read_plain(stream, metadata.row_group(number), target_ND, url):
            column = parquet.read_row_group(number, ["vector"]).column("vector").combine_chunks()
            target_ND[:] = column.flatten().to_numpy(zero_copy_only=False).reshape(n_rows, dim)
        kept = [row for row, name in enumerate(ids) if name not in hidden] if hidden else []
        if hidden and len(kept) < n_rows:
            ids = [ids[row] for row in kept]
            target_ND[: len(kept)] = target_ND[kept]
        names += ids
    if names:
        yield names, buffer_ND[: len(names)]


def _read_plain(stream: BinaryIO, group: Any, target_ND: np.ndarray, url: str) -> bool:
    """Read a row group's vectors into `target_ND`; False where they are not one plain, whole page."""
    columns = (group.column(i) for i in range(group.num_columns))
    chunk = next(c for c in columns if c.path_in_schema.partition(".")[0] == "vector")
    statistics = chunk.statistics
    nulls = statistics.null_count if statistics is not None and statistics.has_null_count else None
    if (
        chunk.compression != "UNCOMPRESSED"
        or not {"PLAIN"} <= set(chunk.encodings) <= {"PLAIN", "RLE"}
        or nulls != 0
        or chunk.num_values != target_ND.size
    ):
        return False
    stream.seek(chunk.data_page_offset)
    page = page_header(stream.read(min(LONGEST_HEADER, chunk.total_compressed_size)))
    header_bytes = chunk.total_compressed_size - page.get("bytes", 0)
    if page.get("values") != target_ND.size or not 0 < header_bytes < LONGEST_HEADER or "crc" not in page:
        return False
    values = memoryview(target_ND.reshape(-1).view(np.uint8))
    stream.seek(chunk.data_page_offset + header_bytes)
    levels = stream.read(page["bytes"] - len(values))
    _fill(stream, values, url)
    if zlib.crc32(values, zlib.crc32(levels)) != page["crc"]:
        raise DataError(f"{url}: its bytes have changed since it was written (page checksum); embed it again")
    return True


def page_header(data: bytes) -> dict[str, int]:
    """Of a Parquet page header: `bytes` of the page, `crc` if it has one, `values` of a data page.

    Fields 3, 4 and 5.1 of `PageHeader`; what cannot be read so is left out.
    """
    found: dict[str, int] = {}
    names = {3: "bytes", 4: "crc"}
    field, place = 0, 0
    while place < len(data):
        step, kind = divmod(data[place], 16)
        field, place = field + step, place + 1
        if not step or kind not in (_I32, _STRUCT):
            break
        if kind == _STRUCT:
            if field == 5 and data[place] == 16 + _I32:
                found["values"], _ = _zigzag(data, place + 1)
            break
        value, place = _zigzag(data, place)
        if field in names:
            found[names[field]] = value & 0xFFFFFFFF if field == 4 else value
    return found


def _zigzag(data: bytes, place: int) -> tuple[int, int]:
    """A signed variable-length integer, and where it ends."""
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return (value >> 1) ^ -(value & 1), place


def _fill(stream: BinaryIO, view: memoryview, url: str) -> None:
    """Fill a buffer from a stream; some stores' streams have `read` alone."""
    place = 0
    while place < len(view):
        if hasattr(stream, "readinto"):
            n = stream.readinto(view[place : place + (1 << 24)])
        else:
            data = stream.read(min(1 << 24, len(view) - place))
            n = len(data)
            view[place : place + n] = data
        if not n:
            raise DataError(f"{url}: ends before its vectors do")
        place += n
