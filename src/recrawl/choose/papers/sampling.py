"""Policy `sampling`: draw pages at random and visit the neighbours of changed ones (T, Algorithms 1 and 2).

A sample that has changed leads to its neighbours with probability φ (T's download probability, T §3 and §5, spec S1
and S5). φ by history comes from the page's change rate λ: the changes found, the one of this visit included, divided by
the number of cycles (T eq. 6). The first download is not counted, since it has nothing to compare with; failed visits
are not counted either.

What T leaves open or prints in two ways is a parameter: `leads` (Algorithm 1 as printed does not ask whether the sample
has changed, T §3 does), `n` and `newest`.
"""

from __future__ import annotations

import zlib
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book, LinkGraph
from recrawl.choose.protocol import Choice
from recrawl.columns import Flags, Floats, Ints
from recrawl.errors import UsageError
from recrawl.learn.structure.neighbours import ByCluster, ByDirectory, ByLink, Finder, fitted
from recrawl.learn.structure.pagerank import log_scale, pagerank
from recrawl.model import Outcomes, Pages, Picks

Neighbours = Literal["directory", "links", "clusters"]
_Ranks = tuple[Floats, NDArray[Any]]


class _Phi(NamedTuple):
    """The probability that a sample leads to its neighbours, of every page."""

    changed: Floats
    """If its visit finds a change."""
    same: Floats
    """If it does not."""

    def given(self, seen: Outcomes) -> Floats:
        """Return the probabilities of visited samples."""
        return np.where(seen.changed, self.changed[seen.pages], self.same[seen.pages])


MAX_DISTANCE = 100
"""The largest d; T uses -6 to 8."""
ADAPTIVE = ("status", "ha", "wha", "pra")
_NEEDS = {"directory": "folders", "links": "links", "clusters": "clusters"}
_MIN_BATCHES = 50
"""A batch of samples is at most the remaining budget divided by this."""
_BY_HISTORY = ("ha", "wha")
_WEIGHTED, _RANKS, _LINKS, _CYCLES = "sampling.weighted", "sampling.ranks", "sampling.links", "sampling.cycles"
_LEADS = ("changed", "any")
_N = ("cycles", "visits")
_RANK = ("sample", "page")


class Sampling:
    """Draws pages at random; with probability φ, visits the neighbours of a drawn page that has changed too.

    Until the budget ends: draw a page uniformly from those not visited in this cycle, visit it, and if it has changed,
    with probability φ visit all pages within distance d that were not visited in this cycle.

    Samples are drawn and visited in batches, then the neighbours of all samples of the batch. This differs from one at
    a time in two ways: a sample can be a neighbour of another sample of its batch; and where the budget ends among
    neighbours, the nearest to any sample come first (ties at random) rather than those of the first sample. A batch is
    at most a fiftieth of the remaining budget, so that few samples are visited in vain at the end. `batch=1` is the
    algorithm as printed.

    Parameters
    ----------
    neighbours
        What makes a page a neighbour: its `directory` (T's DB), `links` (LB) or `clusters` of similar pages (CB).
    d
        The distance. `directory`: 0 the same directory, 1 also the parent, 2 also its other children, ...; below 0 the
        lower directories. `links`: 0 the siblings, above 0 also pages within d hops along links, below 0 against them.
        `clusters`: 0 the same cluster, 1 also the nearest other cluster, ...; below 0 no page.
    phi
        The probability φ that a changed sample leads to its neighbours. A number from 0 (which makes the policy
        `random`) to 1. `status`: 1 if the sample has changed, else 0. `ha`: 1 - e^-λ, where λ is the share of cycles in
        which a visit found the page changed. `wha`: the same with higher weights for later cycles, i / (1 + ... + n)
        for the i-th of n. `pra`: from 1/11 to 11/11 by the page's PageRank on a scale of 0 to 10, for samples without a
        change too.
    leads
        Which samples can lead to their neighbours: those that have `changed` (T §3), or `any` (T's Algorithm 1 as
        printed). It makes no difference to `status` and `pra`.
    n
        What n of `ha` and `wha` counts: all `cycles` so far, as T prints it, where a cycle without a visit to the page
        counts as one without a change; or the page's own `visits` after the first.
    newest
        Whether λ includes the visit just made, as in T; without it, a page with no earlier visit after the first has
        λ = 0.
    rank
        In which order of clusters, by distance of centroids, their distance is the rank: in that of the `sample`'s
        cluster, or in that of the other `page`'s.
    batch
        The maximum number of samples that are visited before their neighbours.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(6)
    >>> book.folder[:] = [1, 1, 1, 2, 2, 2]
    >>> batches(Sampling(neighbours="directory", d=0, phi="1", leads="any"), book, budget=3, seed=2)
    [[3], [4, 5]]

    Source: Tan, Zhuang, Mitra and Giles 2007, Algorithms 1 and 2, §4 and §5.
    """

    name: ClassVar[str] = "sampling"
    source: ClassVar[str] = "Tan et al. 2007 §3 to §5 (spec S1 to S6)"
    needs: frozenset[str] = frozenset()  # not a ClassVar: it depends on the parameters
    one_shard: ClassVar[str] = "the neighbours of a page can be in other shards"

    def __init__(
        self,
        *,
        neighbours: Neighbours = "directory",
        d: int = 1,
        phi: str = "status",
        leads: str = "changed",
        n: str = "cycles",
        newest: bool = True,
        rank: str = "sample",
        batch: int = 50,
    ) -> None:
        if rank not in _RANK:
            raise UsageError(f"sampling's rank must be sample or page, not '{rank}'")
        if leads not in _LEADS:
            raise UsageError(f"sampling's leads must be changed or any, not '{leads}'")
        if n not in _N:
            raise UsageError(f"sampling's n must be cycles or visits, not '{n}'")
        if neighbours not in _NEEDS:
            raise UsageError(f"sampling's neighbours must be directory, links or clusters, not '{neighbours}'")
        if not (-MAX_DISTANCE <= d <= MAX_DISTANCE and d == int(d)):
            raise UsageError(f"sampling's d must be a whole number from -{MAX_DISTANCE} to {MAX_DISTANCE}, not {d}")
        if not (1 <= batch < float("inf") and batch == int(batch)):
            raise UsageError(f"sampling's batch must be a whole number, 1 or more, not {batch}")
        self.neighbours = neighbours
        self.d = int(d)
        self.phi = phi
        self.leads = leads
        self.n = n
        self.newest = newest
        self.rank = rank
        self.batch = int(batch)
        self._fixed = None if phi in ADAPTIVE else _probability(phi)
        self._asks = phi == "status" or (phi != "pra" and leads == "changed")
        """Whether only changed samples lead to their neighbours."""
        self.needs = frozenset({_NEEDS[neighbours], *(["links"] if phi == "pra" else [])})
        self._ranked: tuple[LinkGraph | None, NDArray[Any] | None, _Ranks] | None = None

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield, round by round, samples and then the neighbours of the samples that lead to them."""
        free = book.known.copy()
        order = rng.permutation(np.flatnonzero(free))
        left = min(budget, len(order))
        if self._fixed == 0.0 and left:
            yield _picks(order[:left], "it was drawn at random")
            return
        finder, phi = self._finder(book), self._phi(book)
        drawn = 0
        while left > 0:
            coin = None
            if self.batch == 1:
                sample, coin, drawn = _until_seed(order, drawn, left, free, phi, rng)
            else:
                size = max(1, min(self.batch, left // _MIN_BATCHES))
                sample, drawn = _next(order, drawn, size, free)
            free[sample] = False
            left -= len(sample)
            seen = yield _picks(sample, "it was drawn at random as a sample")
            seeds = _seeds(phi, seen, rng) if coin is None else _last(sample, coin, phi, seen)
            if len(seeds) and left:
                near = _nearest(finder, seeds, free, left, rng)
                left -= len(near)
                if len(near):
                    yield near

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:  # noqa: ARG002
        """Store what φ needs beyond the book: the weighted history, or the ranks and a checksum of the links."""
        number: NDArray[np.integer] = book.visits  # of visits before this one: its number among those after the first
        if self.phi in _BY_HISTORY and self.n == "cycles" and (book.visits[seen.pages] > 0).any():
            book.memory[_CYCLES] = book.memory.get(_CYCLES, np.zeros(1, np.int64)) + 1
            number = np.where(book.visits > 0, book.memory[_CYCLES][0], 0)
        if self.phi == "wha":
            weighted = book.kept(_WEIGHTED, 0.0)
            found = seen.pages[seen.changed]
            weighted[found] += number[found]
            book.memory[_WEIGHTED] = weighted
        if self.phi == "pra":
            book.memory[_RANKS], book.memory[_LINKS] = self._ranks(book)

    def _finder(self, book: Book) -> Finder:
        if self.neighbours == "directory":
            return ByDirectory(book.folder, book.folders, self.d)
        if self.neighbours == "links":
            return ByLink(book.links, len(book), self.d)
        return ByCluster(book.clusters, len(book), self.d, of_page=self.rank == "page")

    def _phi(self, book: Book) -> _Phi:
        """Return φ of every page."""
        if self.phi in _BY_HISTORY:
            changed, same = self._by_history(book)
        elif self.phi == "pra":
            changed = same = by_popularity(log_scale(self._ranks(book)[0]))
        else:
            changed = same = np.full(len(book), 1.0 if self._fixed is None else self._fixed)
        return _Phi(changed, np.zeros(len(book)) if self._asks else same)

    def _by_history(self, book: Book) -> tuple[Floats, Floats]:
        """Return φ of every page if its visit finds a change, and if it does not."""
        started = book.visits > 0  # the first download is not counted
        compared = np.maximum(book.visits - 1.0, 0.0)
        if self.n == "cycles":
            compared = np.full(len(book), float(book.memory.get(_CYCLES, np.zeros(1))[0]))
        found = np.maximum(book.changes - 1.0, 0.0) if self.phi == "ha" else book.kept(_WEIGHTED, 0.0)
        rate = rates if self.phi == "ha" else recent_rates
        if not self.newest:
            before = in_one_cycle(rate(found, compared))
            return before, before
        compared = compared + started
        weight = started if self.phi == "ha" else started * compared
        return in_one_cycle(rate(found + weight, compared)), in_one_cycle(rate(found, compared))

    def _ranks(self, book: Book) -> _Ranks:
        """Return the ranks, computed once for `cycle` and `learn`, which see the same links and memory."""
        links, old = book.links, book.memory.get(_RANKS)
        cached = self._ranked
        if cached is None or cached[0] is not links or cached[1] is not old or len(cached[2][0]) != len(book):
            cached = self._ranked = links, old, _ranks(book)
        return cached[2]


def _probability(phi: str) -> float:
    try:
        value = float(phi)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"sampling's phi must be a number from 0 to 1 or one of {', '.join(ADAPTIVE)}, not '{phi}'")
    return value


def _next(order: Pages, drawn: int, size: int, free: Flags) -> tuple[Pages, int]:
    """Return the next free pages of a random order, and the position after them.

    The next free page of a random order is each free page with equal probability, whatever was visited meanwhile.
    """
    if size == 1:  # the algorithm as printed: worth its own path
        while not free[order[drawn]]:
            drawn += 1
        return order[drawn : drawn + 1], drawn + 1
    parts: list[Pages] = []
    while size > 0 and drawn < len(order):
        part = order[drawn : drawn + size]
        drawn += len(part)
        part = part[free[part]]
        size -= len(part)
        parts.append(part)
    return np.concatenate(parts), drawn


def _until_seed(
    order: Pages, drawn: int, most: int, free: Flags, phi: _Phi, rng: np.random.Generator
) -> tuple[Pages, float, int]:
    """Return the next samples up to the first that may lead to its neighbours, its coin, and the position after them.

    Samples whose coin is too high for either outcome lead nowhere: visits one at a time can be made together."""
    pages: list[int] = []
    coin = 1.0
    while len(pages) < most:
        page = order[drawn]
        drawn += 1
        if free[page]:
            pages.append(page)
            most_likely = max(phi.changed[page], phi.same[page])
            coin = rng.random() if most_likely < 1 else 0.0
            if coin < most_likely:
                break
    return np.array(pages, np.int64), coin, drawn


def _last(sample: Pages, coin: float, phi: _Phi, seen: Outcomes) -> Pages:
    """Return the last sample if it leads to its neighbours, given its outcome."""
    last = seen.take(seen.pages == sample[-1])
    return last.pages[coin < phi.given(last)]


def _seeds(phi: _Phi, seen: Outcomes, rng: np.random.Generator) -> Pages:
    """Return the samples whose neighbours are visited."""
    chance = phi.given(seen)
    leads = chance >= 1
    open_ = (chance > 0) & ~leads
    leads[open_] = rng.random(int(open_.sum())) < chance[open_]
    return seen.pages[leads]


def _nearest(finder: Finder, seeds: Pages, free: Flags, left: int, rng: np.random.Generator) -> Picks:
    """Pick at most `left` free neighbours, nearest first, and remove them from `free`."""
    pages, score = [np.zeros(0, np.int64)], [np.zeros(0)]
    if left:
        for distance, near in finder.around(seeds, free):
            taken = rng.permutation(near)[:left] if len(near) > left else near
            free[taken] = False
            left -= len(taken)
            pages.append(taken)
            score.append(np.full(len(taken), 1.0 / (1 + abs(distance))))
            if not left:
                break
    return Picks(np.concatenate(pages), np.concatenate(score), "it is a neighbour of a sampled page")


def _picks(pages: Pages, reason: str) -> Picks:
    return Picks(pages, np.ones(len(pages)), reason)


def _ranks(book: Book) -> _Ranks:
    """Return PageRank and a checksum of the links; unchanged links reuse the stored ranks."""
    links = fitted(book.links, len(book))
    checksum = np.array([zlib.crc32(links.target.tobytes(), zlib.crc32(links.start.tobytes()))], np.int64)
    old = book.memory.get(_RANKS)
    if old is not None and np.array_equal(book.memory[_LINKS], checksum):
        return old, checksum
    return pagerank(links, start=old), checksum


def rates(found: Floats, counted: Floats) -> Floats:
    """Return λ of pages by eq. 6 (HA), if `found` of `counted` visits found a change; 0 without a counted visit.

    >>> rates(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [0.25, 0.0]
    """
    return np.clip(found / np.maximum(counted, 1.0), 0.0, 1.0)


def recent_rates(weighted: Floats, counted: Floats) -> Floats:
    """Return λ of pages by eq. 8 (WHA) with the weights i / (1 + ... + n) of T §6.2: later changes count more.

    Eq. 8 is printed with a division by n, although the weights already sum to 1; equal weights would then not reduce it
    to eq. 6, as T says they do. So there is no division here (spec S5). `weighted` is the sum of the numbers i, from 1
    to n, of the counted visits that found a change.

    >>> recent_rates(np.array([1.0, 4.0]), np.array([4.0, 4.0])).tolist()
    [0.1, 0.4]
    """
    return np.clip(weighted / np.maximum(counted * (counted + 1) / 2, 1.0), 0.0, 1.0)


def in_one_cycle(rate_per_cycle: Floats) -> Floats:
    """Return φ = 1 - e^-λ: the probability of a change within one cycle for a Poisson process (eq. 5)."""
    return -np.expm1(-rate_per_cycle)


def by_popularity(scale: Ints) -> Floats:
    """Return φ = 1/11, 2/11, ..., 11/11 for a PageRank of 0, 1, ..., 10 (PRA).

    >>> by_popularity(np.array([0, 10])).round(3).tolist()
    [0.091, 1.0]
    """
    return (scale + 1) / 11.0
