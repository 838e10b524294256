"""Distances of pages from the anchor of their site, and up to which depth to visit often (spec A2; B fig. 2, table 1).

Depth is counted in links, breadth first: the anchor has depth 0, the pages it links have 1, and so on; pages that
cannot be reached have -1. `layers` counts pages and changes by depth, for all sites at once; `recommend` returns up to
which depth pages should be visited often:

    the largest n such that
      (1) the pages up to n can be visited within the period, within the limits of each server and of all sites
          together (the ethical limit);
      (2) each depth up to n pays: a visit to one of its pages, one period after the last, is expected to find a change
          at least as often as a uniform visit. At the same limits, uniform visits are a whole pass of the site apart,
          or a period if that is longer.

With B's own figures this gives B's own choice, n = 2: the third depth would fit into 6 hours at 141 pages per minute
(42,460 of 50,760 pages), but 10 % of its pages change, where uniform visits, a pass of a week apart, find 22 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book, LinkGraph
from recrawl.columns import unique

UNREACHED = -1
DEEPEST = 9
"""The deepest depth with a column of its own; deeper pages count as unreached."""
UNTRIED = 2
"""The depth for a site without a page that was visited twice: B's choice."""
_LONGEST = 1e6
"""Maximum periods per pass."""


@dataclass(frozen=True, slots=True)
class Layers:
    """Pages by site (rows) and depth (columns 0 to `DEEPEST`, then one for all others)."""

    pages: NDArray[np.int64]
    visits: NDArray[np.int64]
    """Visits that could find a change: all but the first of each page."""
    changed: NDArray[np.int64]
    """Visits that found a change."""
    expected: NDArray[np.float64]
    """The expected share of changed pages after a period; NaN if no page was visited twice."""
    uniform: NDArray[np.float64]
    """One per site: the expected share of changed pages at a uniform visit."""
    room: float
    """Pages that can be visited per period over all sites."""
    room_per_site: NDArray[np.float64]
    """Pages that can be visited per period on each site."""


def hops(links: LinkGraph, pages: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return every link of the pages: the position of its source in `pages`, and its target."""
    count = links.start[pages + 1] - links.start[pages]
    row = np.repeat(np.arange(len(pages)), count)
    inside = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    return row, links.target[np.repeat(links.start[pages], count) + inside].astype(np.int64)


def depths(
    links: LinkGraph, anchors: NDArray[np.int64], site: NDArray[np.int32], most: int | None = None
) -> NDArray[np.int64]:
    """Return each page's depth from its site's anchor; links between sites do not count.

    >>> links = LinkGraph(np.array([0, 1, 2, 2, 3]), np.array([1, 2, 0], np.int32))   # 0 -> 1 -> 2, and 3 -> 0
    >>> depths(links, np.array([0]), np.zeros(4, np.int32)).tolist()
    [0, 1, 2, -1]
    """
    depth = np.full(len(links), UNREACHED, np.int64)
    frontier = anchors[anchors >= 0]
    level = 0
    while len(frontier):
        depth[frontier] = level
        if most is not None and level >= most:
            break
        row, target = hops(links, frontier)
        frontier = unique(target[(depth[target] < 0) & (site[target] == site[frontier[row]])])
        level += 1
    return depth


def from_anchors(book: Book, anchors: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each page's depth from its site's anchor; `anchors` has one page per site.

    If an anchor's links are unknown, the pages' depth in the crawl is used instead, counted from the anchor's.

    >>> book = Book.blank(3)
    >>> book.depth[:] = [1, 2, 4]
    >>> from_anchors(book, np.array([0])).tolist()
    [0, 1, 3]
    """
    have = anchors[anchors >= 0]
    mute = np.ones(len(anchors), bool)
    depth = np.full(len(book), UNREACHED, np.int64)
    if book.links is not None:
        depth = depths(book.links, have, book.site)
        mute[book.site[have]] = np.diff(book.links.start)[have] == 0
    base = np.zeros(len(anchors), np.int64)
    base[book.site[have]] = book.depth[have]
    instead = np.maximum(book.depth - base[book.site], 1)
    instead[have] = 0
    return np.where(mute[book.site] & (anchors[book.site] >= 0), instead, depth)


def layers(
    book: Book,
    depth: NDArray[np.int64],
    period: float,
    *,
    room: float = np.inf,
    room_per_site: float | NDArray[np.float64] = np.inf,
) -> Layers:
    """Return known pages and their changes by depth; `period` is the time between two visits, in seconds.

    `room` is the number of pages that can be visited per period over all sites, `room_per_site` on each site.

    >>> book = Book.blank(3)
    >>> book.visits[:], book.changes[:], book.last_visit[:] = [5, 5, 1], [5, 1, 1], 4 * 3600.0
    >>> table = layers(book, np.array([0, 1, 1]), period=3600.0)
    >>> table.pages[0, :3].tolist(), table.visits[0, :3].tolist(), table.changed[0, :3].tolist()
    ([1, 2, 0], [4, 4, 0], [4, 0, 0])
    >>> table.expected[0, :3].round(2).tolist(), table.uniform.round(2).tolist()
    ([0.89, 0.0, nan], [0.44])
    """
    pages = np.flatnonzero(book.known)
    site, sites = book.site[pages].astype(np.int64), book.sites
    column = np.where((depth < 0) | (depth > DEEPEST), DEEPEST + 1, depth)[pages]
    again = np.maximum(book.visits[pages].astype(np.int64) - 1, 0)
    changed = np.clip(book.changes[pages].astype(np.int64) - 1, 0, again)
    limit = np.array(np.broadcast_to(np.asarray(room_per_site, np.float64), sites))

    def spread(values: NDArray[Any]) -> NDArray[np.float64]:
        """Sums by site and depth."""
        cells = np.bincount(site * (DEEPEST + 2) + column, values, sites * (DEEPEST + 2))
        return cells.reshape(sites, DEEPEST + 2).astype(np.float64)

    count, tried = spread(np.ones(len(pages))), spread(again > 0)
    apart = period * _passes(count.sum(axis=1), room, limit)
    often = spread(_chance(book, pages, again, changed, np.full(len(pages), period)))
    seldom = spread(_chance(book, pages, again, changed, apart[site])).sum(axis=1)
    ever = tried.sum(axis=1)
    return Layers(
        pages=count.astype(np.int64),
        visits=spread(again).astype(np.int64),
        changed=spread(changed).astype(np.int64),
        expected=np.divide(often, tried, out=np.full_like(often, np.nan), where=tried > 0),
        uniform=np.divide(seldom, ever, out=np.full(sites, np.nan), where=ever > 0),
        room=room,
        room_per_site=limit,
    )


def recommend(table: Layers) -> NDArray[np.int64]:
    """Return n of every site: the depth up to which to visit often (see the module docstring); at least the anchor."""
    group = np.cumsum(table.pages, axis=1)
    fine = pays(table) & (group <= table.room_per_site[:, None]) & (table.pages > 0)
    # The consecutive depths from 1 that fulfil the conditions; the last column is no depth.
    n: NDArray[np.int64] = np.cumprod(fine[:, 1 : DEEPEST + 1], axis=1).sum(axis=1)
    for cap in range(DEEPEST, -1, -1):
        capped: NDArray[np.int64] = np.minimum(n, cap)
        if np.take_along_axis(group, capped[:, None], axis=1).sum() <= table.room:
            return capped
    return np.zeros(len(n), np.int64)


def pays(table: Layers) -> NDArray[np.bool_]:
    """Return, by site and depth, whether frequent visits find at least as much as uniform visits."""
    untried = np.isnan(table.uniform)[:, None]
    worth = np.nan_to_num(table.expected, nan=-1.0) >= np.nan_to_num(table.uniform, nan=1.0)[:, None]
    paid: NDArray[np.bool_] = np.where(untried, np.arange(DEEPEST + 2) <= UNTRIED, worth)
    return paid


def _passes(pages: NDArray[np.float64], room: float, room_per_site: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the number of periods that a uniform pass over each site takes, at least 1."""
    alone = np.divide(pages, room_per_site, out=np.full(len(pages), np.inf), where=room_per_site > 0)
    together = float(pages.sum()) / room if room > 0 else np.inf
    passes: NDArray[np.float64] = np.clip(np.maximum(alone, together), 1.0, _LONGEST)
    return passes


def _chance(
    book: Book,
    pages: NDArray[np.int64],
    again: NDArray[np.int64],
    changed: NDArray[np.int64],
    after: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the probability that each page has changed after a time, from its past visits; 0 without any.

    The rate is estimated from n visits, g apart, of which x found a change, as -log((n - x + 0.5) / (n + 0.5)) / g,
    since several changes between two visits look like one (Cho and Garcia-Molina).
    """
    watched = book.last_visit[pages] - book.found[pages]
    gap = np.divide(watched, again, out=after.copy(), where=(again > 0) & (watched > 0))
    still: NDArray[np.float64] = ((again - changed + 0.5) / (again + 0.5)) ** (after / np.maximum(gap, 1.0))
    return np.where(again > 0, 1.0 - still, 0.0)
