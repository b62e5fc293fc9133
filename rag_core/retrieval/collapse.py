"""Has retrieval collapsed? (Lewis et al. 2020, appendix H: the same passages for every input.)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

# Two unrelated questions share almost no passage; collapsed retrieval gives all the same ones. Half is
# far from both: MiniLM over SQuAD (10,570 questions, 2,137 passages, many of one article) has 0.003 at
# k = 5 and 0.054 at k = 100.
COLLAPSED_OVERLAP = 0.5


@dataclass(frozen=True, slots=True)
class RetrievalSpread:
    """How different the passages of different questions are.

    n_questions: those with at least one passage. distinct_passages: over all of them. mean_overlap:
    the share of one question's passages that a second question, drawn at random from the others, has
    too; 0 when nothing is shared, 1 when all questions get the same passages; None below 2 questions.
    """

    n_questions: int
    distinct_passages: int
    mean_overlap: float | None

    @property
    def collapsed(self) -> bool:
        """Whether the overlap is beyond `COLLAPSED_OVERLAP`: train again, or freeze the retriever."""
        return self.mean_overlap is not None and self.mean_overlap > COLLAPSED_OVERLAP


def retrieval_spread(passage_ids: Sequence[Sequence[str]]) -> RetrievalSpread:
    """The spread of a retrieved run: per question the ids of its passages.

    Computed over all ordered pairs of questions at once: a passage found by c of n questions is shared
    with (c-1)/(n-1) of the others. Linear in the number of hits.
    """
    found = [set(ids) for ids in passage_ids if len(ids)]
    counts = Counter(passage_id for ids in found for passage_id in ids)
    n = len(found)
    overlap = None
    if n > 1:
        shares = (sum(counts[i] - 1 for i in ids) / len(ids) for ids in found)
        overlap = sum(shares) / (n * (n - 1))
    return RetrievalSpread(n, len(counts), overlap)
