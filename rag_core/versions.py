"""Versions of the packages that results depend on, for manifests."""

from __future__ import annotations

import functools
import platform
from importlib import metadata

PACKAGES = (
    "ragline apache-beam torch transformers faiss-cpu bm25s numpy pandas pyarrow sacrebleu rouge-score spacy"
).split()


@functools.cache
def package_versions() -> dict[str, str]:
    """Installed versions by package, Python's included; a package that is absent is not listed."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
