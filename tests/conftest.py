"""Fixtures that all tests share: where the public data and cases lie, if they lie here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
SHARED = Path(__file__).resolve().parents[1] / ".." / "shared"


def _shared(name: str) -> Path:
    path = (SHARED / name).resolve()
    if not path.is_dir():
        pytest.skip(f"public data not found: {path}")
    return path


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real public data beside the checkout (its README says what); skips where it is absent."""
    return _shared("data")


@pytest.fixture(scope="session")
def shared_cases() -> Path:
    """Inputs with right values from public bug reports; skips where they are absent."""
    return _shared("cases")
