from __future__ import annotations

import pytest

from rag_core.retrieval import PassageStore, passage_store
from rag_core.schemas import Passage

PASSAGES = [Passage(f"{i % 7}:{i}", f"Title {i}", f"text of {i} é\u2028x") for i in range(50)]


@pytest.mark.parametrize("mapped", [False, True])
def test_gets_passages_in_the_order_asked(passages_run, monkeypatch, tmp_path, mapped):
    if mapped:
        monkeypatch.setattr(passage_store, "IN_MEMORY_BYTES", 0)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    directory = passages_run(PASSAGES)
    for _ in range(2):  # the second time from the copy that is there
        store = PassageStore.open(directory)
        assert len(store) == 50
        wanted = [PASSAGES[i] for i in (49, 0, 7, 7, 25)]
        assert store.get([p.passage_id for p in wanted]) == wanted
        assert store.get([]) == []
        with pytest.raises(KeyError, match="'nope' is not among the 50"):
            store.get(["0:0", "nope"])
    assert (tmp_path / "cache").exists() == mapped


def test_an_id_twice_is_refused(passages_run):
    with pytest.raises(ValueError, match="'a' comes twice"):
        PassageStore.open(passages_run([Passage("a", "", "x"), Passage("b", "", "y"), Passage("a", "", "z")]))


def test_ids_that_share_a_hash_are_told_apart(passages_run, monkeypatch):
    monkeypatch.setattr(passage_store, "_key", lambda passage_id: 7)
    store = PassageStore.open(passages_run(PASSAGES[:5]))
    assert store.get([PASSAGES[3].passage_id]) == [PASSAGES[3]]
