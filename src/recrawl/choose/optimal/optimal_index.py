"""Policies `optimal-freshness` and `optimal-age`: visit the page whose visit improves one objective most.

Both assume that pages change independently of each other. Visiting the page with the highest index in each cycle gives
all pages the frequencies that Cho and Garcia-Molina derive, without solving for them, and adapts when the budget or a
rate changes.
"""

from __future__ import annotations

from typing import ClassVar

from recrawl.choose.optimal.rate_base import IndexPolicy


class OptimalFreshness(IndexPolicy):
    """Visits the pages whose visit adds most to freshness; pages that change too fast get no visits.

    The index of a page with change rate λ, t after its last visit, is (1 - (1 + u)·e^(-u)) / λ with u = λ·t, times its
    weight, divided by its cost.

    Parameters
    ----------
    estimator
        The source of change rates: `gamma` (pages share information with their directory and site, and the index is
        averaged over the posterior), or `naive`, `regular`, `irregular`, `moment`, `averaged` from each page alone.

    Example
    -------
    >>> from recrawl.book import Book
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(3, now=864000.0)
    >>> book.visits[:], book.last_visit[:] = 1, [0.0, 432000.0, 777600.0]
    >>> batches(OptimalFreshness(), book, budget=2)
    [[0, 1]]

    Source: Cho and Garcia-Molina 2003 (optimal freshness), as an index per page.
    """

    name: ClassVar[str] = "optimal-freshness"
    source: ClassVar[str] = "Cho and Garcia-Molina 2000, 2003: optimal freshness"
    needs: ClassVar[frozenset[str]] = frozenset({"folders"})
    objective: ClassVar[str] = "freshness"
    reason: ClassVar[str] = "a visit to it added most to expected freshness"


class OptimalAge(IndexPolicy):
    """Visits the pages whose visit reduces the mean age most; every page is visited at last.

    The index of a page with change rate λ, t after its last visit, is (u²/2 - 1 + (1 + u)·e^(-u)) / λ² with u = λ·t,
    times its weight, divided by its cost.

    Parameters
    ----------
    estimator
        The source of change rates, as in `optimal-freshness`.

    Example
    -------
    >>> from recrawl.book import Book
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(3, now=864000.0)
    >>> book.visits[:], book.last_visit[:] = 1, [0.0, 432000.0, 777600.0]
    >>> batches(OptimalAge(), book, budget=2)
    [[0, 1]]

    Source: Cho and Garcia-Molina 2003 (optimal age), as an index per page.
    """

    name: ClassVar[str] = "optimal-age"
    source: ClassVar[str] = "Cho and Garcia-Molina 2000, 2003: optimal age"
    needs: ClassVar[frozenset[str]] = frozenset({"folders"})
    objective: ClassVar[str] = "age"
    reason: ClassVar[str] = "a visit to it reduced the expected age most"
