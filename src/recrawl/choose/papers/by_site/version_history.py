"""A page's change rate over its last versions (Q §3.3.2), for `frequency-greedy` and `frequency-adaptive`.

Each version is compared with the previous one when it arrives, and only the result is stored: one bit per visit, in one
number per page. So only the newest version of a page is needed (Q §3.3.2.3: 2P/T instead of V·P/T), and C = D/V counts
D changes in the last V comparisons.
"""

from __future__ import annotations

import numpy as np

from recrawl.book import Book
from recrawl.columns import Floats, Ints
from recrawl.model import Outcomes

MAX_VERSIONS = 60
"""Comparisons that fit into one number."""


def page_rates(book: Book, policy: str, versions: int, seen: Outcomes) -> Floats:
    """Return C of each visited page, this visit included; 0 for a visit that failed.

    A page with fewer than `versions` comparisons uses those it has; a first download counts as a change.
    """
    _, compared, changes = _with_visits(book, policy, versions, seen)
    rate: Floats = np.where(seen.answered, changes / compared, 0.0)
    return rate


def store_comparisons(book: Book, policy: str, versions: int, seen: Outcomes) -> None:
    """Store the comparisons of a cycle in the book's memory; a first download is no comparison."""
    flags, compared = _columns(book, policy)
    bits, counts, _ = _with_visits(book, policy, versions, seen)
    kept = seen.answered & (book.visits[seen.pages] > 0)
    flags[seen.pages[kept]] = bits[kept]
    compared[seen.pages[kept]] = counts[kept]
    book.memory[f"{policy}.flags"], book.memory[f"{policy}.compared"] = flags, compared


def _columns(book: Book, policy: str) -> tuple[Ints, Ints]:
    """Return, per page, the comparisons as bits (the newest lowest) and their number."""
    return book.kept(f"{policy}.flags", 0, np.int64), book.kept(f"{policy}.compared", 0, np.int64)


def _with_visits(book: Book, policy: str, versions: int, seen: Outcomes) -> tuple[Ints, Ints, Ints]:
    """Return, for each outcome and including it: the page's bits, its comparisons, and its changes among them."""
    flags, compared = _columns(book, policy)
    bits = ((flags[seen.pages] << 1) | seen.changed) & ((1 << versions) - 1)
    ones = np.unpackbits(bits.view(np.uint8).reshape(len(bits), 8), axis=1).sum(axis=1, dtype=np.int64)
    return bits, np.minimum(compared[seen.pages] + 1, versions), ones
