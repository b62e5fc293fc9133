"""Search: exact, FAISS and BM25 indexes with one interface, fusion, and random access to passages.

`.search(queries, k)` of every index gives `(scores, ids)`: per query a list, best first, ordered by
(-score, id), never padded.
"""

from typing import TYPE_CHECKING

from rag_core.lazy import lazy_names

if TYPE_CHECKING:
    from rag_core.retrieval.bm25 import Bm25Index
    from rag_core.retrieval.collapse import retrieval_spread
    from rag_core.retrieval.delta import DeltaIndex
    from rag_core.retrieval.exact import ExactIndex
    from rag_core.retrieval.faiss_index import FaissIndex
    from rag_core.retrieval.fusion import reciprocal_rank_fusion
    from rag_core.retrieval.mass import captured_mass, sequence_bounds, token_bounds
    from rag_core.retrieval.passage_store import PassageStore
    from rag_core.retrieval.topk import merge_topk

_HOMES = {
    "Bm25Index": "bm25",
    "ExactIndex": "exact",
    "FaissIndex": "faiss_index",
    "PassageStore": "passage_store",
    "DeltaIndex": "delta",
    "captured_mass": "mass",
    "merge_topk": "topk",
    "reciprocal_rank_fusion": "fusion",
    "retrieval_spread": "collapse",
    "sequence_bounds": "mass",
    "token_bounds": "mass",
}

__all__ = [
    "Bm25Index",
    "DeltaIndex",
    "ExactIndex",
    "FaissIndex",
    "PassageStore",
    "captured_mass",
    "merge_topk",
    "reciprocal_rank_fusion",
    "retrieval_spread",
    "sequence_bounds",
    "token_bounds",
]

__getattr__ = lazy_names(__name__, _HOMES)
