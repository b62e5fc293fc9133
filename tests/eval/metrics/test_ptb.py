"""Q-BLEU-1's words: the tokens that Stanford CoreNLP 3.4.1 and coco-caption's list of punctuation leave."""

import pytest

from eval.metrics import compute
from eval.metrics.ptb import ptb_words

# text: tokens, of `PTBTokenizer -preserveLines -lowerCase` run over the text; brackets stand for -lrb-, -rrb-
TOKENS = {
    "Don't they know it's Obama's U.S. visit, Mr. O'Neill?": (
        "do n't they know it 's obama 's u.s. visit mr. o'neill"
    ),
    'The 1,967 "state-of-the-art" (3.5%) AT&T ...': "the 1,967 state-of-the-art ( 3.5 % ) at&t",
    "How many 30-second ads had a 15-1 record on 3rd-and-9?": (
        "how many 30-second ads had a 15-1 record on 3rd-and-9"
    ),
    "What was the win/loss ratio?": "what was the win/loss ratio",
    "I cannot say, gonna wanna gotta gimme lemme": "i can not say gon na wan na got ta gim me lem me",
    "'tis 'twas the '60s": "'t is 't was the '60s",
    "Who is Alfred S. Brown of J. K. Rowling, Ph.D.": "who is alfred s. brown of j. k. rowling ph.d.",
    "Jan. 5th, 2010 at Wash. and in the wash.": "jan. 5th 2010 at wash. and in the wash",
    "“smart” ‘quotes’ — dash – en -- ... --": "smart quotes dash en",
    "One would write T(n) = 7n2 + 15n": "one would write t ( n ) = 7n2 + 15n",
    "more _____?": "more _____",
    "the Qur'an by X.25, r&b and Y&R": "the qur an by x. 25 r & b and y&r",
    "world no. 1 at the .05 level with US$3 \u200b": "world no. 1 at the .05 level with us$ 3",
    "Really?!": "really ?!",
}


@pytest.mark.parametrize("text", TOKENS)
def test_words_are_cut_as_the_treebank_does(text):
    assert ptb_words(text) == TOKENS[text].split()


def test_what_holds_together_counts_once():
    ours, gold = "how long is a 30-minute ad ?", "how long is a 30-second ad ?"
    assert compute("q_bleu1", [ours], [gold]).value == pytest.approx(
        0.66 * (0.41 + 0.36 * (2 / 3) + 0.20 + 0.03) + 0.34 * 5 / 6
    )
