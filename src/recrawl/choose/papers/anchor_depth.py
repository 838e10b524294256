"""News sites: what is close to the page that names the news is visited every few hours, the rest slowly."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.errors import UsageError
from recrawl.learn.structure.anchor import anchors
from recrawl.learn.structure.depth import DEEPEST, from_anchors, layers, recommend
from recrawl.model import Outcomes, Picks

HOUR, DAY = 3600.0, 86400.0
NAMED = "anchor-depth.named"
"""Where the book's memory holds the pages that the user named as anchors."""
_DEPTH, _TURN = "anchor-depth.depth", "anchor-depth.turn"
_WITH = "anchor-depth.with"
"""The pages that were named when the depths were counted: when others are, they are counted again at once."""
_EARLY = 0.9
"""A page is due when so much of its interval is over: cycles do not begin to the second."""


class AnchorDepth:
    """Two groups: pages at most n links from the anchor of their site every few hours, the rest slowly (spec A3).

    The anchor is the page that links the newest documents. It is found anew every few cycles (see `recrawl anchor`),
    unless the user named it. First come pages of the dynamic group that are due, the most overdue first; what is left
    of the budget goes to the rest, the longest wait first. Pages of the dynamic group that are not due are left alone,
    so the budget is not spent when nothing but them is left. How many pages a minute a server may be asked for is for
    the crawler to keep, whatever the policy.

    Parameters
    ----------
    n
        How many links from the anchor the dynamic group goes, or `auto`: for each site as far as a visit is expected
        to find a change at least as often as a uniform one, and no further than the budget can visit in one cycle.
    every
        Hours between two visits of a page of the dynamic group.
    slow
        Days between two visits of a page of the rest, at least; 0 visits them as often as the budget allows.
    rest
        The share of the budget that is kept for the rest, so that it is never forgotten.
    per_site
        Most pages of one site in a cycle; 0 is no limit.
    again
        Cycles after which anchors and depths are looked for again.

    Example
    -------
    >>> from recrawl.book import Links
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> from recrawl.loop import drive
    >>> book = Book.blank(4, now=10 * DAY)                  # 0 links 1, which links 2, which links 3
    >>> book.depth[:] = [0, 1, 2, 3]
    >>> book.links = Links(np.array([0, 1, 2, 3, 3]), np.array([1, 2, 3], np.int32))
    >>> book.last_try[:] = [9 * DAY, 10 * DAY - HOUR, 8 * DAY, 7 * DAY]
    >>> [seen.pages.tolist() for seen in drive(AnchorDepth(n=1), Still(), book, budget=4, seed=1)]
    [[0], [3, 2]]

    Source: Barbosa, Cravo Neto, Salgado and Ramalho 2003 §3, §4.
    """

    name: ClassVar[str] = "anchor-depth"
    source: ClassVar[str] = "Barbosa et al. 2003 §3, §4 (spec A1, A2, A3)"
    needs: ClassVar[frozenset[str]] = frozenset({"links"})

    def __init__(
        self,
        *,
        n: int | str = "auto",
        every: float = 6.0,
        slow: float = 0.0,
        rest: float = 0.1,
        per_site: int = 0,
        again: int = 8,
    ) -> None:
        digits = str(n).strip()
        if digits != "auto" and not (digits.isdecimal() and int(digits) <= DEEPEST):
            raise UsageError(f"anchor-depth's n is auto, or a number of links from 0 to {DEEPEST}, not '{n}'")
        if not 0 <= every < float("inf"):
            raise UsageError(f"anchor-depth's every is hours, zero or more, not {every}")
        if not 0 <= slow < float("inf"):
            raise UsageError(f"anchor-depth's slow is days, zero or more, not {slow}")
        if not 0 <= rest <= 1:
            raise UsageError(f"anchor-depth's rest is a share from 0 to 1, not {rest}")
        if not 0 <= per_site < float("inf") or per_site != int(per_site):
            raise UsageError(f"anchor-depth's per_site is a number of pages, 0 for no limit, not {per_site}")
        if not 1 <= again < float("inf"):
            raise UsageError(f"anchor-depth's again is a number of cycles from 1 up, not {again}")
        self.again = again
        self.n: int | str = "auto" if digits == "auto" else int(digits)
        self.every = every
        self.slow = slow
        self.rest = rest
        self.per_site = per_site

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:  # noqa: ARG002
        """Up to three batches: the dynamic group within its share, the rest, what is due of the group beyond it."""
        if not book.known.any() or budget <= 0:
            return
        dynamic = self._dynamic(book, budget)
        wait = np.where(dynamic, _EARLY * self.every * HOUR, _EARLY * self.slow * DAY)
        over = np.minimum(book.now - book.last_try - wait, 1e12)
        due = np.flatnonzero(book.known & (over >= 0))
        due = due[np.lexsort((due, -over[due], ~dynamic[due]))]
        if self.per_site:
            due = due[_turn(book.site[due]) < self.per_site]
        often, seldom = due[dynamic[due]], due[~dynamic[due]]
        share = max(budget - int(self.rest * budget), budget - len(seldom))
        near = f"is at most {self.n} links from" if self.n != "auto" else "is close to"
        reason = f"{near} its site's anchor and was last visited {self.every:g} or more hours ago"
        batches = (often[:share], reason), (seldom, "is far from its site's anchor and has waited longest")
        for pages, why in (*batches, (often[share:], reason)):
            if len(pages):
                yield Picks(pages[:budget], over[pages[:budget]], why)
                budget -= len(pages[:budget])

    def learn(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:  # noqa: ARG002
        """Anchors move slowly, and finding them takes longer than all the rest: depths are kept for some cycles."""
        turn = int(book.memory.get(_TURN, np.zeros(1, np.int64))[0])
        if turn % self.again == 0 or not _same_anchors(book):
            book.memory[_DEPTH] = _depths(book).astype(np.int32)
            book.memory[_WITH] = _named(book)
        book.memory[_TURN] = np.array([turn + 1])

    def _dynamic(self, book: Book, budget: int) -> NDArray[np.bool_]:
        """The pages that are to be visited often."""
        depth = book.kept(_DEPTH, -1, np.int64) if _DEPTH in book.memory and _same_anchors(book) else _depths(book)
        if self.n == "auto":
            room = budget - int(self.rest * budget)
            table = layers(book, depth, self.every * HOUR, room=room, room_per_site=self.per_site or np.inf)
            most = recommend(table)[book.site]
        else:
            most = np.full(len(book), int(self.n))
        close: NDArray[np.bool_] = (depth >= 0) & (depth <= most)
        return close


def _depths(book: Book) -> NDArray[np.int64]:
    """One per page: how many links it is from its site's anchor, -1 when it cannot be reached."""
    named = _named(book)
    # When the past is learned again, pages that were named since may not be there yet.
    return from_anchors(book, anchors(book, named=named[named < len(book)]))


def _named(book: Book) -> NDArray[np.int64]:
    named: NDArray[np.int64] = book.memory.get(NAMED, np.zeros(0, np.int64)).astype(np.int64)
    return named


def _same_anchors(book: Book) -> bool:
    """Whether the kept depths were counted with the anchors that are named now."""
    return np.array_equal(book.memory.get(_WITH, np.zeros(0, np.int64)), _named(book))


def _turn(sites: NDArray[np.int32]) -> NDArray[np.int64]:
    """Of each entry: how many of its site come before it.

    >>> _turn(np.array([5, 3, 5, 5, 3])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(sites, kind="stable")
    begins = np.flatnonzero(np.diff(sites[order], prepend=-1))
    turn = np.empty(len(sites), np.int64)
    turn[order] = np.arange(len(sites)) - np.repeat(begins, np.diff(np.append(begins, len(sites))))
    return turn
