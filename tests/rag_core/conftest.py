"""A store in memory, for what is not about any store in particular."""

from __future__ import annotations

import fnmatch
import io
import re

import pytest

from rag_core import files


class MemoryStore:
    """A backend that keeps objects in a dict."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def open_input(self, url):
        return io.BytesIO(self.objects[url])

    def upload(self, local_path, url):
        with open(local_path, "rb") as stream:
            self.objects[url] = stream.read()

    def match(self, pattern):
        regex = re.compile(fnmatch.translate(pattern))
        return [files.FileInfo(u, len(b), 0.0) for u, b in self.objects.items() if regex.match(u)]

    def delete(self, urls):
        for url in urls:
            self.objects.pop(url, None)


@pytest.fixture
def memory_store(monkeypatch) -> MemoryStore:
    """Serves `mem://`, empty at first."""
    store = MemoryStore()
    monkeypatch.setitem(files._backends, "mem", store)
    return store
