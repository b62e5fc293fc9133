"""Reading finished runs: by the manifest, never by a glob."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rag_core import files
from rag_core.errors import DataError
from rag_core.run_dir import MANIFEST, NoManifestError, damage, read_manifest


def stage_manifest(directory: str, job: str) -> dict[str, Any]:
    """The manifest of a finished run of `job`; DataError when the directory holds another job's run."""
    manifest = read_manifest(directory)
    if manifest["job"] != job:
        raise DataError(f"{directory}: a run of job {manifest['job']!r}, expected {job!r}")
    for name in _OF_JOB.get(job, ()):
        if not _OWN[name](manifest.get(name)):
            raise NoManifestError(f"{files.join(directory, MANIFEST)}: damaged: no sound {name!r}")
    return manifest


def _is_encoder(value: Any) -> bool:
    known = isinstance(value, dict) and isinstance(value.get("fingerprint"), str)
    return known and isinstance(value.get("dim"), int) and 0 < value["dim"] < 1 << 20


# What readers of a job's runs take from the manifest, besides its parts.
_OF_JOB = {"embed": ("encoder", "options", "inputs"), "index": ("kind",)}
_OWN: dict[str, Callable[[Any], bool]] = {
    "encoder": _is_encoder,
    "options": lambda value: isinstance(value, dict),
    "inputs": lambda value: isinstance(value, dict),
    "kind": lambda value: isinstance(value, str),
}


def part_urls(directory: str, manifest: dict[str, Any] | None = None) -> list[str]:
    """The parts in order; DataError when one is gone or has another size than the manifest says."""
    manifest = manifest or read_manifest(directory)
    wrong = damage(directory, manifest)
    if wrong is not None:
        raise DataError(f"{wrong}; start the job that made the run again, it keeps the parts that stand")
    return [files.join(directory, part["name"]) for part in manifest["parts"]]


def iter_batches(
    directory: str, columns: Sequence[str] | None = None, batch_rows: int = 8192
) -> Iterator[pa.RecordBatch]:
    """All rows of a finished run in the manifest's order, `batch_rows` at a time.

    Raises NoManifestError on an unfinished run, DataError on a part that cannot be read or whose
    number of rows is not the manifest's.
    """
    manifest = read_manifest(directory)
    for url, part in zip(part_urls(directory, manifest), manifest["parts"]):
        rows = 0
        for batch in read_part(url, columns, batch_rows):
            rows += batch.num_rows
            yield batch
        if rows != part.get("rows", rows):
            raise DataError(f"{url}: {rows} rows, the manifest says {part['rows']}")


def row_groups(directory: str) -> Iterator[tuple[str, int]]:
    """Every row group of a finished run that has rows, as (part URL, number), in the run's order."""
    for url in part_urls(directory):
        with files.open_input(url) as stream:
            try:
                metadata = pq.ParquetFile(stream).metadata
            except (pa.ArrowException, OSError) as error:
                raise DataError(f"{url}: not readable as Parquet: {error}") from error
        for group in range(metadata.num_row_groups):
            if metadata.row_group(group).num_rows:
                yield url, group


def read_part(
    url: str,
    columns: Sequence[str] | None = None,
    batch_rows: int = 8192,
    row_groups: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of one Parquet file, or of some of its row groups; DataError names the file."""
    try:
        opened = files.open_input(url)
    except FileNotFoundError as error:
        raise DataError(f"{url}: missing") from error
    with opened as stream:
        try:
            parquet = pq.ParquetFile(stream, page_checksum_verification=True)
            yield from parquet.iter_batches(batch_rows, row_groups=row_groups, columns=columns)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{url}: not readable as Parquet: {error}") from error


def read_table(directory: str, columns: Sequence[str] | None = None) -> pa.Table:
    """A whole finished run as one table; for stages that fit in memory."""
    batches = list(iter_batches(directory, columns))
    if batches:
        return pa.Table.from_batches(batches)
    first = part_urls(directory)[0]
    with files.open_input(first) as stream:
        table = pq.read_table(stream, columns=columns)
    return table


def vectors_of(batch: pa.RecordBatch) -> np.ndarray:
    """The `vector` column of an embeddings batch as an array [rows, dim], without a copy where possible."""
    column = batch.column(batch.schema.get_field_index("vector"))
    return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), column.type.list_size)


def read_embeddings(directory: str) -> tuple[list[str], np.ndarray]:
    """Passage ids and vectors [N, d] of an embeddings run, in the run's order.

    A plain pandas round trip does not give fixed-size lists back as an array; this does. The dtype is
    the run's (float32 or float16). Raises NoManifestError, DataError.
    """
    manifest = stage_manifest(directory, "embed")
    dim, dtype = manifest["encoder"]["dim"], np.dtype(manifest["options"]["dtype"])
    vectors_ND = np.empty((manifest["rows"], dim), dtype)
    ids: list[str] = []
    for batch in iter_batches(directory, ["passage_id", "vector"]):
        vectors_ND[len(ids) : len(ids) + batch.num_rows] = vectors_of(batch)
        ids.extend(batch.column("passage_id").to_pylist())
    return ids, vectors_ND
