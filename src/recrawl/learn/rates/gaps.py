"""What visits say about how often pages change: columns of gaps between visits, and sums of them that fit in a book.

A visit tells whether its page has changed since the visit before it. `Gaps` has one row for every such answer, in any
order, and is what all estimators of change rates take. `GapSums` is the same in four numbers a page, for a policy that
cannot keep every visit: all gaps that ended in a change are taken to have been equally long, and so are all that did
not. At regular visits nothing is lost by that, and little at any others.

Times are in days here, in tallies and in gaps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.model import Outcomes

Floats = NDArray[np.float64]
DAY = 86400.0
LEAST = 1.0 / DAY
"""The shortest gap: a second. Clocks that stand still or step back give no shorter ones."""
MOST = 36525.0
"""The longest gap: a century."""


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """Answers of visits, one row each, in any order. Gaps are put between a second and a century.

    >>> gaps = Gaps.of([0, 0, 1], [1.0, 2.0, -5.0], [True, False, False], pages=3)
    >>> gaps.gap.round(5).tolist(), gaps.visits.tolist(), gaps.changes.tolist()
    ([1.0, 2.0, 1e-05], [2.0, 1.0, 0.0], [1.0, 0.0, 0.0])
    """

    page: NDArray[np.int64]
    gap: Floats
    """Days since the visit before."""
    changed: NDArray[np.bool_]
    pages: int
    times: Floats
    """How often this row was seen; 1 for a visit."""
    quiet: Floats
    """Where the page has changed: for how many days before the visit it is known not to have, as its server tells when
    the last change was. Not a number where nobody tells."""

    @classmethod
    def of(
        cls,
        page: object,
        gap: object,
        changed: object,
        *,
        pages: int,
        times: object = None,
        quiet: object = None,
    ) -> Gaps:
        """From anything that numpy takes for columns; rows whose gap is not a number are left out."""
        length = np.asarray(gap, np.float64)
        told = ~np.isnan(length)
        length = np.clip(length[told], LEAST, MOST)
        many = np.ones(len(length)) if times is None else np.asarray(times, np.float64)[told]
        since = np.full(len(length), np.nan) if quiet is None else np.asarray(quiet, np.float64)[told]
        return cls(
            page=np.asarray(page, np.int64)[told],
            gap=length,
            changed=np.asarray(changed, bool)[told],
            pages=pages,
            times=many,
            quiet=np.clip(since, LEAST, length),  # a change before the last visit would have been seen by it
        )

    @property
    def visits(self) -> Floats:
        """One per page: answers."""
        return self.sums(self.times)

    @property
    def changes(self) -> Floats:
        """One per page: answers that the page has changed."""
        return self.sums(self.times * self.changed)

    @property
    def watched(self) -> Floats:
        """One per page: days from the first visit to the last."""
        return self.sums(self.times * self.gap)

    def sums(self, rows: Floats) -> Floats:
        """One per page: the sum of a column over the page's rows."""
        return np.bincount(self.page, rows, self.pages).astype(np.float64)


@dataclass(slots=True, eq=False)
class GapSums:
    """Four numbers a page: visits that found a change and the days of their gaps, visits that found none and theirs."""

    changed: Floats
    changed_days: Floats
    same: Floats
    same_days: Floats

    @classmethod
    def kept(cls, book: Book, name: str) -> GapSums:
        """What a policy of this name has in its memory."""
        return cls(*(book.kept(f"{name}.{column}", 0.0) for column in _COLUMNS))

    def keep(self, book: Book, name: str) -> None:
        """Put it into the memory."""
        book.memory |= {f"{name}.{column}": getattr(self, column) for column in _COLUMNS}

    def add(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:
        """Take in visits of a cycle, before the book does. The first visit to a page has nothing to compare with.

        >>> book = Book.blank(2, now=3 * DAY)
        >>> book.visits[:], book.last_visit[:] = 1, [0.0, DAY]
        >>> sums = GapSums.kept(book, "mine")
        >>> sums.add(book, Outcomes(np.array([0, 1]), np.array([2, 0], np.int8)), np.full(2, 3 * DAY))
        >>> sums.changed.tolist(), sums.changed_days.tolist(), sums.same_days.tolist()
        ([1.0, 0.0], [3.0, 0.0], [0.0, 2.0])
        """
        told = seen.answered & (book.visits[seen.pages] > 0)
        pages, changed = seen.pages[told], seen.changed[told]
        times = np.broadcast_to(np.asarray(at, np.float64), len(seen))[told]
        gap = np.clip((times - book.last_visit[pages]) / DAY, LEAST, MOST)
        for column, amount in zip(_COLUMNS, (changed, gap * changed, ~changed, gap * ~changed), strict=True):
            np.add.at(getattr(self, column), pages, amount)

    def gaps(self) -> Gaps:
        """As gaps: at most two rows a page."""
        pages = len(self.changed)
        both = []
        for many, days, found in ((self.changed, self.changed_days, True), (self.same, self.same_days, False)):
            some = np.flatnonzero(many > 0)
            both.append((some, days[some] / many[some], np.full(len(some), found), many[some]))
        page, gap, changed, times = (np.concatenate(parts) for parts in zip(*both, strict=True))
        return Gaps.of(page, gap, changed, pages=pages, times=times)


_COLUMNS = ("changed", "changed_days", "same", "same_days")
