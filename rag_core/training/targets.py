"""Training targets from answers, by each task's rule (Lewis et al. 2020, appendices A and B).

first   the first answer
each    one pair per answer (NaturalQuestions, WebQuestions)
found   one pair per answer that occurs in the question's retrieved passages (TriviaQA, top 1,000)
regex   answers are patterns (CuratedTREC): the most frequent match in the retrieved passages; without
        any match, the strings the pattern can be, its open parts as white space
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from re import _constants as op
from re import _parser as parser

from rag_core.answers import has_answer
from rag_core.errors import DataError
from rag_core.schemas import Question
from rag_core.training.config import TrainConfig
from rag_core.training.examples import Example

MOST_EXPANSIONS = 32
TextsOf = Callable[[str], Sequence[str]]


def training_pairs(questions: Sequence[Question], config: TrainConfig) -> list[Example]:
    """All pairs of a question set. Raises DataError when nothing is left, or a target is no label."""
    texts_of = _retrieved_texts(config) if config.targets in ("found", "regex") else None
    return make_examples(questions, config.targets, config.labels, texts_of)


def make_examples(
    questions: Sequence[Question],
    rule: str,
    labels: Sequence[str] = (),
    texts_of: TextsOf | None = None,
) -> list[Example]:
    """Pairs by a rule; answers that are empty or white space, or come twice, make none.

    With `labels`, questions whose `answer_kind` is label have one of them as target, and the others a
    text: a mixture of tasks. Where no question is of that kind, all answers are labels.
    """
    examples = []
    mixed = any(question.answer_kind == "label" for question in questions)
    for question in questions:
        is_label = bool(labels) and (question.answer_kind == "label" or not mixed)
        answers = [a for a in dict.fromkeys(question.answers) if a.strip()]
        for target in _targets(question.question_id, answers, rule, texts_of):
            if is_label and target not in labels:
                raise DataError(
                    f"question {question.question_id!r}: answer {target!r} is no label of {tuple(labels)}"
                )
            examples.append(Example(question.question_id, question.question, target, is_label))
    if not examples:
        raise DataError(f"no training pair in {len(questions)} questions (targets: {rule})")
    return examples


def _targets(question_id: str, answers: list[str], rule: str, texts_of: TextsOf | None) -> list[str]:
    if rule == "first":
        return answers[:1]
    if rule == "each":
        return answers
    texts = texts_of(question_id)
    if rule == "found":
        return [a for a in answers if any(has_answer(text, [a]) for text in texts)]
    return regex_targets(answers, texts)


def regex_targets(patterns: Sequence[str], texts: Sequence[str]) -> list[str]:
    """The most frequent match of the patterns (ties: the first met), else what the patterns can be."""
    found: Counter[str] = Counter()
    for pattern in patterns:
        for text in texts:
            found.update(m.group() for m in re.finditer(pattern, text, re.IGNORECASE) if m.group().strip())
    if found:
        return [found.most_common(1)[0][0]]
    expanded = (" ".join(s.split()) for p in patterns for s in expand_regex(p))
    return [s for s in dict.fromkeys(expanded) if s]


def expand_regex(pattern: str) -> list[str]:
    """Strings a pattern can be: its alternatives written out, open parts (`.`, classes, `*`) as a space.

    At most `MOST_EXPANSIONS`; an empty list for a pattern that does not parse.
    """
    try:
        tree = parser.parse(pattern)
    except re.error:
        return []
    return list(itertools.islice(_expand(list(tree)), MOST_EXPANSIONS))


def _expand(nodes: list) -> Iterator[str]:
    for pieces in itertools.product(*(list(itertools.islice(_piece(n), MOST_EXPANSIONS)) for n in nodes)):
        yield "".join(pieces)


def _piece(node: tuple) -> Iterator[str]:
    kind, value = node
    if kind is op.LITERAL:
        yield chr(value)
    elif kind is op.SUBPATTERN:
        yield from _expand(list(value[3]))
    elif kind is op.BRANCH:
        for branch in value[1]:
            yield from _expand(list(branch))
    elif kind in (op.MAX_REPEAT, op.MIN_REPEAT) and value[:2] == (0, 1):
        yield from _expand(list(value[2]))
        yield ""
    elif kind is op.IN and len(value) <= 4 and all(item is op.LITERAL for item, _ in value):
        yield from (chr(code) for _, code in value)  # how the parser writes (a|b)
    elif kind in (op.AT, op.ASSERT, op.ASSERT_NOT):
        yield ""
    else:
        yield " "


def _retrieved_texts(config: TrainConfig) -> TextsOf:
    """question id → texts of its passages, from a finished run of beam_jobs.retrieve."""
    from rag_core.retrieval import PassageStore
    from rag_core.stages import read_table

    store = PassageStore.open(config.passages)
    table = read_table(config.answers_from, ["question_id", "passage_ids"])
    ids_of = dict(zip(table.column("question_id").to_pylist(), table.column("passage_ids").to_pylist()))

    def texts_of(question_id: str) -> list[str]:
        if question_id not in ids_of:
            raise DataError(f"{config.answers_from}: no row for question {question_id!r}")
        return [f"{p.title} {p.text}" for p in store.get(ids_of[question_id])]

    return texts_of
