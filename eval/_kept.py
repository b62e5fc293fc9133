"""Scored parts that stay when a run is killed: their rows, their sums, and a report with both digests."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

import numpy as np

from eval._cells import Cell, KeyCell
from eval._score import CellKey
from rag_core import files
from rag_core.digest import file_digest
from rag_core.run_dir import WORK, report_url

Cells = dict[CellKey, Cell | KeyCell]


def rows_url(output: str, number: int) -> str:
    return files.join(output, WORK, f"per_example-{number:05d}.parquet")


def cells_url(output: str, number: int) -> str:
    return files.join(output, WORK, f"cells-{number:05d}.npz")


def keep_part(output: str, number: int, fingerprint: str, written: dict[str, Any], cells: Cells) -> None:
    """Store the sums of a part whose rows are written, then its report: only then is it scored."""
    data = cells_to_bytes(cells)
    files.write_bytes(cells_url(output, number), data)
    digests = {"rows_file": file_digest(rows_url(output, number)), "cells_file": _digest(data)}
    report = {"index": number, "fingerprint": fingerprint, **written, **digests}
    files.write_json(report_url(output, number), report)


def kept_cells(output: str, number: int, fingerprint: str) -> Cells | None:
    """The sums of a part that the same run has scored already, if its files are as they were written."""
    urls = [report_url(output, number), rows_url(output, number), cells_url(output, number)]
    if not all(map(files.exists, urls)):
        return None
    try:
        report = json.loads(files.read_bytes(urls[0]))
        wanted = [report["fingerprint"], report["rows_file"], report["cells_file"]]
    except (ValueError, KeyError, TypeError):
        return None  # a report that was cut: score the part again
    data = files.read_bytes(urls[2])
    if wanted != [fingerprint, file_digest(urls[1]), _digest(data)]:
        return None
    return cells_from_bytes(data)


def delete_kept(output: str, n_parts: int) -> None:
    """Delete rows and sums of all parts, of a run that is finished."""
    urls = [url(output, number) for number in range(n_parts) for url in (rows_url, cells_url)]
    files.delete([url for url in urls if files.exists(url)])


def cells_to_bytes(cells: Cells) -> bytes:
    """Cells as one npz: arrays, and the counts as JSON (an exact sum may have a thousand bits)."""
    arrays: dict[str, np.ndarray] = {}
    plain = []
    for number, (key, cell) in enumerate(cells.items()):
        if isinstance(cell, KeyCell):
            keys, bits = cell.compact()
            arrays |= {f"keys{number}": keys, f"bits{number}": bits, f"totals{number}": cell.totals_H}
            plain.append({"key": key, "n": cell.n, "n_missing": cell.n_missing, "total": cell.total})
            continue
        if cell.replicates is not None:
            arrays[f"replicates{number}"] = cell.replicates
        counts = {"n": cell.n, "n_missing": cell.n_missing, "n_infinite": cell.n_infinite}
        plain.append({"key": key, **counts, "sums": cell.sums, "exact": hex(cell.exact)})
    arrays["plain"] = np.frombuffer(json.dumps(plain).encode(), np.uint8)
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def cells_from_bytes(data: bytes) -> Cells:
    """The inverse of `cells_to_bytes`."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        cells: Cells = {}
        for number, counts in enumerate(json.loads(arrays["plain"].tobytes())):
            key = tuple(counts.pop("key"))
            if "total" in counts:
                pieces = [(arrays[f"keys{number}"], arrays[f"bits{number}"])]
                cells[key] = KeyCell(**counts, totals_H=arrays[f"totals{number}"], pieces=pieces)
                continue
            name = f"replicates{number}"
            counts["exact"] = int(counts["exact"], 16)
            cells[key] = Cell(**counts, replicates=arrays[name] if name in arrays else None)
        return cells


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
