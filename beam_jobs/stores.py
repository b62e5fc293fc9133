"""Beam's file systems as a backend of `rag_core.files`: gs://, s3://, with errors that name the URL."""

from __future__ import annotations

import contextlib
import glob
import io
from collections.abc import Iterator
from typing import Any, BinaryIO

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from rag_core import files
from rag_core.errors import UnreachableError


@contextlib.contextmanager
def reachable(url: str) -> Iterator[None]:
    """Turn what a store's client raises (each has errors of its own) into one of two errors naming the URL.

    FileNotFoundError for what is not there, UnreachableError for all else: no client, no network, no right.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, FileNotFoundError) or getattr(error, "code", None) == 404:
            raise FileNotFoundError(2, "No such file", url) from error
        raise UnreachableError(f"{url}: cannot be used: {error}") from error


class StoreStream(io.RawIOBase):
    """What a store gives to read: it may fail in the middle too, and that is no fault of the file."""

    def __init__(self, stream: Any, url: str) -> None:
        self._stream, self._url = stream, url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with reachable(self._url):
            data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with reachable(self._url):
            self._stream.seek(offset, whence)
            return int(self._stream.tell())

    def tell(self) -> int:
        return int(self._stream.tell())

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


class BeamBackend:
    """Beam's `FileSystems` as a backend of `rag_core.files`."""

    def open_input(self, url: str) -> BinaryIO:
        with reachable(url):
            stream = FileSystems.open(url, compression_type=CompressionTypes.UNCOMPRESSED)
        return io.BufferedReader(StoreStream(stream, url), 1 << 20)

    def upload(self, local_path: str, url: str) -> None:
        with open(local_path, "rb") as source, reachable(url):
            target = FileSystems.create(url, compression_type=CompressionTypes.UNCOMPRESSED)
            while block := source.read(1 << 22):
                target.write(block)
            target.close()

    def match(self, pattern: str) -> list[files.FileInfo]:
        with reachable(pattern):
            found = FileSystems.match([pattern])[0].metadata_list
        return [files.FileInfo(m.path, m.size_in_bytes, m.last_updated_in_seconds or 0.0) for m in found]

    def delete(self, urls: list[str]) -> None:
        with reachable(urls[0]):
            present = [url for url in urls if FileSystems.exists(url)]
            # Beam takes a name on gs:// for a pattern, and would delete what else matches it.
            FileSystems.delete([glob.escape(url) if url.startswith("gs://") else url for url in present])
