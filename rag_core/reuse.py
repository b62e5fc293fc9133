"""Vectors of an earlier run, by content hash: next month's dump for the price of its changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from rag_core.stages import read_part, row_groups, vectors_of


class OldVectors:
    """Look up vectors by content hash in a finished embeddings run.

    Memory: 32 bytes for each old passage (its hash, its order, its place). Vectors are read when they
    are asked for, from the row groups that hold them.
    """

    def __init__(self, embeddings_dir: str) -> None:
        self._groups = list(row_groups(embeddings_dir))
        keys, groups, rows = [np.empty((0, 2), np.uint64)], [], []
        for number, (url, group) in enumerate(self._groups):
            found = [
                b.column("content_hash").to_pylist()
                for b in read_part(url, ["content_hash"], row_groups=[group])
            ]
            keys.append(_keys([h for hashes in found for h in hashes]))
            groups.append(np.full(len(keys[-1]), number, np.int32))
            rows.append(np.arange(len(keys[-1]), dtype=np.int32))
        keys_N2 = np.concatenate(keys)
        order = np.lexsort((keys_N2[:, 1], keys_N2[:, 0]))
        self._keys_N2 = keys_N2[order]
        self._group_N = np.concatenate(groups)[order] if groups else np.empty(0, np.int32)
        self._row_N = np.concatenate(rows)[order] if rows else np.empty(0, np.int32)

    def __len__(self) -> int:
        return len(self._keys_N2)

    def take(self, hashes: Sequence[bytes]) -> dict[int, np.ndarray]:
        """Position in `hashes` → vector, for those that the old run holds. Equal hashes, equal vectors.

        A vector that is not finite, or zero, is not held: no run of today writes such a one.
        """
        by_group: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for position, place in enumerate(self._places(_keys(hashes))):
            if place is not None:
                by_group[int(self._group_N[place])].append((position, int(self._row_N[place])))
        found: dict[int, np.ndarray] = {}
        for number, pairs in sorted(by_group.items()):
            url, group = self._groups[number]
            vectors_ND = np.concatenate(
                [vectors_of(b) for b in read_part(url, ["vector"], row_groups=[group])]
            )
            sound_N = np.isfinite(vectors_ND).all(axis=1) & vectors_ND.any(axis=1)
            found.update({position: vectors_ND[row] for position, row in pairs if sound_N[row]})
        return found

    def _places(self, wanted_M2: np.ndarray) -> Iterator[int | None]:
        """Where each wanted hash stands in the sorted keys: by its first half, then by its second."""
        starts = np.searchsorted(self._keys_N2[:, 0], wanted_M2[:, 0])
        for (high, low), place in zip(wanted_M2.tolist(), starts.tolist()):
            while place < len(self) and self._keys_N2[place, 0] == high and self._keys_N2[place, 1] != low:
                place += 1
            yield place if place < len(self) and self._keys_N2[place, 0] == high else None


def _keys(hashes: Sequence[bytes]) -> np.ndarray:
    """16-byte hashes as two integers each, [N, 2]."""
    return np.frombuffer(b"".join(hashes), dtype="<u8").reshape(-1, 2)
