"""Sampling at the level of pages: a sample that changed leads to its neighbours (T, Algorithms 1 and 2)."""

from __future__ import annotations

import zlib
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book, LinkGraph
from recrawl.choose.protocol import Choice
from recrawl.errors import UsageError
from recrawl.learn.structure.download_probability import by_popularity, in_one_cycle, rates, recent_rates
from recrawl.learn.structure.neighbours import ByCluster, ByDirectory, ByLink, Finder, fitted
from recrawl.learn.structure.pagerank import log_scale, pagerank
from recrawl.model import Outcomes, Pages, Picks

Neighbours = Literal["directory", "links", "clusters"]
_Ranks = tuple[NDArray[np.float64], NDArray[Any]]

FARTHEST = 100
"""The largest d; T tries -6 to 8."""
ADAPTIVE = ("status", "ha", "wha", "pra")
_NEEDS = {"directory": "folders", "links": "links", "clusters": "clusters"}
_LEAST_BATCHES = 50
"""A batch of samples is at most this part of what is left of the budget."""
_WEIGHTED, _RANKS, _LINKS = "sampling.weighted", "sampling.ranks", "sampling.links"


class Sampling:
    """Draw pages at random; with chance φ visit the neighbours of a drawn page too (spec S1 to S5).

    Until the budget ends: draw a page uniformly among those not visited in this cycle, visit it, and with probability
    φ visit all pages within d of it that were not visited in this cycle.

    Drawn one at a time, each sample would have to be awaited before the next is known. So samples are drawn and
    visited in batches, and then the neighbours of all of a batch's seeds. Two things differ from one at a time: a
    sample may turn out to be a neighbour of another of its batch, which has then been found by drawing; and where
    the budget ends among neighbours, the nearest of all seeds come first (at equal distance by chance) rather than
    those of the first seed. Batches shrink with the budget: none is larger than a fiftieth of what is left, so the
    samples visited in vain at the end are few. `batch=1` is the algorithm as it is printed.

    Parameters
    ----------
    neighbours
        What makes a page a neighbour: its `directory` (T's DB), `links` (LB) or `clusters` of like pages (CB).
    d
        How far. `directory`: 0 the same directory, 1 the one above too, 2 also its other children, ...; below zero
        the lower directories. `links`: 0 the siblings, above zero so many hops along links too, below zero against
        them. `clusters`: 0 the same cluster, 1 the nearest other cluster too, ...; below zero nobody.
    phi
        The chance φ that a sample leads to its neighbours. A number from 0 (which makes the policy `random`) to 1.
        `status`: 1 if the sample has changed, else 0. `ha`: 1 - e^-λ, λ being the share of the page's visits that
        found a change, its first download not counted. `wha`: the same with late visits weighing more, the i-th of n
        by i / (1 + ... + n). `pra`: from 1/11 to 11/11 by the page's PageRank on a scale of 0 to 10.
        A page without counted visits has λ = 0: nothing speaks for its changing, so it leads nowhere, and in the
        first cycles `ha` and `wha` are little more than `random`, as T found (fig. 9).
    batch
        The most samples that are visited before their neighbours are.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> book = Book.blank(6)
    >>> book.folder[:] = [1, 1, 1, 2, 2, 2]
    >>> policy = Sampling(neighbours="directory", d=0, phi="1")
    >>> [sorted(seen.pages.tolist()) for seen in drive(policy, Still(), book, budget=3, seed=2)]
    [[3], [4, 5]]

    Source: Tan, Zhuang, Mitra and Giles 2007, Algorithms 1 and 2, §4 and §5.
    """

    name: ClassVar[str] = "sampling"
    source: ClassVar[str] = "Tan et al. 2007 §3 to §5 (spec S1 to S6)"
    # Not a ClassVar here: what is needed depends on the parameters.
    needs: frozenset[str] = frozenset()

    def __init__(
        self, *, neighbours: Neighbours = "directory", d: int = 1, phi: str = "status", batch: int = 50
    ) -> None:
        if neighbours not in _NEEDS:
            raise UsageError(f"sampling's neighbours are directory, links or clusters, not '{neighbours}'")
        if not (-FARTHEST <= d <= FARTHEST and d == int(d)):
            raise UsageError(f"sampling's d is a whole number from -{FARTHEST} to {FARTHEST}, not {d}")
        if not (1 <= batch < float("inf") and batch == int(batch)):
            raise UsageError(f"sampling's batch is a whole number from 1, not {batch}")
        self.neighbours = neighbours
        self.d = int(d)
        self.phi = phi
        self.batch = int(batch)
        self._fixed = None if phi in ADAPTIVE else _chance(phi)
        self.needs = frozenset({_NEEDS[neighbours], *(["links"] if phi == "pra" else [])})
        self._ranked: tuple[LinkGraph | None, NDArray[Any] | None, _Ranks] | None = None

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Two batches a round: samples, then the neighbours of those samples that lead to them."""
        free = book.known.copy()
        order = rng.permutation(np.flatnonzero(free))
        left = min(budget, len(order))
        if self._fixed == 0.0 and left:
            yield _picks(order[:left], "drawn at random")
            return
        finder, chance = self._finder(book), self._chances(book)
        drawn = 0
        while left > 0:
            size = max(1, min(self.batch, left // _LEAST_BATCHES))
            sample, drawn = _next(order, drawn, size, free)
            free[sample] = False
            left -= len(sample)
            seen = yield _picks(sample, "drawn at random as a sample")
            seeds = _leading(sample, chance, seen, rng)
            near = _nearest(finder, seeds, free, left, rng)
            left -= len(near)
            if len(near):
                yield near

    def learn(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:  # noqa: ARG002
        """Keep what the chance φ needs beyond the book: the weighted history, or the ranks and their links."""
        if self.phi == "wha":
            weighted = book.kept(_WEIGHTED, 0.0)
            # A page's visits up to now, the first among them, are the number of this one among the counted.
            found = seen.pages[seen.changed]
            weighted[found] += book.visits[found]
            book.memory[_WEIGHTED] = weighted
        if self.phi == "pra":
            book.memory[_RANKS], book.memory[_LINKS] = self._ranks(book)

    def _finder(self, book: Book) -> Finder:
        if self.neighbours == "directory":
            return ByDirectory(book.folder, book.folders, self.d)
        if self.neighbours == "links":
            return ByLink(book.links, len(book), self.d)
        return ByCluster(book.clusters, len(book), self.d)

    def _chances(self, book: Book) -> NDArray[np.float64] | None:
        """φ of every page, or None when it is the outcome that decides."""
        if self._fixed is not None:
            return np.full(len(book), self._fixed)
        if self.phi == "status":
            return None
        if self.phi == "pra":
            return by_popularity(log_scale(self._ranks(book)[0]))
        counted = np.maximum(book.visits - 1.0, 0.0)
        if self.phi == "ha":
            return in_one_cycle(rates(np.maximum(book.changes - 1.0, 0.0), counted))
        return in_one_cycle(recent_rates(book.kept(_WEIGHTED, 0.0), counted))

    def _ranks(self, book: Book) -> _Ranks:
        """The ranks; `cycle` and `learn` ask for them with the same links and memory, and they are found once."""
        links, old = book.links, book.memory.get(_RANKS)
        known = self._ranked
        if known is None or known[0] is not links or known[1] is not old or len(known[2][0]) != len(book):
            known = self._ranked = links, old, _ranks(book)
        return known[2]


def _chance(phi: str) -> float:
    """A fixed φ."""
    try:
        value = float(phi)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"sampling's phi is a number from 0 to 1, or one of {', '.join(ADAPTIVE)}; not '{phi}'")
    return value


def _next(order: Pages, drawn: int, size: int, free: NDArray[np.bool_]) -> tuple[Pages, int]:
    """The next free pages of a random order, and how far it is used up.

    Whatever was visited meanwhile, the next free page of a random order is any of the free ones with equal chance.
    """
    parts: list[Pages] = []
    while size > 0 and drawn < len(order):
        part = order[drawn : drawn + size]
        drawn += len(part)
        part = part[free[part]]
        size -= len(part)
        parts.append(part)
    return np.concatenate(parts), drawn


def _leading(sample: Pages, chance: NDArray[np.float64] | None, seen: Outcomes, rng: np.random.Generator) -> Pages:
    """Those of the sample whose neighbours are visited."""
    if chance is None:
        return seen.pages[seen.changed]
    return sample[rng.random(len(sample)) < chance[sample]]


def _nearest(finder: Finder, seeds: Pages, free: NDArray[np.bool_], left: int, rng: np.random.Generator) -> Picks:
    """At most `left` free neighbours, nearest first; they are free no longer."""
    pages, score = [np.zeros(0, np.int64)], [np.zeros(0)]
    if left and len(seeds):
        for distance, near in finder.around(seeds, free):
            taken = rng.permutation(near)[:left] if len(near) > left else near
            free[taken] = False
            left -= len(taken)
            pages.append(taken)
            score.append(np.full(len(taken), 1.0 / (1 + abs(distance))))
            if not left:
                break
    return Picks(np.concatenate(pages), np.concatenate(score), "is near to a sample")


def _picks(pages: Pages, reason: str) -> Picks:
    return Picks(pages, np.ones(len(pages)), reason)


def _ranks(book: Book) -> _Ranks:
    """PageRank, and a mark by which its links are known again: while they stay, so do the ranks."""
    links = fitted(book.links, len(book))
    mark = np.array([zlib.crc32(links.target.tobytes(), zlib.crc32(links.start.tobytes()))], np.int64)
    old = book.memory.get(_RANKS)
    if old is not None and np.array_equal(book.memory[_LINKS], mark):
        return old, mark
    return pagerank(links, start=old), mark
