"""An artificial vocabulary with realistic word frequencies, and prose made of it.

The most frequent words are English, so that text looks like sentences; the rest are built from syllables. Frequencies
follow Zipf's law. A directory has a topic: a few dozen words that its pages use more often, so that pages of a
directory are similar.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recrawl.columns import Ints


def _split(text: str) -> list[str]:
    return text.split()


_COMMON = _split(
    "the of and to in a is for that on with as it was by at from be are this an or which not have has were "
    "but their they more one all can its when new also been other will after some had two there would than "
    "into first time over only about most out such between through many year where may these people used"
)
_ONSET = _split("b c d f g h l m n p r s t v w br cl dr fr gr pl pr sl st tr th sh")
_NUCLEUS = _split("a e i o u ea ie oo ai ou")
_CODA = ["", "", "", "n", "r", "l", "s", "t", "m", "nd", "st", "rk", "ng"]
_QUANTILES = 1 << 16


class Words:
    """The words of a world, in ASCII without markup characters."""

    def __init__(self, rng: np.random.Generator, size: int = 6000) -> None:
        words = list(dict.fromkeys([*_COMMON, *_invented(rng, size)]))[:size]
        self.count = len(words)
        plain = [word.encode() for word in words]
        # One table of all forms: plain, capitalised, at the end of a sentence. An array of objects, because taking
        # thousands at once from it is faster than from a list.
        forms = [*plain, *(word.capitalize() for word in plain), *(word + b"." for word in plain)]
        self._forms = np.array(forms, dtype=object)
        weight = 1 / (np.arange(self.count) + 2.7)
        edges = np.cumsum(weight) / weight.sum()
        self._drawn = np.searchsorted(edges, (np.arange(_QUANTILES) + 0.5) / _QUANTILES)

    def topic(self, rng: np.random.Generator, size: int = 60) -> Ints:
        """Draw the words of a topic."""
        return rng.integers(len(_COMMON), self.count, size)

    def prose(self, rng: np.random.Generator, lengths: Sequence[int], topic: Ints) -> list[bytes]:
        """Return paragraphs of these numbers of words, in sentences."""
        if not lengths:
            return []
        total = sum(lengths)
        ids, form = self._ids(rng, total, topic, 0.15), np.zeros(total, dtype=np.int64)
        starts = np.cumsum(rng.integers(6, 19, total // 6 + 1))
        starts = starts[starts < total]
        form[starts], form[starts - 1] = 1, 2
        return self._cut(ids, form, lengths)

    def titles(self, rng: np.random.Generator, count: int, topic: Ints) -> list[bytes]:
        """Return headlines of four to eight words."""
        if not count:
            return []
        lengths: list[int] = rng.integers(4, 9, count).tolist()
        total = sum(lengths)
        ids = self._ids(rng, total, topic, 0.5)
        return [title[:-1] for title in self._cut(ids, np.zeros(total, dtype=np.int64), lengths)]

    def names(self, rng: np.random.Generator, count: int) -> list[str]:
        """Return different single words, for directories."""
        return [self._forms[i].decode() for i in rng.permutation(np.arange(len(_COMMON), self.count))[:count]]

    def _ids(self, rng: np.random.Generator, total: int, topic: Ints, share: float) -> Ints:
        ids = self._drawn[rng.integers(0, _QUANTILES, total)]
        own = np.flatnonzero(rng.random(total) < share)
        ids[own] = topic[rng.integers(0, len(topic), len(own))]
        return ids

    def _cut(self, ids: Ints, form: Ints, lengths: Sequence[int]) -> list[bytes]:
        bounds = np.cumsum(lengths)
        form[bounds[:-1]], form[bounds - 1] = 1, 2
        form[:1] = 1
        tokens: list[bytes] = self._forms[ids + self.count * form].tolist()
        low, found = 0, []
        for high in bounds.tolist():
            found.append(b" ".join(tokens[low:high]))
            low = high
        return found


def _invented(rng: np.random.Generator, size: int) -> list[str]:
    """Return more than enough invented words, short ones first, as in a language."""
    found: list[str] = []
    for syllables, share in ((1, 0.2), (2, 0.8), (3, 0.6)):
        count = int(size * share)
        draws = [rng.integers(0, len(part), (count, syllables)) for part in (_ONSET, _NUCLEUS, _CODA)]
        for onset, nucleus, coda in zip(*(draw.tolist() for draw in draws), strict=True):
            parts = zip(onset, nucleus, coda, strict=True)
            found.append("".join(_ONSET[o] + _NUCLEUS[n] + _CODA[c] for o, n, c in parts))
    return found
