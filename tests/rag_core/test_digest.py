"""Row digests: of the rows, not of how they were cut or stored."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from rag_core.digest import RowDigest, digest_of, file_digest
from rag_core.schemas import PREDICTIONS, embeddings_schema

SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("number", pa.float32()),
        ("lists", pa.list_(pa.list_(pa.string()))),
        ("pair", pa.list_(pa.struct([("page", pa.string()), ("line", pa.int32())]))),
        ("flag", pa.bool_()),
        ("hash", pa.binary(2)),
    ]
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.none() | st.text(max_size=3),
            "number": st.none() | st.floats(width=32, allow_nan=False),
            "lists": st.none()
            | st.lists(st.none() | st.lists(st.none() | st.text(max_size=2), max_size=2), max_size=2),
            "pair": st.none()
            | st.lists(
                st.none() | st.fixed_dictionaries({"page": st.text(max_size=2), "line": st.none()}),
                max_size=2,
            ),
            "flag": st.none() | st.booleans(),
            "hash": st.none() | st.binary(min_size=2, max_size=2),
        }
    ),
    min_size=1,
    max_size=8,
)


def digest(rows, cuts=()):
    table = RowDigest(SCHEMA)
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    bounds = [0, *sorted(cuts), len(rows)]
    for start, end in zip(bounds, bounds[1:]):
        table.update(batch.slice(start, end - start))
    return table.hexdigest()


@given(ROWS, st.data())
@settings(max_examples=100, deadline=None)
def test_cuts_do_not_matter(rows, data):
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=3))
    assert digest(rows, cuts) == digest(rows)


@given(ROWS, ROWS)
@settings(max_examples=100, deadline=None)
def test_other_rows_other_digest(rows, others):
    same = pa.RecordBatch.from_pylist(rows, SCHEMA).equals(pa.RecordBatch.from_pylist(others, SCHEMA))
    if repr(rows) == repr(others) or not same:
        assert (digest(rows) == digest(others)) == (repr(rows) == repr(others))


@pytest.mark.parametrize(
    "a, b",
    [
        ({"text": None}, {"text": ""}),
        ({"lists": [["a"], ["b"]]}, {"lists": [["a", "b"]]}),
        ({"lists": []}, {"lists": None}),
        ({"lists": [["ab", "c"]]}, {"lists": [["a", "bc"]]}),
        ({"pair": [{"page": "p", "line": None}]}, {"pair": [{"page": "p", "line": 0}]}),
    ],
)
def test_near_misses_differ(a, b):
    full = dict.fromkeys(SCHEMA.names)
    assert digest([{**full, **a}]) != digest([{**full, **b}])


def test_order_of_rows_matters():
    full = dict.fromkeys(SCHEMA.names)
    rows = [{**full, "text": "a"}, {**full, "text": "b"}]
    assert digest(rows) != digest(rows[::-1])


def test_vectors_by_every_bit():
    schema = embeddings_schema(2)

    def of(vector):
        d = RowDigest(schema)
        d.update(
            pa.RecordBatch.from_pylist(
                [{"passage_id": "1", "content_hash": b"0" * 16, "vector": vector}], schema
            )
        )
        return d.hexdigest()

    nudged = float(np.nextafter(np.float32(1), np.float32(2)))
    assert of([1.0, 0.0]) != of([nudged, 0.0])
    assert of([1.0, 0.0]) == of([1.0, 0.0])


def test_no_rows_have_a_digest_of_their_schema():
    assert RowDigest(SCHEMA).hexdigest() != RowDigest(PREDICTIONS).hexdigest()


def test_digest_of_is_canonical(tmp_path):
    assert digest_of({"b": 1, "a": [2]}) == digest_of({"a": [2], "b": 1}) != digest_of({"a": [2], "b": "1"})
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    assert file_digest(str(path)) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
