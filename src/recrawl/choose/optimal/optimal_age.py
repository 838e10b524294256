"""The least time out of date, when pages change independently of each other."""

from __future__ import annotations

from typing import ClassVar

from recrawl.choose.optimal.rate_base import ByIndex


class OptimalAge(ByIndex):
    """Visits what makes the repository youngest: how long pages have been out of date counts, so none is left alone.

    A visit is worth (u²/2 - 1 + (1 + u)·e^(-u)) / λ² for a page of rate λ that u = λ·t changes are expected of since
    its last visit, times its weight, over its cost.

    Parameters
    ----------
    estimator
        Where rates come from: `gamma` (pages learn from their directory and site, and the worth is expected over all
        rates that a page may have), or `naive`, `regular`, `irregular`, `moment`, `averaged`, each page for itself.

    Example
    -------
    >>> from recrawl.book import Book
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> from recrawl.loop import drive
    >>> book = Book.blank(3, now=864000.0)
    >>> book.visits[:], book.last_try[:], book.last_visit[:] = 1, [0.0, 432000.0, 777600.0], [0.0, 432000.0, 777600.0]
    >>> [seen.pages.tolist() for seen in drive(OptimalAge(), Still(), book, budget=2, seed=1)]
    [[0, 1]]

    Source: Cho and Garcia-Molina 2003 (optimal age), as a price for each page.
    """

    name: ClassVar[str] = "optimal-age"
    source: ClassVar[str] = "Cho and Garcia-Molina 2000, 2003: optimal age"
    needs: ClassVar[frozenset[str]] = frozenset({"folders"})
    objective: ClassVar[str] = "age"
    reason: ClassVar[str] = "a visit makes the repository younger than any other would"
