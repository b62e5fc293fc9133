"""Every stage opens in pandas by its directory, in Polars and DuckDB by `*.parquet`."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from beam_jobs import retrieve
from rag_core import read_embeddings
from rag_core.run_dir import read_manifest


@pytest.fixture(scope="module")
def retrieved_dir(embeddings_dir, questions_file, tiny_encoder, tmp_path_factory) -> str:
    output = str(tmp_path_factory.mktemp("retrieved") / "run")
    argv = ["--questions", questions_file, "--task", "custom", "--question-encoder", tiny_encoder]
    assert retrieve.run([*argv, "--embeddings", embeddings_dir, "--top-k", "5", "--output", output]) == 0
    return output


@pytest.mark.parametrize("stage", ["passages_dir", "embeddings_dir", "retrieved_dir"])
def test_three_readers_see_the_same_rows(stage, request):
    directory = request.getfixturevalue(stage)
    rows = read_manifest(directory)["rows"]
    key = "question_id" if stage == "retrieved_dir" else "passage_id"
    frame = pd.read_parquet(directory)
    polars = pl.read_parquet(f"{directory}/*.parquet")
    duck = duckdb.sql(f"select {key} from '{directory}/*.parquet'").fetchall()
    assert len(frame) == len(polars) == len(duck) == rows > 0
    assert sorted(frame[key]) == sorted(polars[key].to_list()) == sorted(k for (k,) in duck)


def test_vectors_in_each_reader(embeddings_dir):
    ids, vectors_ND = read_embeddings(embeddings_dir)
    frame = pd.read_parquet(embeddings_dir)
    np.testing.assert_array_equal(np.stack(frame["vector"].to_list()), vectors_ND)
    polars = pl.read_parquet(f"{embeddings_dir}/*.parquet")
    np.testing.assert_array_equal(np.stack(polars["vector"].to_list()), vectors_ND)
    query = f"select vector[1], len(vector) from '{embeddings_dir}/*.parquet' where passage_id = '{ids[0]}'"
    assert duckdb.sql(query).fetchall() == [(pytest.approx(float(vectors_ND[0, 0])), 32)]
