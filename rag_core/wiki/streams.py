"""Bytes of a dump file → bytes of XML, whatever the compression, with the offset of any damage.

The format is told by the first bytes, never by the name. Every stream of a concatenated or
multistream file is read: one decompressor stops after the first and says nothing.
"""

from __future__ import annotations

import atexit
import bz2
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import rapidgzip

from rag_core.wiki.records import DumpError

CHUNK_BYTES = 1 << 18
# At most so much is unpacked at a time: a chunk of bzip2 may stand for a hundred gigabytes.
PIECE_BYTES = 1 << 22
MAX_HEADER_BYTES = 1 << 24
_GZIP_WINDOW = 31  # zlib's code for "gzip header and trailer"


class TrailingGarbage(Exception):
    """Bytes that belong to no stream follow the last one; whether that matters is the parser's to say."""

    def __init__(self, offset: int):
        super().__init__(offset)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class _Codec:
    name: str
    magic: bytes
    new_decoder: Callable[[], Any]


_BZIP2 = _Codec("bzip2", b"BZh", bz2.BZ2Decompressor)
_CODECS = (
    _BZIP2,
    _Codec("gzip", b"\x1f\x8b", lambda: zlib.decompressobj(_GZIP_WINDOW)),
)
_FOREIGN = {b"7z\xbc\xaf": "7z", b"\x28\xb5\x2f\xfd": "zstandard", b"PK\x03\x04": "zip", b"\xfd7zXZ": "xz"}


def xml_chunks(
    source: BinaryIO, name: str, byte_range: tuple[int, int] | None = None, local_path: str | None = None
) -> Iterator[bytes]:
    """Yield the XML in pieces. Raises `DumpError` where the data is damaged or ends inside a stream,
    and `TrailingGarbage` where something that is no stream follows a complete one.

    `byte_range` (start, end) reads only these bytes of the file; start must be a stream's first byte.
    `local_path`, where the source is a file of this machine, lets bzip2 be decoded on several cores.
    """
    start, end = byte_range if byte_range else (0, None)
    if byte_range:
        source.seek(start)
    raw = _raw_chunks(source, None if end is None else end - start)
    head = next(raw, b"")
    for magic, format_name in _FOREIGN.items():
        if head.startswith(magic):
            raise DumpError(name, start, f"{format_name} is not read; repack as .xml, .xml.bz2 or .xml.gz")
    for codec in _CODECS:
        if head.startswith(codec.magic):
            chunks = _decompress(codec, head, raw, name, start)
            large = codec is _BZIP2 and byte_range is None and len(head) == CHUNK_BYTES
            yield from _on_all_cores(local_path, chunks) if large and local_path else chunks
            return
    if byte_range:
        reason = "should start at a bzip2 or gzip stream" if head else "lies behind the end of the file"
        raise DumpError(name, start, f"the range to byte {end} {reason}")
    yield head
    yield from raw


def first_stream(source: BinaryIO, name: str) -> bytes:
    """The content of the first stream of a bzip2 file: the header of a multistream dump."""
    source.seek(0)
    decoder = bz2.BZ2Decompressor()
    content = b""
    while not decoder.eof:
        chunk = source.read(CHUNK_BYTES)
        try:
            content += b"".join(_pieces(decoder, chunk, MAX_HEADER_BYTES - len(content) + 1))
        except OSError as error:
            raise DumpError(name, 0, f"the first stream, the header, is damaged: {error}") from error
        if not chunk:
            raise DumpError(name, 0, "the file ends inside its first stream, the header")
        if len(content) > MAX_HEADER_BYTES:
            raise DumpError(name, 0, f"the first stream, the header, is above {MAX_HEADER_BYTES:,} bytes")
    return content


def _on_all_cores(path: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes as `chunks`, from rapidgzip: faster on one core, and it finds the blocks inside a
    single stream, so that other cores decode ahead.

    It cannot say where a file is damaged, nor hand over all that precedes the damage. Then, and only
    then, `chunks` is read after all: from the start, up to what has been yielded already.
    """
    n_yielded = 0
    try:
        with _closed_at_exit(rapidgzip.IndexedBzip2File(path, parallelization=_n_cores())) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
                n_yielded += len(chunk)
            end = stream.tell_compressed() // 8
        if end < os.path.getsize(path):
            raise TrailingGarbage(end)
        return
    except (RuntimeError, ValueError):
        pass
    for chunk in chunks:
        yield chunk[n_yielded:]
        n_yielded = max(0, n_yielded - len(chunk))


@contextmanager
def _closed_at_exit(stream: Any) -> Iterator[Any]:
    """Close the stream with the block, or when the interpreter ends while the block is still waiting.

    rapidgzip's threads abort a process that ends with one of its files open, as it does when somebody
    takes a few pages and leaves the iterator lying about.
    """
    atexit.register(stream.close)
    try:
        yield stream
    finally:
        atexit.unregister(stream.close)
        stream.close()


def _n_cores() -> int:
    """Cores this process may use; more than four gain nothing, XML parsing being the slower half."""
    return min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _raw_chunks(source: BinaryIO, n_bytes: int | None) -> Iterator[bytes]:
    """Read `source` to its end, or `n_bytes` of it."""
    while n_bytes is None or n_bytes > 0:
        chunk = source.read(CHUNK_BYTES if n_bytes is None else min(CHUNK_BYTES, n_bytes))
        if not chunk:
            return
        if n_bytes is not None:
            n_bytes -= len(chunk)
        yield chunk


def _decompress(
    codec: _Codec, pending: bytes, raw: Iterator[bytes], name: str, offset: int
) -> Iterator[bytes]:
    """Decompress stream after stream. `offset` is where `pending` begins in the file."""
    while pending:
        # A stream starts here. The magic may be split between two reads.
        while len(pending) < len(codec.magic) and (more := next(raw, b"")):
            pending += more
        if not pending.startswith(codec.magic):
            raise TrailingGarbage(offset)
        decoder = codec.new_decoder()
        while not decoder.eof:
            if not pending and not (pending := next(raw, b"")):
                raise DumpError(name, offset, f"the file ends inside a {codec.name} stream: it is cut off")
            try:
                yield from _pieces(decoder, pending)
            except (OSError, zlib.error) as error:
                raise DumpError(
                    name, offset, f"damaged {codec.name} data within the next {len(pending)} bytes: {error}"
                ) from error
            offset += len(pending) - len(decoder.unused_data)
            pending = b""
        pending = decoder.unused_data or next(raw, b"")


def _pieces(decoder: Any, data: bytes, limit: int | None = None) -> Iterator[bytes]:
    """What `data` unpacks to, at most `PIECE_BYTES` at a time; stops once `limit` bytes are there."""
    n = 0
    while limit is None or n < limit:
        piece = decoder.decompress(data, PIECE_BYTES)
        if piece:
            yield piece
        n += len(piece)
        data = getattr(decoder, "unconsumed_tail", b"")  # zlib hands it back, bzip2 keeps it
        waiting = bool(data) or len(piece) == PIECE_BYTES or not getattr(decoder, "needs_input", True)
        if decoder.eof or not waiting:
            return
