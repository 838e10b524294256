"""Word counts: those of many texts are kept as one sparse matrix, text by word.

Words have numbers of a vocabulary (`counts`), or hashes (`hashed`): a word's column is its CRC-32, cut to 18 bits.
With hashes texts can be counted in any number of goes, on any machine, without a list of all words; that a few words
share a column does no harm to clusters by tf·idf. They are kept in files, so the hash must never change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import islice
from urllib.parse import unquote
from zlib import crc32

import numpy as np
import scipy  # its parts load when first used: a crawl that sees no change never pays for them
from numpy.typing import NDArray

from recrawl.compare.words import words

BUCKETS = 2**18
"""Columns for hashed words."""
_TEXTS = 2_000
"""Hashed at a time: enough for most words to be met again, so that each is hashed seldom."""
_MOST = 2**16 - 1
"""Hashed counts are kept in 16 bits: with hundreds of words a page, they are what takes the memory."""


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


def hashed(texts: Iterable[str]) -> scipy.sparse.csr_array:
    """Word counts, one row for each text, one column for each hash.

    >>> hashed(["b a b", ""]).toarray()[:, [crc32(b"a") % BUCKETS, crc32(b"b") % BUCKETS]].tolist()
    [[1, 2], [0, 0]]
    """
    stream = iter(texts)
    return stacked(map(_hashed, iter(lambda: list(islice(stream, _TEXTS)), [])))


def hashed_addresses(urls: Iterable[str]) -> scipy.sparse.csr_array:
    """The same of the words of addresses: without the scheme, `_` parting words too, `%41` as `A`.

    >>> (hashed_addresses(["https://a.example/b_%62"]) != hashed(["a.example/b b"])).nnz
    0
    """
    return hashed(unquote(url.partition("://")[2].replace("_", " ")) for url in urls)


def stacked(parts: Iterable[scipy.sparse.csr_array]) -> scipy.sparse.csr_array:
    """Hashed counts one below the other. Arrays grow in place, no part is kept: all counts twice would be too many."""
    data: NDArray[np.uint16] = np.empty(0, np.uint16)
    columns: NDArray[np.int32] = np.empty(0, np.int32)
    lengths = [np.zeros(1, np.int64)]
    for part in parts:
        begin, end = len(data), len(data) + part.nnz
        data.resize(end, refcheck=False)
        columns.resize(end, refcheck=False)
        data[begin:], columns[begin:] = np.minimum(part.data, _MOST), part.indices
        lengths.append(np.diff(part.indptr))
    start = np.cumsum(np.concatenate(lengths))
    if start[-1] < 2**31:  # or else the columns would be copied to the 64 bits of their starts
        start = start.astype(np.int32)
    return scipy.sparse.csr_array((data, columns, start), shape=(len(start) - 1, BUCKETS))


def _hashed(texts: list[str]) -> scipy.sparse.csr_array:
    """Counted by number first, which hashes each word once and not at every place where it stands."""
    numbers = Vocabulary()
    numbered = counts(texts, numbers)
    bucket = np.fromiter((crc32(word.encode("utf-8", "replace")) % BUCKETS for word in numbers), np.int32, len(numbers))
    columns = bucket[numbered.indices]
    matrix = scipy.sparse.csr_array((numbered.data, columns, numbered.indptr), shape=(len(texts), BUCKETS))
    matrix.sum_duplicates()
    return matrix
