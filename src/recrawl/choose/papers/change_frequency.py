"""Policy `change-frequency`: visit each page at a frequency that follows from its own estimated change rate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np

from recrawl.book import Book
from recrawl.choose.shards.offers import RankedPages
from recrawl.choose.shards.rounds import RankedPolicy
from recrawl.choose.top_k import top_k
from recrawl.columns import DAY, Floats
from recrawl.errors import UsageError
from recrawl.learn.rates import bias_reduced
from recrawl.model import Outcomes

Allocation = Literal["uniform", "proportional", "optimal"]
NEW_PAGE_SCORE = 1e12
"""The score of a page that was never downloaded: above all others."""


class ChangeFrequency(RankedPolicy):
    """Visits every page at a frequency that follows from its own estimated change rate.

    The rate λ comes from the page's visits by Cho's bias-reduced estimator. A page without an observed change counts as
    having had half a change in its observation time; otherwise it would never be visited again. A page that was not
    compared yet has the mean rate of the others. Pages never downloaded come first.

    Parameters
    ----------
    allocation
        `uniform`: all pages equally often. `proportional`: in proportion to the change rate. `optimal`: the frequencies
        that maximise freshness, which gives few visits to pages that change faster than they can be visited.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(3, now=20 * DAY)
    >>> book.visits[:], book.changes[:], book.last_try[:], book.last_visit[:] = 10, [1, 9, 3], 18 * DAY, 18 * DAY
    >>> batches(ChangeFrequency(), book, budget=3)
    [[1, 2, 0]]

    Source: Al-Qaaideh 2009 §1.3.2, after Cho and Garcia-Molina 2000 and 2003.
    """

    name: ClassVar[str] = "change-frequency"
    source: ClassVar[str] = "Al-Qaaideh 2009 §1.3.2, Cho and Garcia-Molina 2000, 2003 (spec P8)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, allocation: Allocation = "proportional") -> None:
        if allocation not in ("uniform", "proportional", "optimal"):
            raise UsageError(
                f"change-frequency's allocation must be uniform, proportional or optimal, not '{allocation}'"
            )
        self.allocation = allocation

    def rankings(self, book: Book, budget: int, rng: np.random.Generator) -> Iterator[RankedPages]:  # noqa: ARG002
        """Yield all pages by priority."""
        pages = np.flatnonzero(book.known)
        # A failed visit counts as a try; otherwise a dead page would be chosen again in every cycle.
        tried = book.last_try[pages]
        new = (book.visits[pages] == 0) & (tried == -np.inf)
        waited = (book.now - np.maximum(tried, np.minimum(book.found[pages], book.now))) / DAY
        score = np.where(new, NEW_PAGE_SCORE, self._priority(page_rates(book)[pages], np.maximum(waited, 0.0)))
        luck = rng.random(len(pages))
        reason = f"it was most overdue under the {self.allocation} allocation of visits"
        yield RankedPages(pages, score, reason, order=lambda count: top_k(-score, count, tie=luck))

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Store the time of each page's first download, from which its rate is counted."""
        since = book.kept(f"{self.name}.since", np.nan)
        first = seen.answered & (book.visits[seen.pages] == 0)
        since[seen.pages[first]] = at[first]
        book.memory[f"{self.name}.since"] = since

    def _priority(self, rate: Floats, waited: Floats) -> Floats:
        """Return the priority of a visit; visiting the highest in every cycle gives pages their frequencies.

        For `optimal` it is the gain in freshness, (1 - (1 + u)·e^(-u)) / λ with u = λ·waited. It is at most 1/λ, so the
        fastest pages never reach the priority of the last page visited.
        """
        if self.allocation == "uniform":
            return waited
        if self.allocation == "proportional":
            return rate * waited
        expected = rate * waited
        return (1.0 - (1.0 + expected) * np.exp(-expected)) / rate


def page_rates(book: Book) -> Floats:
    """Return the estimated changes per day of every page; always above 0."""
    compared = np.maximum(book.visits - 1, 0)
    changed = np.clip(book.changes - 1, 0, compared)
    since = book.kept(f"{ChangeFrequency.name}.since", np.nan)
    watched = (book.last_visit - np.where(np.isnan(since), book.found, since)) / DAY
    observed = (compared > 0) & (watched > 0) & np.isfinite(watched)
    rate = np.ones(len(book))
    n, days = compared[observed], watched[observed]
    rate[observed] = np.maximum(bias_reduced(changed[observed], n, days / n), 0.5 / days)
    rate[~observed] = rate[observed].mean() if observed.any() else 1.0
    return rate
