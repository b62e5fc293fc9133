"""CuratedTREC: the prediction matches one of the reference patterns. Of three rules two are offered.

    regex_match    the pattern matches from the *start* of the prediction (DrQA)
    regex_search   the pattern is found *anywhere* in the prediction (DPR)

Both put prediction and pattern in NFD and ignore case; a pattern that does not compile matches nothing.
Nothing is lower-cased or stripped of punctuation first: "\\$5\\.50" must see its dollar. The third rule
(full match on the normalised prediction, FlashRAG) is not offered: it deletes what patterns look for.
Sources: DrQA `drqa/reader/utils.py` (`regex_match_score`) after `scripts/pipeline/eval.py --regex`; DPR
`dpr/data/qa_validation.py` (`regex_match`).
"""

from __future__ import annotations

from collections.abc import Sequence

from eval.metrics.base import BinaryMetric, Statistics
from rag_core import answers


class RegexMatch(BinaryMetric):
    name = "regex_match"
    options = "rule:drqa-match|norm:nfd|refs:any"

    def statistics(self, prediction: str, references: Sequence[str]) -> Statistics:
        return (int(any(answers.regex_match(prediction, pattern) for pattern in references)),)


class RegexSearch(BinaryMetric):
    name = "regex_search"
    options = "rule:dpr-search|norm:nfd|refs:any"

    def statistics(self, prediction: str, references: Sequence[str]) -> Statistics:
        return (int(any(answers.regex_search(prediction, pattern) for pattern in references)),)
