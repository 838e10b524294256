"""The sketch of a page: 16 bytes by which copies of its content are known.

Four bytes are a checksum of its title and of its text outside the frame, twelve are a MinHash of that text: its runs of
16 bytes, from each place where a word begins (in scripts without spaces, a letter) are hashed and fall into twelve
parts by their hashes, and each byte is one of the smallest hash of a part. The share of these in which two pages agree
estimates the share of runs that they have in common; by chance one of 256 agrees. Pages with little content have no
sketch: that two of them look alike says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Ints

SKETCH_BYTES = 16
PARTS = 12
"""Bytes of a sketch that are a MinHash; the others are a checksum of everything."""
FEWEST_WORDS = 20
"""Words outside the frame of a page with a sketch."""
NEAR = 8
"""Of the twelve, how many two versions of one article share: with and without a menu, a date or a box of links."""
_EXACT = SKETCH_BYTES - PARTS
_RUN = bytes(16)
_LETTER = 0xE0
"""From here on, bytes begin letters of three bytes or more: the scripts of South and East Asia, and some signs."""
_FIRST, _SECOND, _THIRD = map(np.uint64, (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))
_HALF, _TOP = np.uint64(32), np.uint64(56)
_PARTS = np.array([(part << 64) // PARTS for part in range(PARTS)], np.uint64)
"""The smallest hash of each part."""

Sketches = NDArray[np.uint8]
"""One row of 16 bytes for each page; zeros for a page without a sketch."""


def sketch_of(text: str, title: str = "") -> bytes:
    """The sketch of a page from its text outside the frame, on one line; empty for a page with few words.

    >>> words = [f"word{number}" for number in range(99)]
    >>> len(sketch_of(" ".join(words))), sketch_of(" ".join(words[:9]))
    (16, b'')
    """
    coded = text.encode("utf-8", "replace")
    codes = np.frombuffer(b" %b%b" % (coded, _RUN), np.uint8)
    end = len(coded)
    begins = ((codes[:end] == ord(" ")) | (codes[1 : end + 1] >= _LETTER)).nonzero()[0]
    if len(begins) < FEWEST_WORDS:
        return b""
    eights = np.ndarray(end + 8, "<u8", codes, 1, (1,))  # the eight bytes from each place of the text
    hashes = eights[begins + 8]
    hashes *= _FIRST
    hashes ^= eights[begins]
    hashes *= _SECOND
    hashes ^= hashes >> _HALF
    hashes *= _THIRD
    hashes.sort()
    smallest = hashes.take(hashes.searchsorted(_PARTS), mode="wrap")  # an empty part takes that of the next one
    whole = crc32(coded, crc32(title.encode("utf-8", "replace")))
    return bytes(whole.to_bytes(_EXACT, "little") + (smallest * _FIRST >> _TOP).astype(np.uint8).tobytes())


def sketches(values: Sequence[bytes | None]) -> Sketches:
    """Sketches as rows.

    >>> sketches([None, sketch_of("word " * 20)]).any(axis=1).tolist()
    [False, True]
    """
    none = bytes(SKETCH_BYTES)
    whole = b"".join(value or none for value in values)
    return np.frombuffer(whole, np.uint8).reshape(-1, SKETCH_BYTES)


def shared(one: Sketches, other: Sketches) -> Ints:
    """Of the twelve bytes, how many two sketches share; row by row. None for a page without a sketch.

    >>> lines = [f"The line number {number}" for number in range(42)]
    >>> a, b = (sketches([sketch_of(" ".join(some))]) for some in (lines[:40], lines[2:]))
    >>> int(shared(a, b)[0]) >= NEAR, int(shared(a, sketches([None]))[0])
    (True, 0)
    """
    equal = (one[:, _EXACT:] == other[:, _EXACT:]).sum(axis=1)
    both: Flags = np.any(one, axis=1) & np.any(other, axis=1)
    return np.where(both, equal, 0)


def near(one: bytes, other: bytes) -> bool:
    """Whether two sketches are of nearly the same content."""
    return bool(shared(sketches([one]), sketches([other]))[0] >= NEAR)
