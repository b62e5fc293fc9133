"""Files nested a hundred thousand levels deep: one complaint that names the file, no crash of the reader."""

from __future__ import annotations

import pytest

from eval._gates import read_gates
from eval._human_judgements import read_judgements
from eval.human import read_gold
from rag_core.errors import DataError, UsageError
from rag_core.files import read_toml

DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "read, text",
    [
        (read_gates, "a = " + DEEP),
        (read_toml, "a = " + DEEP),
        (read_gold, '{"question": ' + DEEP),
        (lambda path: read_judgements([path]), DEEP),
        (lambda path: read_judgements([path]), '{"a": ' + DEEP),
    ],
)
def test_it_is_told_by_name(tmp_path, read, text):
    path = tmp_path / "deep"
    path.write_text(text)
    with pytest.raises((DataError, UsageError), match=r"deep.*not valid (TOML|JSON)"):
        read(str(path))
