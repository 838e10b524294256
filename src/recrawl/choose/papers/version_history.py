"""A page's rate of change over its last versions, from which of them had changed and nothing else (Q §3.3.2).

A version is compared with the one before it when it arrives, and only whether it had changed is kept: one bit a visit,
in one number a page. So no old version needs to be stored but the newest (Q §3.3.2.3: 2P/T instead of V·P/T), and
C = D/V counts D changes in the last V comparisons. No policy itself; `frequency-greedy` and `frequency-adaptive` use
it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.model import Outcomes

MOST = 60
"""Versions that fit in the number."""


def page_rates(book: Book, policy: str, versions: int, seen: Outcomes) -> NDArray[np.float64]:
    """C of each page just visited, that visit included; 0 for a visit that failed.

    A page with fewer comparisons behind it is judged by those it has; a page downloaded for the first time is new, and
    that is a change.
    """
    _, compared, changes = _pushed(book, policy, versions, seen)
    rate: NDArray[np.float64] = np.where(seen.answered, changes / compared, 0.0)
    return rate


def remember(book: Book, policy: str, versions: int, seen: Outcomes) -> None:
    """Keep what a cycle's visits said; for `learn`. A first download is no comparison, so it leaves no trace."""
    flags, compared = _columns(book, policy)
    pushed, counts, _ = _pushed(book, policy, versions, seen)
    kept = seen.answered & (book.visits[seen.pages] > 0)
    flags[seen.pages[kept]] = pushed[kept]
    compared[seen.pages[kept]] = counts[kept]
    book.memory[f"{policy}.flags"], book.memory[f"{policy}.compared"] = flags, compared


def _columns(book: Book, policy: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per page: the comparisons as bits, the newest lowest, and how many there are."""
    return book.kept(f"{policy}.flags", 0, np.int64), book.kept(f"{policy}.compared", 0, np.int64)


def _pushed(
    book: Book, policy: str, versions: int, seen: Outcomes
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """For each outcome, with it: the page's bits, its number of comparisons, and how many of them were changes."""
    flags, compared = _columns(book, policy)
    bits = ((flags[seen.pages] << 1) | seen.changed) & ((1 << versions) - 1)
    ones = np.unpackbits(bits.view(np.uint8).reshape(len(bits), 8), axis=1).sum(axis=1, dtype=np.int64)
    return bits, np.minimum(compared[seen.pages] + 1, versions), ones
