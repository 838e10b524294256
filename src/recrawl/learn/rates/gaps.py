"""Visits as gaps between them, the input of all estimators of change rates.

A visit shows whether its page has changed since the previous visit. `Gaps` has one row for every such comparison, in
any order. `GapSums` summarises them in four numbers per page, for a policy that cannot keep every visit: it treats all
gaps that ended in a change as equally long, and all others too. This is exact for regular visits and close for others.

Times are in days here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.book import Book
from recrawl.columns import DAY, Flags, Floats, Ints
from recrawl.model import Outcomes
from recrawl.times import SKEW

MIN_GAP = 1.0 / DAY
"""The shortest gap: one second, even if the clock stands still or steps back."""
MAX_GAP = 36525.0
"""The longest gap: a century."""


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """Comparisons of visits with the previous ones, one row each, in any order; gaps from a second to a century.

    >>> gaps = Gaps.of([0, 0, 1], [1.0, 2.0, -1e-3], [True, False, False], pages=3)
    >>> gaps.gap.round(5).tolist(), gaps.visits.tolist(), gaps.changes.tolist()
    ([1.0, 2.0, 1e-05], [2.0, 1.0, 0.0], [1.0, 0.0, 0.0])
    """

    page: Ints
    gap: Floats
    """Days since the previous visit."""
    changed: Flags
    pages: int
    """Number of pages."""
    times: Floats
    """The number of visits that the row stands for."""
    quiet: Floats
    """For a changed page whose server reports the last change: the days from then to the visit; else NaN."""

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
        """Build from any columns that numpy accepts; rows whose gap is NaN are left out.

        So are those in which the clock was set back: nobody knows how long they were.
        """
        length = np.asarray(gap, np.float64)
        valid = length >= -SKEW / DAY
        length = np.clip(length[valid], MIN_GAP, MAX_GAP)
        count = np.ones(len(length)) if times is None else np.asarray(times, np.float64)[valid]
        since = np.full(len(length), np.nan) if quiet is None else np.asarray(quiet, np.float64)[valid]
        return cls(
            page=np.asarray(page, np.int64)[valid],
            gap=length,
            changed=np.asarray(changed, bool)[valid],
            pages=pages,
            times=count,
            quiet=np.clip(since, MIN_GAP, length),  # the previous visit would have seen an earlier change
        )

    @property
    def visits(self) -> Floats:
        """One per page: comparisons."""
        return self.sums(self.times)

    @property
    def changes(self) -> Floats:
        """One per page: comparisons that found a change."""
        return self.sums(self.times * self.changed)

    @property
    def watched(self) -> Floats:
        """One per page: days from the first visit to the last."""
        return self.sums(self.times * self.gap)

    def sums(self, rows: Floats) -> Floats:
        """Return the sum of a column over each page's rows."""
        return np.bincount(self.page, rows, self.pages).astype(np.float64)


@dataclass(slots=True, eq=False)
class GapSums:
    """Four numbers per page: visits with a change and the days of their gaps, visits without and the days of theirs."""

    changed: Floats
    changed_days: Floats
    same: Floats
    same_days: Floats

    @classmethod
    def kept(cls, book: Book, name: str) -> GapSums:
        """Load the sums of a policy from the book's memory."""
        return cls(*(book.kept(f"{name}.{column}", 0.0) for column in _COLUMNS))

    def keep(self, book: Book, name: str) -> None:
        """Store the sums in the book's memory."""
        book.memory |= {f"{name}.{column}": getattr(self, column) for column in _COLUMNS}

    def add(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Add the visits of a cycle, before the book notes them; a first visit is no comparison.

        >>> book = Book.blank(2, now=3 * DAY)
        >>> book.visits[:], book.last_visit[:] = 1, [0.0, DAY]
        >>> sums = GapSums.kept(book, "mine")
        >>> sums.add(book, Outcomes(np.array([0, 1]), np.array([2, 0], np.int8)), np.full(2, 3 * DAY))
        >>> sums.changed.tolist(), sums.changed_days.tolist(), sums.same_days.tolist()
        ([1.0, 0.0], [3.0, 0.0], [0.0, 2.0])
        """
        compared = seen.answered & (book.visits[seen.pages] > 0)
        pages, changed = seen.pages[compared], seen.changed[compared]
        times = np.broadcast_to(np.asarray(at, np.float64), len(seen))[compared]
        gap = np.clip((times - book.last_visit[pages]) / DAY, MIN_GAP, MAX_GAP)
        for column, amount in zip(_COLUMNS, (changed, gap * changed, ~changed, gap * ~changed), strict=True):
            np.add.at(getattr(self, column), pages, amount)

    def gaps(self) -> Gaps:
        """Convert to gaps, at most two rows per page."""
        pages = len(self.changed)
        both = []
        for count, days, found in ((self.changed, self.changed_days, True), (self.same, self.same_days, False)):
            rows = np.flatnonzero(count > 0)
            both.append((rows, days[rows] / count[rows], np.full(len(rows), found), count[rows]))
        page, gap, changed, times = (np.concatenate(parts) for parts in zip(*both, strict=True))
        return Gaps.of(page, gap, changed, pages=pages, times=times)


_COLUMNS = ("changed", "changed_days", "same", "same_days")
