"""Policy `anchor-depth`: on news sites, visit pages near the page that links the news every few hours."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import NAMED, Choice
from recrawl.choose.top_k import rank_within
from recrawl.columns import DAY, HOUR, Flags, Floats, Ints
from recrawl.errors import UsageError
from recrawl.learn.structure.anchor import anchors
from recrawl.learn.structure.depth import DEEPEST, from_anchors, layers, recommend
from recrawl.model import Outcomes, Picks

_DEPTH, _TURN = "anchor-depth.depth", "anchor-depth.turn"
_WITH = "anchor-depth.with"
"""Memory key of the named pages at the time of the depth count; when they change, depths are counted again at once."""
_EARLY = 0.9
"""A page is due after this share of its interval, since cycles do not start at exact intervals."""


class AnchorDepth:
    """Visits pages at most n links from their site's anchor every few hours, the other pages slowly.

    The anchor is the page that links the newest documents. The policy finds it again every few cycles (see `recrawl
    anchor`), unless the user named it. The due pages of the dynamic group (those near an anchor) come first, most
    overdue first; the rest of the budget goes to the other pages, longest wait first. Pages of the dynamic group that
    are not due are not visited, so part of the budget may stay unspent.

    Parameters
    ----------
    n
        Depth of the dynamic group in links from the anchor, or `auto`: for each site as far as a visit is expected to
        find a change at least as often as a uniform visit, and no further than the budget can visit in one cycle.
    every
        Hours between two visits of a page of the dynamic group.
    slow
        Minimum days between two visits of another page; 0 visits them as often as the budget allows.
    rest
        The share of the budget that is reserved for the other pages.
    per_site
        Maximum pages of one site per cycle; 0 means no limit.
    again
        Cycles after which anchors and depths are computed again.

    Example
    -------
    >>> from recrawl.book import LinkGraph
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(4, now=10 * DAY)                  # 0 links 1, which links 2, which links 3
    >>> book.depth[:] = [0, 1, 2, 3]
    >>> book.links = LinkGraph(np.array([0, 1, 2, 3, 3]), np.array([1, 2, 3], np.int32))
    >>> book.last_try[:] = [9 * DAY, 10 * DAY - HOUR, 8 * DAY, 7 * DAY]
    >>> batches(AnchorDepth(n=1), book, budget=4)
    [[0], [3, 2]]

    Source: Barbosa, Cravo Neto, Salgado and Ramalho 2003 §3, §4.
    """

    name: ClassVar[str] = "anchor-depth"
    source: ClassVar[str] = "Barbosa et al. 2003 §3, §4 (spec A1, A2, A3)"
    needs: ClassVar[frozenset[str]] = frozenset({"links"})
    one_shard: ClassVar[str] = "the pages near the anchors of all sites share one part of the budget"

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
            raise UsageError(f"anchor-depth's n must be auto or a number of links from 0 to {DEEPEST}, not '{n}'")
        if not 0 <= every < float("inf"):
            raise UsageError(f"anchor-depth's every must be a number of hours, 0 or more, not {every}")
        if not 0 <= slow < float("inf"):
            raise UsageError(f"anchor-depth's slow must be a number of days, 0 or more, not {slow}")
        if not 0 <= rest <= 1:
            raise UsageError(f"anchor-depth's rest must be a share from 0 to 1, not {rest}")
        if not 0 <= per_site < float("inf") or per_site != int(per_site):
            raise UsageError(f"anchor-depth's per_site must be a number of pages, 0 for no limit, not {per_site}")
        if not 1 <= again < float("inf"):
            raise UsageError(f"anchor-depth's again must be a number of cycles, 1 or more, not {again}")
        self.again = again
        self.n: int | str = "auto" if digits == "auto" else int(digits)
        self.every = every
        self.slow = slow
        self.rest = rest
        self.per_site = per_site

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:  # noqa: ARG002
        """Yield the dynamic group within its share, then the other pages, then the rest of the dynamic group."""
        if not book.known.any() or budget <= 0:
            return
        dynamic = self._dynamic(book, budget)
        wait = np.where(dynamic, _EARLY * self.every * HOUR, _EARLY * self.slow * DAY)
        overdue = np.minimum(book.now - book.last_try - wait, 1e12)
        due = np.flatnonzero(book.known & (overdue >= 0))
        due = due[np.lexsort((due, -overdue[due], ~dynamic[due]))]
        if self.per_site:
            due = due[rank_within(book.site[due]) < self.per_site]
        often, seldom = due[dynamic[due]], due[~dynamic[due]]
        share = max(budget - int(self.rest * budget), budget - len(seldom))
        near = f"it is at most {self.n} links from" if self.n != "auto" else "it is close to"
        reason = f"{near} its site's anchor and was not visited for {self.every:g} hours or more"
        batches = (often[:share], reason), (seldom, "it is far from its site's anchor and had waited longest")
        for pages, why in (*batches, (often[share:], reason)):
            if len(pages):
                yield Picks(pages[:budget], overdue[pages[:budget]], why, awaits=0.0)
                budget -= len(pages[:budget])

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:  # noqa: ARG002
        """Count depths again every `again` cycles: anchors move slowly, and finding them takes most of the time."""
        turn = int(book.memory.get(_TURN, np.zeros(1, np.int64))[0])
        if turn % self.again == 0 or not _same_anchors(book):
            book.memory[_DEPTH] = _depths(book).astype(np.int32)
            book.memory[_WITH] = _named(book)
        book.memory[_TURN] = np.array([turn + 1])

    def _dynamic(self, book: Book, budget: int) -> Flags:
        """Return which pages belong to the dynamic group."""
        depth = book.kept(_DEPTH, -1, np.int64) if _DEPTH in book.memory and _same_anchors(book) else _depths(book)
        if self.n == "auto":
            room = budget - int(self.rest * budget)
            table = layers(book, depth, self.every * HOUR, room=room, room_per_site=self.per_site or np.inf)
            most = recommend(table)[book.site]
        else:
            most = np.full(len(book), int(self.n))
        close: Flags = (depth >= 0) & (depth <= most)
        return close


def _depths(book: Book) -> Ints:
    """Return each page's distance from its site's anchor in links, -1 if it cannot be reached."""
    named = _named(book)
    # While past visits are replayed, pages that the user named later may not exist yet.
    return from_anchors(book, anchors(book, named=named[named < len(book)]))


def _named(book: Book) -> Ints:
    named: Ints = book.memory.get(NAMED, np.zeros(0, np.int64)).astype(np.int64)
    return named


def _same_anchors(book: Book) -> bool:
    """Return whether the stored depths were counted with the anchors that are named now."""
    return np.array_equal(book.memory.get(_WITH, np.zeros(0, np.int64)), _named(book))
