"""Values against sacrebleu 2.6.0 and rouge-score 0.1.2 themselves, on seeded random texts."""

import random

import pytest
import sacrebleu
from rouge_score import rouge_scorer
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from eval.metrics import compute
from eval.metrics.bleu import tokens_13a

WORDS = "the cat sat on a mat in U.S. don't 3,000 , . - state-of-the-art Paris café 1914–1918 &amp;".split()


@pytest.fixture(scope="module")
def texts():
    rng = random.Random(0)

    def text(low, high):
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(low, high)))

    predictions = [text(0, 14) for _ in range(1500)]
    return predictions, [[text(1, 14) for _ in range(rng.randint(1, 3))] for _ in predictions]


def test_13a_tokens_equal_sacrebleus_character_by_character():
    rng, peer = random.Random(1), Tokenizer13a()
    alphabet = "ab c1 2.,-'\"&<>/;:!?()[]{}~`$%é\n\t\u00a0  quot; skipped>\u200b\x0b"
    pieces = ["&quot;", "&amp;", "&lt;", "<skipped>", "-\n", "3.5", "U.S.", "&amp;lt;"]
    for _ in range(20_000):
        text = "".join(
            rng.choice(alphabet) if rng.random() < 0.9 else rng.choice(pieces)
            for _ in range(rng.randint(0, 25))
        )
        assert tokens_13a(text) == peer(text.rstrip()).split(), repr(text)


@pytest.mark.parametrize("order", (1, 4))
@pytest.mark.parametrize("lowercase", (False, True))
def test_bleu_equals_sacrebleu(texts, order, lowercase):
    predictions, references = texts
    streams = [[r[i] if i < len(r) else None for r in references] for i in range(3)]
    peer = sacrebleu.BLEU(max_ngram_order=order, lowercase=lowercase, force=True)
    ours = compute(f"bleu{order}", predictions, references, lowercase=lowercase)
    assert ours.value == pytest.approx(peer.corpus_score(predictions, streams).score / 100, abs=1e-13)
    alone = sacrebleu.BLEU(max_ngram_order=order, lowercase=lowercase, effective_order=True)
    for i in range(200):
        expected = alone.sentence_score(predictions[i], references[i]).score / 100
        assert ours.per_example[i] == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("stemmer", (False, True))
def test_rouge_l_equals_rouge_score_to_the_last_bit(texts, stemmer):
    predictions, references = texts
    peer = rouge_scorer.RougeScorer(["rougeL"], use_stemmer=stemmer)
    expected = [peer.score_multi(r, p)["rougeL"].fmeasure for p, r in zip(predictions, references)]
    assert compute("rouge_l", predictions, references, stemmer=stemmer).per_example == expected
