"""Numbers of pages and requisites inside of packed columns: links, requisites of a page, members of a site's frame."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from recrawl.columns import Ints


class NewNumbers(Protocol):
    """What gives rows their new numbers."""

    def at(self, shards: Ints, numbers: Ints) -> Ints:
        """The new numbers of rows, each in the shard that refers to it; -1 where that does not know it."""


def repacked(packed: bytes, shard: int, numbering: NewNumbers) -> bytes:
    """Numbers as little-endian int32 without those of other shards: the shards of a cluster have no links across."""
    old = np.frombuffer(packed, "<i4").astype(np.int64)
    new = numbering.at(np.full(len(old), shard), old)
    return new[new >= 0].astype("<i4").tobytes()


def repacked_frame(data: bytes, shard: int, pages: NewNumbers) -> bytes:
    """The frame of a site: the number of its members, their pages, and more that stays as it is."""
    size = int.from_bytes(data[:4], "little")
    if len(data) < 4 + 16 * size:  # not a frame
        return data
    old = np.frombuffer(data, "<i8", size, 4).astype(np.int64)
    return data[:4] + pages.at(np.full(size, shard), old).astype("<i8").tobytes() + data[4 + 8 * size :]
