"""How much two texts differ, as a number (spec C7): the share of their words that the other does not have."""

from __future__ import annotations

from collections import Counter

from recrawl.compare.words import words

_LONG_WORD = 12
"""Texts whose words are longer than this on average are written without spaces."""


def divergence(old: str, new: str) -> float:
    """One minus twice the words in common over all words; words count as often as they occur.

    A word is what stands between spaces; in scripts that have none, a character. Symmetric; 0 only for
    the same bag of words, 1 only when no word is shared.

    >>> divergence("the cat sat", "the cat ran")
    0.3333333333333333
    >>> divergence("", ""), divergence("", "a"), divergence("b a", "a b")
    (0.0, 1.0, 0.0)
    """
    apart, total = distance(old, new)
    return apart / total if apart else 0.0


def distance(old: str, new: str) -> tuple[int, int]:
    """How many words one has and the other lacks, and how many words there are in both together."""
    a, b = old.split(), new.split()
    if len(old) + len(new) > _LONG_WORD * (len(a) + len(b)):
        a, b = words(old), words(new)
    total = len(a) + len(b)
    # Most versions differ in one place: only what lies between the equal ends is counted word by word.
    start = _same(a, b)
    a, b = a[start:][::-1], b[start:][::-1]
    end = _same(a, b)
    before, after = Counter(a[end:]), Counter(b[end:])
    unequal = {word for word, _ in before.items() ^ after.items()}
    return sum(abs(before[word] - after[word]) for word in unequal), total


def _same(a: list[str], b: list[str]) -> int:
    """How many words at the start are the same, by halving."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
