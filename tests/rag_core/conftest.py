"""A store in memory, for what is not about any store in particular."""

from __future__ import annotations

import fnmatch
import io
import re

import pytest

from rag_core import files


class MemoryStore:
    """Keeps objects in a dict and counts what is read; `times` of single ones win over `time`."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.times: dict[str, float] = {}
        self.time, self.opened = 0.0, 0

    def open_input(self, url):
        self.opened += 1
        return io.BytesIO(self.objects[url])

    def upload(self, local_path, url):
        with open(local_path, "rb") as stream:
            self.objects[url] = stream.read()

    def match(self, pattern):
        regex = re.compile(fnmatch.translate(pattern))
        found = [(url, len(data)) for url, data in self.objects.items() if regex.match(url)]
        return [files.FileInfo(url, size, self.times.get(url, self.time)) for url, size in found]

    def delete(self, urls):
        for url in urls:
            self.objects.pop(url, None)


@pytest.fixture
def memory_store(monkeypatch) -> MemoryStore:
    """Serves `mem://`, empty at first."""
    store = MemoryStore()
    monkeypatch.setitem(files._backends, "mem", store)
    return store
