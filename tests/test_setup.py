"""The distribution holds every package of the product, and the data that they read."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SETUP = (ROOT / "setup.py").read_text()


def test_every_package_is_listed():
    listed = re.search(r"PACKAGES = \[(.*?)\]", SETUP, re.S).group(1)
    found = {
        str(path.parent.relative_to(ROOT)).replace("/", ".")
        for top in ("beam_jobs", "eval", "rag_core", "runners")
        for path in (ROOT / top).rglob("__init__.py")
    }
    assert set(re.findall(r'"(.+?)"', listed)) == found


def test_data_files_are_listed():
    for folder, ending in (
        ("rag_core/presets", ".toml"),
        ("runners", ".toml"),
        ("eval/pages", ".css"),
        ("eval/pages", ".js"),
    ):
        assert any(path.suffix == ending for path in (ROOT / folder).iterdir())
    assert '"presets/*.toml", "models/mini_bart/*"' in SETUP and '"runners": ["*.toml"]' in SETUP
    assert '"eval.pages": ["*.css", "*.js"]' in SETUP


def test_every_pin_of_torch_is_the_same():
    pins = [
        re.findall(r"torch==([\d.]+)", (ROOT / name).read_text()) for name in ("setup.py", "constraints.txt")
    ]
    assert pins == [["2.13.0"], ["2.13.0"]]
