"""Words and word counts.

A word is a run of letters and digits, in lower case; in scripts that are written without spaces every
character is one. Counts of many texts are kept as one sparse matrix, text by word.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import scipy  # its parts load when first used: a crawl that sees no change never pays for them
from numpy.typing import NDArray

_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_SPACELESS}]|[^\W\u2000-\u2fff{_SPACELESS}]+")
# The fast road, for text in Latin or Cyrillic letters: the UTF-8 bytes that may lead a character there,
_CONTINUATION = bytes(range(0x80, 0xC0))
_PLAIN = bytes(range(0x80)) + _CONTINUATION + b"\xc2\xc3\xc4\xc5\xd0\xd1\xe2"
# what is a sign there and not a letter (all of U+2000-2FFF), and ASCII with its signs as spaces.
_SIGNS = re.compile(rb"\xe2[\x80-\xbf]{2}|\xc2[\x80-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf]|\xc3[\x97\xb7]")
_ASCII = bytes(c if c > 127 or chr(c).isalnum() or c == ord("_") else ord(" ") for c in range(256))


def words(text: str) -> list[str]:
    """The words of a text, in order.

    >>> words("It's 7 o'clock: über 日本")
    ['it', 's', '7', 'o', 'clock', 'über', '日', '本']
    """
    text = text.lower()
    data = text.encode("utf-8", "replace")
    if data.translate(None, _PLAIN):
        return _WORD.findall(text)
    if not data.isascii():
        data = _SIGNS.sub(b" ", data)
    return data.translate(_ASCII).decode().split()


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
