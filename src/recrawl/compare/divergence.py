"""Divergence of two texts (spec C7): the share of their words that the other text lacks."""

from __future__ import annotations

import math
from collections import Counter

from recrawl.compare.common_ends import SplitTexts, split_texts
from recrawl.words import mostly_spaceless, share_of_words, words

_LONG_WORD = 12
"""A text with longer words on average is split into words at signs too, as one in a script without spaces is."""
_ROUNDING = 1e-6


def divergence(old: str, new: str) -> float:
    """Return 1 - 2 · common words / all words, where words count as often as they occur.

    Words are separated by spaces; in scripts without spaces, each letter counts as a part of one. Symmetric; 0 only
    for equal bags of words, 1 only if no word is shared.

    >>> divergence("the cat sat", "the cat ran")
    0.3333333333333333
    >>> divergence("", ""), divergence("", "a"), divergence("b a", "a b")
    (0.0, 1.0, 0.0)
    """
    apart, total = distance(old, new)
    return apart / total if apart else 0.0


def distance(old: str, new: str) -> tuple[int, int]:
    """Return the number of words that only one text has, and the number of words in both together.

    The texts are on one line, with one space between words, as `parsing.text.visible` returns them.
    """
    return split_distance(split_texts(old, new))


def split_distance(texts: SplitTexts) -> tuple[int, int]:
    """`distance` of two texts that have been split.

    Of a script without spaces, letters are compared and told as the words that so many letters make.
    """
    common, old, new = texts
    if mostly_spaceless(common, common, old, new):
        same, before, after = Counter(words(common)), Counter(words(old)), Counter(words(new))
        apart = share_of_words((before - after) + (after - before))
        total = 2 * share_of_words(same) + share_of_words(before) + share_of_words(after)
        return math.ceil(apart - _ROUNDING), math.ceil(total - _ROUNDING)
    shared, a, b = 2 * common.count(" "), old.split(), new.split()  # every common word is beside one space of its own
    if 2 * len(common) + len(old) + len(new) > _LONG_WORD * (shared + len(a) + len(b)):
        shared, a, b = 2 * len(words(common)), words(old), words(new)
    before, after = Counter(a), Counter(b)
    unequal = {word for word, _ in before.items() ^ after.items()}
    return sum(abs(before[word] - after[word]) for word in unequal), shared + len(a) + len(b)
