"""The anchor of a site: the page that links its newest documents (spec A1), found automatically.

B's experts chose anchors by hand. Here each page near the root of its site is scored by the pages it links:

    news(t)  = birth(t) + change(t), less the mean of the site, never under 0
    rare(t)  = log((1 + pages of the site that have links) / pages of the site that link to t)
    score(p) = CLOSER^(links from the root) * own(p)
             * sum of rare(t) * news(t) over p's links / (|rare over p's links| * |news of the site|)

The last line is the cosine between the page's links and the site's news, as vectors over the pages of the site: 1 for a
page that links all the news and nothing else, small for a page that links little of it (a section) and for a page that
links everything (an archive, a site map). As with words in text search, links on every page (a *menu*) carry no
information.

`birth` is 1 for a page found just now and decays with its age; pages found when the site was first crawled are no news.
`change` is the share of visits that found a change, and decays with the time since the last. The half-life of both is
the time that the site takes for `RECENT` such events: a day for a daily paper, months for a slow blog. So the anchor
follows recent events and moves when the site changes. Subtracting the mean removes what happens to all pages at once: a
new footer, a date stamp everywhere.

`own` is how often the page itself changes: a page that never does cannot link new documents. *Frames* need no rule: a
frameset links its frames and no news, and does not change; the frame with the headlines is one link away and is the
anchor, as in B (fig. 1). If no page reaches `EVIDENCE`, the root is the anchor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book, LinkGraph
from recrawl.columns import unique
from recrawl.learn.structure.depth import depths, hops

RECENT = 20
"""Events of a site within one half-life of the evidence."""
GRACE = 86400.0
"""Seconds after a site's first page within which found pages are not new."""
FASTEST = 86400.0
"""The shortest half-life, in seconds."""
DOUBT = 5.0
"""The weight of the prior on a page's own changes, in visits."""
NEAR = 2
"""The maximum distance of an anchor from the root, in links."""
CLOSER = 0.9
"""The factor by which each of these links lowers the score: B found anchors at the root or very close to it."""
EVIDENCE = 0.05
"""Lower scores count as noise."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidate anchors, one row each: by site, best first."""

    page: NDArray[np.int64]
    site: NDArray[np.int32]
    score: NDArray[np.float64]
    away: NDArray[np.int64]
    """Links from the root of the site."""
    links: NDArray[np.int64]
    """Number of pages of the site that it links."""
    new: NDArray[np.int64]
    """Linked pages that are among the newest of the site."""
    changed: NDArray[np.int64]
    """Linked pages that are among the last changed of the site."""

    def of(self, site: int) -> Candidates:
        """Return the candidates of one site."""
        here = self.site == site
        return Candidates(*(getattr(self, name)[here] for name in self.__slots__))

    def __len__(self) -> int:
        return len(self.page)


@dataclass(frozen=True, slots=True)
class News:
    """How much news each page is, one entry per page."""

    weight: NDArray[np.float64]
    born: NDArray[np.bool_]
    """Among the newest pages of its site."""
    changed: NDArray[np.bool_]
    """Among the pages of its site that changed last."""


def anchors(book: Book, *, named: NDArray[np.int64] | None = None, near: int = NEAR) -> NDArray[np.int64]:
    """Return the anchor of every site; -1 for a site without pages.

    `named` are the anchors that the user named; they take precedence.

    >>> book = Book.blank(5, now=100 * 86400.0)          # 0 is the front page, 1 a page of news, 2 to 4 articles
    >>> book.depth[:] = [0, 1, 2, 2, 2]
    >>> book.found[2:] = book.now - 86400.0
    >>> book.links = LinkGraph(np.array([0, 1, 4, 4, 4, 4]), np.array([1, 2, 3, 4], np.int32))
    >>> anchors(book).tolist(), anchors(book, named=np.array([0])).tolist()
    ([1], [0])
    """
    found = candidates(book, near=near)
    chosen = np.full(book.sites, -1, np.int64)
    best = np.flatnonzero(np.diff(found.site, prepend=-1))
    chosen[found.site[best]] = found.page[best]
    if named is not None:
        chosen[book.site[named]] = named
    return chosen


def candidates(book: Book, *, near: int = NEAR) -> Candidates:
    """Return the pages at most `near` links from the root of their site with their scores; by site, best first.

    Scores below `EVIDENCE` do not affect the order: if all are below, the root comes first.
    """
    living = alive(book)
    away = _away(book, roots(book), near)
    pages = np.flatnonzero((away >= 0) & living)
    score, counts = np.zeros(len(pages)), [np.zeros(len(pages), np.int64)] * 3
    if book.links is not None and len(pages):
        score, counts = _scores(book, book.links, pages, living)
        score *= CLOSER ** away[pages]
    believed = np.where(score < EVIDENCE, 0.0, score)
    order = np.lexsort((pages, -score, away[pages], -believed, book.site[pages]))
    return Candidates(
        pages[order], book.site[pages[order]], score[order], away[pages[order]], *(count[order] for count in counts)
    )


def why(found: Candidates, page: int) -> str:
    """Explain why a page is the anchor of its site, given the site's candidates."""
    place = np.flatnonzero(found.page == page)
    if not len(place):
        return f"It was named by hand; it is more than {NEAR} links from the root, or is not there."
    row = int(place[0])
    counts = (
        f"Of the {found.links[row]:,} pages that it links, {found.new[row]:,} are among the newest of the site "
        f"and {found.changed[row]:,} among those that changed last"
    )
    if row > 0:
        return f"It was named by hand. {counts}."
    if found.score[row] < EVIDENCE:
        return "No page near the root leads to news more than others do, so it is the root itself."
    if len(found) == 1:
        return f"{counts}."
    return f"{counts}; of the {found.links[1]:,} of the next best page, {found.new[1]:,} and {found.changed[1]:,}."


def alive(book: Book) -> NDArray[np.bool_]:
    """Return which pages probably exist: known, or waiting after failures."""
    there: NDArray[np.bool_] = book.known | (book.failures > 0)
    return there


def roots(book: Book) -> NDArray[np.int64]:
    """Return the root of every site, the page of least depth; -1 for a site without pages.

    Of several pages it is one with links, and of those the one with most in-links.
    """
    pages = np.flatnonzero(alive(book))
    linked, mute = np.zeros(len(book), np.int64), np.zeros(len(book), bool)
    if book.links is not None:
        linked = np.bincount(book.links.target, minlength=len(book))
        mute = np.diff(book.links.start) == 0
    order = pages[np.lexsort((pages, -linked[pages], mute[pages], book.depth[pages], book.site[pages]))]
    best = order[np.diff(book.site[order], prepend=-1) > 0]
    chosen = np.full(book.sites, -1, np.int64)
    chosen[book.site[best]] = best
    return chosen


def news(book: Book, living: NDArray[np.bool_]) -> News:
    """Return how much news each page is (see the module docstring)."""
    sites = book.sites
    first = np.full(sites, np.inf)
    np.minimum.at(first, book.site, book.found)
    birth, newest = _faded(book.found, living & (book.found > first[book.site] + GRACE), book)
    change, latest = _faded(book.last_change, living & (book.changes > 1) & (book.visits > 1), book)
    raw = birth + change * np.minimum((book.changes - 1) / np.maximum(book.visits, 1), 1.0)
    mean = np.bincount(book.site, raw, sites) / np.maximum(np.bincount(book.site, living, sites), 1)
    return News(np.where(living, np.maximum(raw - mean[book.site], 0.0), 0.0), newest, latest)


def _faded(
    times: NDArray[np.float64], happened: NDArray[np.bool_], book: Book
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the decayed weights of events, and which are among the last `RECENT` of their site."""
    pages = np.flatnonzero(happened & np.isfinite(times))
    age = np.maximum(book.now - times[pages], 0.0)
    order = np.lexsort((age, book.site[pages]))
    sites = book.site[pages[order]]
    begins = np.flatnonzero(np.diff(sites, prepend=-1))
    ends = np.append(begins[1:], len(sites))
    half = np.zeros(book.sites)
    half[sites[begins]] = age[order][np.minimum(begins + RECENT, ends[: len(begins)]) - 1]
    weight, recent = np.zeros(len(book)), np.zeros(len(book), bool)
    recent[pages] = age <= half[book.site[pages]]
    weight[pages] = 0.5 ** (age / np.maximum(half[book.site[pages]], FASTEST))
    return weight, recent


def _own(book: Book, living: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return how often each page changes, from 0 to 1; 0.5 is the mean of its site."""
    again = np.where(living, np.maximum(book.visits - 1, 0), 0)
    changes = np.minimum(np.where(living, np.maximum(book.changes - 1, 0), 0), again)
    visits = np.bincount(book.site, again, book.sites)
    # If no visit found a change, all pages are equal.
    mean = np.maximum(np.bincount(book.site, changes, book.sites) / np.maximum(visits, 1), 1e-6)[book.site]
    # The prior: a page changes a tenth as often as the mean.
    share = (changes + DOUBT * mean / 10) / (again + DOUBT)
    own: NDArray[np.float64] = np.where(visits[book.site] > 0, share / (share + mean), 0.5)
    return own


def _away(book: Book, first: NDArray[np.int64], near: int) -> NDArray[np.int64]:
    """Return links from the root, -1 beyond `near`; if the root has no links, the depth in the crawl."""
    start = first[first >= 0]
    above, mute = np.zeros(len(first), np.int64), np.zeros(len(first), bool)
    above[book.site[start]] = book.depth[start]
    by_crawl = np.maximum(book.depth - above[book.site], 0)
    by_crawl = np.where(by_crawl <= near, by_crawl, -1)
    if book.links is None:
        return by_crawl
    mute[book.site[start]] = np.diff(book.links.start)[start] == 0
    return np.where(mute[book.site], by_crawl, depths(book.links, start, book.site, most=near))


def _scores(
    book: Book, links: LinkGraph, pages: NDArray[np.int64], living: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], list[NDArray[np.int64]]]:
    """Return scores, and the numbers of pages that each page links: of its site, new ones, changed ones."""
    now = news(book, living)
    rare = _rarity(book, links)
    row, target = hops(links, pages)
    inside = (book.site[target] == book.site[pages[row]]) & (target != pages[row]) & living[target]
    # A repeated link counts once.
    keys = unique(row[inside] * len(book) + target[inside])
    row, target = keys // len(book), keys % len(book)
    dot = np.bincount(row, rare[target] * now.weight[target], len(pages))
    norm = np.sqrt(np.bincount(row, rare[target] ** 2, len(pages)))
    total = np.sqrt(np.bincount(book.site, now.weight**2, book.sites))[book.site[pages]]
    size = norm * total
    cosine = np.divide(dot, size, out=np.zeros(len(pages)), where=size > 0)
    counts = [np.bincount(row, kind[target], len(pages)) for kind in (living, now.born, now.changed)]
    return cosine * _own(book, living)[pages], [count.astype(np.int64) for count in counts]


def _rarity(book: Book, links: LinkGraph) -> NDArray[np.float64]:
    """Return how rare a link to each page is on its site: near 0 if all pages have it."""
    degree = np.diff(links.start)
    source = np.repeat(np.arange(len(book), dtype=np.int32), degree)
    linked = np.bincount(links.target[book.site[source] == book.site[links.target]], minlength=len(book))
    linking = np.maximum(np.bincount(book.site[degree > 0], minlength=book.sites), 1)[book.site]
    # Repeated links count repeatedly here; the limit is one link on every page.
    rare: NDArray[np.float64] = np.log((1 + linking) / np.clip(linked, 1, linking))
    return rare
