"""Word counts: those of many texts are kept as one sparse matrix, text by word."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import scipy  # its parts load when first used: a crawl that sees no change never pays for them
from numpy.typing import NDArray

from recrawl.compare.words import words


class Vocabulary(defaultdict[str, int]):
    """Numbers for words, handed out as they are met.

    >>> known = Vocabulary()
    >>> known["b"], known["a"], known["b"]
    (0, 1, 0)
    """

    def __init__(self) -> None:
        super().__init__()
        self.default_factory = self.__len__


def counts(texts: Iterable[str], vocabulary: Vocabulary) -> scipy.sparse.csr_array:
    """Word counts, one row for each text. Two matrices of one vocabulary may differ in width: see `aligned`.

    >>> counts(["a b a", ""], Vocabulary()).toarray().tolist()
    [[2, 1], [0, 0]]
    """
    number = vocabulary.__getitem__
    rows = [np.fromiter(map(number, words(text)), np.int32) for text in texts]
    ends = np.cumsum([0] + [len(row) for row in rows])
    places = np.concatenate(rows) if rows else np.empty(0, np.int32)
    ones: NDArray[np.int32] = np.ones(len(places), np.int32)
    matrix = scipy.sparse.csr_array((ones, places, ends), shape=(len(rows), len(vocabulary)))
    matrix.sum_duplicates()
    return matrix


def aligned(
    old: scipy.sparse.csr_array, new: scipy.sparse.csr_array
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
    """Both matrices at the width of the wider one."""
    width = max(old.shape[1], new.shape[1])
    return tuple(
        m if m.shape[1] == width else scipy.sparse.csr_array((m.data, m.indices, m.indptr), shape=(m.shape[0], width))
        for m in (old, new)
    )
