"""Vectors read raw from their Parquet pages are the vectors, and damage is found."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_core.errors import DataError
from rag_core.parts import writer_options
from rag_core.retrieval import part_blocks
from rag_core.schemas import embeddings_schema


def write(path, vectors_ND, group_rows, options=None):
    schema = embeddings_schema(vectors_ND.shape[1], str(vectors_ND.dtype))
    names = [f"p{i}" for i in range(len(vectors_ND))]
    flat = pa.array(vectors_ND.ravel(), schema.field("vector").type.value_type)
    columns = [
        pa.array(names),
        pa.array([b"x" * 16] * len(names), pa.binary(16)),
        pa.FixedSizeListArray.from_arrays(flat, type=schema.field("vector").type),
    ]
    table = pa.Table.from_arrays(columns, schema=schema)
    pq.write_table(table, path, row_group_size=group_rows, **(options or writer_options(schema)))
    return str(path), names


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("block_rows", [1, 7, 20, 1000])
def test_blocks_are_the_rows(tmp_path, dtype, block_rows):
    vectors_ND = np.random.default_rng(0).standard_normal((50, 6)).astype(dtype)
    url, names = write(tmp_path / "part", vectors_ND, 7)
    blocks = [(ids, found_ND.copy()) for ids, found_ND in part_blocks.part_blocks(url, block_rows)]
    assert [name for ids, _ in blocks for name in ids] == names
    assert (np.concatenate([found_ND for _, found_ND in blocks]) == vectors_ND).all()
    hidden = {"p0", "p13", "p49"}
    left = [(i, v.copy()) for i, v in part_blocks.part_blocks(url, block_rows, hidden)]
    kept = [row for row, name in enumerate(names) if name not in hidden]
    assert [name for ids, _ in left for name in ids] == [names[row] for row in kept]
    assert (np.concatenate([v for _, v in left]) == vectors_ND[kept]).all()
    assert list(part_blocks.part_blocks(url, block_rows, set(names))) == []


def test_ours_are_read_raw_and_other_layouts_are_decoded(tmp_path, monkeypatch):
    vectors_ND = np.random.default_rng(1).standard_normal((30, 5)).astype(np.float32)
    raw = []
    plain = part_blocks._read_plain
    monkeypatch.setattr(part_blocks, "_read_plain", lambda *a: raw.append(plain(*a)) or raw[-1])
    for options in (None, {"compression": "zstd"}, {"compression": "none", "use_dictionary": True}):
        url, _ = write(tmp_path / "part", vectors_ND, 30, options)
        ((_, found_ND),) = part_blocks.part_blocks(url, 100)
        assert (found_ND == vectors_ND).all()
    assert raw == [True, False, False]


@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_damage_names_the_file(tmp_path, damage):
    vectors_ND = np.random.default_rng(2).standard_normal((400, 8)).astype(np.float32)
    url, _ = write(tmp_path / "part-00003.parquet", vectors_ND, 400)
    data = bytearray((tmp_path / "part-00003.parquet").read_bytes())
    data[data.index(vectors_ND[200].tobytes()) + 2] ^= 1
    (tmp_path / "part-00003.parquet").write_bytes(data if damage == "flip" else data[:3000])
    with pytest.raises(DataError, match=r"part-00003\.parquet"):
        list(part_blocks.part_blocks(url, 1000))
