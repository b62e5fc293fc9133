"""Beam's file systems behind `rag_core.files`: whatever a store's client raises names the URL."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from beam_jobs.options import register_file_systems
from rag_core import files
from rag_core.errors import UnreachableError
from rag_core.stages import read_part


class NotFound(Exception):
    """As Google's client has it."""

    code = 404


@pytest.fixture(autouse=True)
def backends(monkeypatch):
    monkeypatch.setattr(files, "_backends", {})
    register_file_systems()


@pytest.mark.parametrize("error", [NotFound("404 GET"), FileNotFoundError("[Errno 2] Not found")])
def test_what_is_not_there(monkeypatch, error):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(FileSystems, "open", refuse)
    with pytest.raises(FileNotFoundError) as found:
        files.open_input("gs://b/q.jsonl")
    assert found.value.filename == "gs://b/q.jsonl"


@pytest.mark.parametrize("error", [BeamIOError("503"), ConnectionError("reset"), RuntimeError("no rights")])
@pytest.mark.parametrize("call", ["open", "match", "create", "exists"])
def test_what_cannot_be_used(monkeypatch, error, call):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(FileSystems, call, refuse)
    use = {
        "open": files.open_input,
        "match": files.list_files,
        "create": lambda url: files.write_bytes(url, b"x"),
        "exists": lambda url: files.delete([url]),
    }
    with pytest.raises(UnreachableError, match="s3://b/x: cannot be used: (503|reset|no rights)"):
        use[call]("s3://b/x")


class Breaks(io.BytesIO):
    """A stream that fails behind its first reads."""

    reads = 1

    def read(self, size=-1):
        self.reads -= 1
        if self.reads < 0:
            raise ConnectionError("reset by peer")
        return super().read(size)


def test_a_read_that_fails_is_no_fault_of_the_file(monkeypatch):
    """It must not end the run as "not readable as Parquet": the part is tried again."""
    buffer = io.BytesIO()
    pq.write_table(pa.table({"n": list(range(400_000))}), buffer, compression="none", use_dictionary=False)
    monkeypatch.setattr(FileSystems, "open", lambda *_, **__: Breaks(buffer.getvalue()))
    with pytest.raises(UnreachableError, match="s3://b/part.parquet: cannot be used: reset by peer"):
        list(read_part("s3://b/part.parquet"))
    monkeypatch.setattr(Breaks, "reads", 1000)
    assert sum(batch.num_rows for batch in read_part("s3://b/part.parquet")) == 400_000
    with files.open_input("s3://b/part.parquet") as stream:
        assert stream.seek(-4, io.SEEK_END) == len(buffer.getvalue()) - 4 and stream.read() == b"PAR1"
