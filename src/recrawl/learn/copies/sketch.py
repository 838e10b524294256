"""The sketch of a page: 16 bytes by which copies of its content are known.

Four bytes are a hash of its title and of all its texts outside the frame in order, twelve are a MinHash: each is a byte
of the smallest of the texts' hashes under a permutation of its own. The share of these in which two pages agree
estimates the share of texts that they have in common; by chance one of 256 agrees. Pages with little content have no
sketch: that two of them look alike says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Ints

SKETCH_BYTES = 16
PERMUTATIONS = 12
"""Bytes of a sketch that are a MinHash; the others are a hash of everything."""
FEWEST_WORDS = 20
"""Words outside the frame of a page with a sketch."""
NEAR = 8
"""Of the twelve, how many two versions of one article share: with and without a menu, a date or a box of links."""
_EXACT = SKETCH_BYTES - PERMUTATIONS
_GENERATOR = np.random.default_rng(39)
_FACTORS, _OFFSETS = _GENERATOR.integers(1, 1 << 63, (2, 1, PERMUTATIONS)).astype(np.uint64) * 2 + 1
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HIGH, _TOP = np.uint64(32), np.uint64(56)

Sketches = NDArray[np.uint8]
"""One row of 16 bytes for each page; zeros for a page without a sketch."""


def sketch_of(texts: Sequence[str], title: str = "") -> bytes:
    """The sketch of a page from its texts outside the frame, in order; empty for a page with few words.

    >>> texts = [f"The line number {number} of a page" for number in range(9)]
    >>> len(sketch_of(texts)), sketch_of(texts[:2]), sketch_of(texts) == sketch_of(texts[::-1])
    (16, b'', False)
    """
    coded = "\n".join(texts).encode("utf-8", "replace")
    if coded.count(b" ") + len(texts) < FEWEST_WORDS:
        return b""
    whole = blake2b(coded, digest_size=_EXACT, key=blake2b(title.encode("utf-8", "replace")).digest())
    hashes = np.array([*set(map(crc32, coded.split(b"\n")))], np.uint64)[:, None] * _FACTORS + _OFFSETS
    hashes ^= hashes >> _HIGH
    smallest = (hashes * _MIX).min(axis=0) * _MIX >> _TOP
    return bytes(whole.digest() + smallest.astype(np.uint8).tobytes())


def sketches(values: Sequence[bytes | None]) -> Sketches:
    """Sketches as rows.

    >>> sketches([None, sketch_of(["word"] * 20)]).any(axis=1).tolist()
    [False, True]
    """
    none = bytes(SKETCH_BYTES)
    whole = b"".join(value or none for value in values)
    return np.frombuffer(whole, np.uint8).reshape(-1, SKETCH_BYTES)


def shared(one: Sketches, other: Sketches) -> Ints:
    """Of the twelve bytes, how many two sketches share; row by row. None for a page without a sketch.

    >>> lines = [f"The line number {number}" for number in range(42)]
    >>> a, b = (sketches([sketch_of(texts)]) for texts in (lines[:40], lines[2:]))
    >>> int(shared(a, b)[0]) >= NEAR, int(shared(a, sketches([None]))[0])
    (True, 0)
    """
    equal = (one[:, _EXACT:] == other[:, _EXACT:]).sum(axis=1)
    both: Flags = np.any(one, axis=1) & np.any(other, axis=1)
    return np.where(both, equal, 0)


def near(one: bytes, other: bytes) -> bool:
    """Whether two sketches are of nearly the same content."""
    return bool(shared(sketches([one]), sketches([other]))[0] >= NEAR)
