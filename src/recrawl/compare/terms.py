"""Word counts of many texts as a sparse matrix, one row per text and one column per word.

A word's column is its number in a vocabulary (`counts`), or its CRC-32 cut to 18 bits (`hashed`). Hashed counts need no
list of all words, so texts can be counted in any number of batches and on any machine; a few collisions do not harm
clusters by tf·idf. Files hold hashed counts, so the hash must never change.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice
from urllib.parse import unquote
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Int32s
from recrawl.extras import scipy
from recrawl.words import words

BUCKETS = 2**18
"""Columns of hashed counts."""
_BATCH_TEXTS = 2_000
"""Texts hashed at a time: enough for most words to recur, so that each is hashed rarely."""
_MAX_COUNT = 2**16 - 1
"""Hashed counts have 16 bits: with hundreds of words per page they dominate the memory."""


class Vocabulary(defaultdict[str, int]):
    """Numbers of words, in order of first use.

    >>> known = Vocabulary()
    >>> known["b"], known["a"], known["b"]
    (0, 1, 0)
    """

    def __init__(self) -> None:
        super().__init__()
        self.default_factory = self.__len__


def counts(texts: Iterable[str], vocabulary: Vocabulary) -> scipy.sparse.csr_array:
    """Return word counts, one row per text. Two matrices of one vocabulary may differ in width: see `aligned`.

    >>> counts(["a b a", ""], Vocabulary()).toarray().tolist()
    [[2, 1], [0, 0]]
    """
    number = vocabulary.__getitem__
    rows = [np.fromiter(map(number, words(text)), np.int32) for text in texts]
    ends = np.cumsum([0] + [len(row) for row in rows])
    places = np.concatenate(rows) if rows else np.empty(0, np.int32)
    ones: Int32s = np.ones(len(places), np.int32)
    matrix = scipy.sparse.csr_array((ones, places, ends), shape=(len(rows), len(vocabulary)))
    matrix.sum_duplicates()
    return matrix


def aligned(
    old: scipy.sparse.csr_array, new: scipy.sparse.csr_array
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
    """Return both matrices with the width of the wider one."""
    width = max(old.shape[1], new.shape[1])
    return tuple(
        m if m.shape[1] == width else scipy.sparse.csr_array((m.data, m.indices, m.indptr), shape=(m.shape[0], width))
        for m in (old, new)
    )


def hashed(texts: Iterable[str]) -> scipy.sparse.csr_array:
    """Return word counts, one row per text and one column per hash.

    >>> hashed(["b a b", ""]).toarray()[:, [crc32(b"a") % BUCKETS, crc32(b"b") % BUCKETS]].tolist()
    [[1, 2], [0, 0]]
    """
    stream = iter(texts)
    return stacked(map(_hashed, iter(lambda: list(islice(stream, _BATCH_TEXTS)), [])))


def hashed_words(text: str) -> tuple[Int32s, Int32s]:
    """Return the columns of one text's hashed counts, ascending, and the counts.

    >>> columns, found = hashed_words("b a b")
    >>> dict(zip(columns.tolist(), found.tolist())) == {crc32(b"a") % BUCKETS: 1, crc32(b"b") % BUCKETS: 2}
    True
    """
    found = Counter(words(text))
    bucket = np.fromiter((_bucket(word) for word in found), np.int32, len(found))
    columns, place = np.unique(bucket, return_inverse=True)
    sums = np.bincount(place, weights=np.fromiter(found.values(), np.float64, len(found)), minlength=len(columns))
    return columns, np.minimum(sums, _MAX_COUNT).astype(np.int32)


def hashed_addresses(urls: Iterable[str]) -> scipy.sparse.csr_array:
    """Return hashed counts of the words of URLs: without the scheme, `_` as a space, `%41` as `A`.

    >>> (hashed_addresses(["https://a.example/b_%62"]) != hashed(["a.example/b b"])).nnz
    0
    """
    return hashed(unquote(url.partition("://")[2].replace("_", " ")) for url in urls)


def stacked(parts: Iterable[scipy.sparse.csr_array]) -> scipy.sparse.csr_array:
    """Stack hashed counts. The arrays grow in place, so that memory never holds all counts twice."""
    data: NDArray[np.uint16] = np.empty(0, np.uint16)
    columns: Int32s = np.empty(0, np.int32)
    lengths = [np.zeros(1, np.int64)]
    for part in parts:
        begin, end = len(data), len(data) + part.nnz
        data.resize(end, refcheck=False)
        columns.resize(end, refcheck=False)
        data[begin:], columns[begin:] = np.minimum(part.data, _MAX_COUNT), part.indices
        lengths.append(np.diff(part.indptr))
    start = np.cumsum(np.concatenate(lengths))
    if start[-1] < 2**31:  # with 64-bit row starts scipy would copy the columns to 64 bits as well
        start = start.astype(np.int32)
    return scipy.sparse.csr_array((data, columns, start), shape=(len(start) - 1, BUCKETS))


def _hashed(texts: list[str]) -> scipy.sparse.csr_array:
    """Count by vocabulary number first, which hashes each different word only once."""
    numbers = Vocabulary()
    numbered = counts(texts, numbers)
    bucket = np.fromiter((_bucket(word) for word in numbers), np.int32, len(numbers))
    columns = bucket[numbered.indices]
    matrix = scipy.sparse.csr_array((numbered.data, columns, numbered.indptr), shape=(len(texts), BUCKETS))
    matrix.sum_duplicates()
    return matrix


def _bucket(word: str) -> int:
    return crc32(word.encode("utf-8", "replace")) % BUCKETS
