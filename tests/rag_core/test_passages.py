"""The two rules for cutting passages."""

import pytest

from rag_core.passages import split_words


def words(n, start=0):
    return " ".join(f"w{i}" for i in range(start, start + n))


@pytest.mark.parametrize(
    ("n_words", "lengths"),
    [(0, []), (1, [1]), (99, [99]), (100, [100]), (101, [100, 1]), (250, [100, 100, 50])],
)
def test_disjoint_keeps_every_word_once_and_the_short_tail(n_words, lengths):
    passages = split_words("Title", words(n_words))
    assert [len(p.split()) for p in passages] == lengths
    assert " ".join(passages) == words(n_words)


def test_dpr_starts_with_the_title_and_fills_the_tail_from_the_start():
    first, second = split_words("T U", words(148), mode="dpr")
    assert first == "T U " + words(98)
    assert second == words(50, start=98) + " T U " + words(48)


def test_dpr_without_a_short_tail_fills_nothing():
    assert split_words("T", words(199), mode="dpr") == ["T " + words(99), words(100, start=99)]


def test_dpr_repeats_a_text_that_is_shorter_than_a_passage():
    assert split_words("T", "a b", words=7, mode="dpr") == ["T a b T a b T"]


def test_words_are_separated_by_unicode_white_space_but_not_by_zero_width_space():
    assert split_words("T", "5\u00a0km\u2003east \u200bx\n( ;") == ["5 km east \u200bx ( ;"]


def test_what_has_no_words_has_no_passage():
    assert split_words("Title", " \n ") == split_words(" ", "", mode="dpr") == []


def test_in_dpr_a_title_alone_is_cut_like_any_words():
    assert split_words("A B", " \n ", words=5, mode="dpr") == ["A B A B A"]


def test_bad_options_are_named():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        split_words("T", "a", words=0)
    with pytest.raises(ValueError, match="'DPR'"):
        split_words("T", "a", mode="DPR")
