"""The two marginals by plain enumeration in Python floats: slow, obvious, and no library of ours.

`log_probs(z, prefix)` gives log p(·|x, z, prefix) as a list over the vocabulary.
"""

import itertools
import math


def logsumexp(values):
    top = max(values)
    return top if top == -math.inf else top + math.log(math.fsum(math.exp(v - top) for v in values))


def log_softmax(values):
    z = logsumexp(values)
    return [v - z for v in values]


def sequence_log_prob(log_probs, prior, row, pad):
    """log Σ_z p(z|x) Π_i p(y_i|x,z,y_<i)."""
    return logsumexp(
        [
            p + math.fsum(log_probs(z, row[:i])[row[i]] for i in range(1, len(row)) if row[i] != pad)
            for z, p in enumerate(prior)
            if p > -math.inf
        ]
    )


def token_log_prob(log_probs, prior, row, pad):
    """Σ_i log Σ_z p(z|x) p(y_i|x,z,y_<i)."""
    return math.fsum(
        logsumexp([p + log_probs(z, row[:i])[row[i]] for z, p in enumerate(prior) if p > -math.inf])
        for i in range(1, len(row))
        if row[i] != pad
    )


def all_rows(start, eos, vocabulary, max_length):
    """Every row that decoding can return: ends with EOS, or has max_length tokens without one."""
    for n in range(1, max_length):
        for body in itertools.product(vocabulary, repeat=n):
            if eos in body[:-1]:
                continue
            if body[-1] == eos or n == max_length - 1:
                yield (start, *body)
