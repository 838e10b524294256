"""What a cycle of `shock` goes by: the pages that it may still visit, and what is believed of them as it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.top_k import rank_within, top_k
from recrawl.learn.chunks import AnyFloats, Column, Floats, parts, sums, where
from recrawl.learn.hints.trust import Signals
from recrawl.learn.shocks.change_model import log_odds
from recrawl.learn.shocks.group_tallies import Groups
from recrawl.learn.shocks.mixture import Mixture
from recrawl.learn.shocks.model import DAY
from recrawl.learn.value.objectives import believed_index, expected_age, level, time_to_age, time_to_change
from recrawl.model import Outcomes, Pages

FEW = 2
"""So many pages of one group in a batch, unless the group is ..."""
SURE = 0.7
"""... as likely as this to have changed."""
HALF = 50
"""Where a visit tells of so many others, it tells half as much as where it tells of very many."""
MANY = 1 << 19
"""So many pages, and at least four times the budget, are looked at closely when a cycle begins."""
NEAR = 12
"""So many pages of a group are looked at again when its site was visited, and more as the group itself is."""
LEAST_OWED = 0.2
"""However well a site's sources tell of its changes, it is owed this part of its visits: they may fall silent."""
_WIDE = 12
"""How many times the size of a batch is looked through for pages of different groups."""
_EACH = 16
"""One page of so many is looked at first to see what the best are worth, about."""
_SORTED = 1 << 20
"""So many pages are ranked at once; the room that it takes does not grow with the repository."""
_LAST = np.iinfo(np.int32).max
"""The rank of a page that is not to be visited any more."""
_LEVELS = 1000
"""Chances are told apart so finely."""

Objective = Literal["changes", "freshness", "harmonic", "age", "links"]


class Plan:
    """The pages that a cycle may still visit, and what is believed of them as it goes on."""

    def __init__(
        self,
        book: Book,
        open_: NDArray[np.bool_],
        budget: int,
        *,
        objective: Objective = "changes",
        experts: Sequence[str] = ("alone",),
    ) -> None:
        self.open = open_
        """One per page: whether it may still be visited."""
        self.left = int(np.count_nonzero(open_))
        self.council = Mixture.of(book, experts)
        self.opinion = self.council.opinion
        self.chance = np.zeros(len(book), np.float32)
        """One per page: of having changed."""
        self._book = book
        self._objective = objective
        self._signals = Signals.of(book)
        self._weight, self._cost = level(book.weight), level(book.cost)
        self._rates: Column | None = None
        self._priced = np.zeros((2, 0), np.float32)
        """One per page, once somebody has asked: a chance, and what a visit is worth by it."""
        self._first_look(max(MANY, 4 * budget))
        groups = self.opinion.belief.groups
        self._size = sums(groups.of, open_, len(groups))
        """One per group: how many of its pages may be visited."""
        self._near = np.full(len(groups), NEAR, np.int32)
        """One per group: so many of its pages, by their first chances, are looked at again when something is found."""
        self._rank = _ranks(self.chance, groups, self._size, open_)
        self._first = np.concatenate([part.start + np.flatnonzero(self._rank[part] == 0) for part in parts(len(book))])
        """One per group that has any: its likeliest page when the cycle began."""
        self._last_taken = _level_of(self.chance, open_, budget)
        """The chance of the last page that the budget would reach, by what was thought when the cycle began."""

    def probes(self, visits: float) -> NDArray[np.int64]:
        """The likeliest page of each site that is owed a visit, if so many visits a cycle belong to sites by size.

        A site whose sources of hints tell of its changes is owed the fewer.
        """
        book, length = self._book, cycle_length(self._book)
        if not length:
            return np.zeros(0, np.int64)
        last = last_visits(book)
        size = sums(book.site, self.open, len(last))
        owed = (book.now - last) / length * visits * size / max(self.left, 1)
        if book.hints is not None:
            owed *= np.maximum(self._untold(size), LEAST_OWED)
        late = np.flatnonzero((owed >= 1) & (size > 0))
        late = late[np.argsort(-owed[late], kind="stable")][: max(1, int(2 * visits))]
        wanted = np.zeros(len(last), bool)
        wanted[late] = True
        chance, page = np.full(len(last), -1, np.float32), np.zeros(len(last), np.int64)
        for pages in where(self.open):
            some = pages[wanted[book.site[pages]]]
            some = some[self.chance[some] > chance[book.site[some]]][::-1]
            np.maximum.at(chance, book.site[some], self.chance[some])
            best = some[self.chance[some] == chance[book.site[some]]]
            page[book.site[best]] = best  # of several the last stands, which is the first of the site
        return page[wanted]

    def _untold(self, size: Floats) -> Floats:
        """One per site, which has so many pages: the share of their changes that no source tells of, in the mean."""
        untold = np.zeros(len(size))
        for pages in where(self.open):
            missed, _ = self._signals.sources(pages)
            untold += np.bincount(self._book.site[pages], missed, len(size))
        return untold / np.maximum(size, 1)

    def worth(self, chance: Column) -> Column:
        """What a visit to each page is worth, if these are the chances."""
        worth = np.full(len(chance), -np.inf, np.float32)
        if self._objective == "changes" and isinstance(self._weight, float) and isinstance(self._cost, float):
            np.copyto(worth, chance, where=self.open)
            return worth
        if not self._priced.size:
            self._priced = np.full((2, len(chance)), -1, np.float32)
        for pages in where(self.open & (chance != self._priced[0])):  # most chances are as they were
            self._priced[:, pages] = chance[pages], self._price(pages, chance[pages])
        np.copyto(worth, self._priced[1], where=self.open)
        return worth

    def _price(self, pages: NDArray[np.int64], chance: Column) -> Floats:
        """As much as after the ordinary time in which a page would have become as stale as it is."""
        a, b = self.opinion.belief.rate(pages)
        time = time_to_change(a, b, chance)
        if self._objective == "age":  # however much has happened, it was out of date for no longer than it has waited
            waited = np.maximum(self._book.now - self._book.last_visit[pages], 1.0) / DAY
            time = time_to_age(a, b, waited * expected_age(a, b, time) / np.maximum(time, 1e-9))
        weight, cost = (one if isinstance(one, float) else one[pages] for one in (self._weight, self._cost))
        links = self._book.arrivals[pages]
        return believed_index(self._objective, a, b, time, weight=weight, cost=cost, links=links)

    def raise_telling(self, worth: Column, curiosity: float, after: int) -> None:
        """Pages that tell of others are worth more: the first of each group that had no visit yet.

        What a visit tells is worth the more the less sure its outcome is, the more pages like it could still be visited
        in this cycle, which has so many visits `after` it, and the less likely those have changed which are visited
        when nothing better is known.
        """
        first = self._first[self.open[self._first]]
        group = self.opinion.belief.groups.of[first]
        new = (self._near[group] == NEAR) & self.council.shared(first)  # a visit would have raised it
        page, size = first[new], np.minimum(self._size[group[new]], after)
        worth[page] *= 1 + curiosity * (1 - self._last_taken) * (1 - self.chance[page]) * size / (size + HALF)

    def drawn(self, rng: np.random.Generator) -> Column:
        """Chances by rates drawn from the belief; the same draw throughout the cycle."""
        if self._rates is None:
            self._rates = np.zeros_like(self.chance)
            for pages in where(self.open):
                a, b = self.opinion.belief.rate(pages)
                self._rates[pages] = rng.gamma(a) / b
        chance = np.zeros_like(self.chance)
        for pages in where(self.open):
            by_rate = -np.expm1(-self._rates[pages] * self.opinion.exposure(pages))
            chance[pages] = self._signals.chance(pages, by_rate)
        return chance

    def best(self, worth: Column, many: int, each: int) -> NDArray[np.int64]:
        """The pages worth most; of a group of which it is not sure that it has changed, only so many at once.

        A few visits tell what has become of the group. The others would be wasted if it were nothing.
        """
        some = _largest(worth, min(self.left, many * _WIDE))
        unsure = (self.chance[some] < SURE) & self.council.shared(some)
        late = (rank_within(self.opinion.belief.groups.of[some]) >= each) & unsure
        return np.concatenate((some[~late], some[late]))[:many]

    def take(self, seen: Outcomes) -> None:
        """What a batch has found: its pages are done, those of the same sites are looked at again."""
        pages, changed = seen.pages[seen.answered], seen.changed[seen.answered]
        weigh_hints(self.council, self._signals, pages, changed)
        self.council.observe(pages, changed)
        self.left -= int(np.count_nonzero(self.open[seen.pages]))
        self.open[seen.pages] = False
        self._rank[seen.pages] = _LAST
        groups = self.opinion.belief.groups
        visited = groups.of[seen.pages]
        self._near[visited] += 2 * FEW  # once, however many of its pages were visited
        np.add.at(self._near, visited, 1)
        touched = np.zeros(int(groups.site.max(initial=-1)) + 1, bool)
        touched[groups.site[visited]] = True
        self._look_again(np.where(touched[groups.site], self._near, 0))

    def _first_look(self, many: int) -> None:
        """All pages; where they are too many, those of which the belief thinks most, and one of every group."""
        if self.left <= many:
            for pages in where(self.open):
                self.chance[pages] = self._look(pages)
            return
        for pages in where(self.open):  # a signal can make up for much
            self.chance[pages] = self._signals.chance(pages, self.opinion.believed(pages))
        chosen = np.zeros(len(self.open), bool)
        chosen[top_k(np.where(self.open, -self.chance, np.float32(1)), many)] = True
        first = np.zeros(len(self.opinion.belief.groups), np.int64)
        for pages in where(self.open):
            first[self.opinion.belief.groups.of[pages]] = pages
        chosen[first] = True
        self.chance /= 2  # what was not looked at must not stand before what was
        for pages in where(chosen & self.open):
            self.chance[pages] = self._look(pages)

    def _look_again(self, near: NDArray[np.int32]) -> None:
        """Look at so many pages of each group that come next in it; its others move by as much as those did."""
        of = self.opinion.belief.groups.of
        close = np.concatenate(
            [part.start + np.flatnonzero(self._rank[part] < near[of[part]]) for part in parts(len(of))]
        )
        seen = self._look(close)
        moved = log_odds(seen) - log_odds(self.chance[close])
        many = np.maximum(np.bincount(of[close], minlength=len(near)), 1)
        odds = np.exp(np.bincount(of[close], moved, len(near)) / many).astype(np.float32)
        for part in parts(len(of)):
            times, chance = odds[of[part]], self.chance[part]
            self.chance[part] = chance * times / (1 + chance * (times - 1))
        self.chance[close] = seen

    def _look(self, pages: NDArray[np.int64]) -> AnyFloats:
        return self._signals.chance(pages, self.council.chance(pages))


def _ranks(chance: Column, groups: Groups, size: Floats, open_: NDArray[np.bool_]) -> NDArray[np.int32]:
    """One per page: how many pages of its group have a better chance; groups are taken together, so many at a time."""
    of = groups.of
    rank = np.full(len(of), _LAST, np.int32)
    part_of_group = (np.cumsum(size) // _SORTED).astype(np.int16)
    part = part_of_group[of]
    part[~open_] = -1
    for number in range(int(part_of_group.max(initial=-1)) + 1):
        pages = np.flatnonzero(part == number)
        best_first = pages[np.argsort(-chance[pages], kind="stable")]
        rank[best_first] = rank_within(of[best_first])
    return rank


def _level_of(chance: Column, open_: NDArray[np.bool_], many: int) -> float:
    """About the chance of the page that so many have a better one than; 0 where there are not so many.

    >>> _level_of(np.array([0.2, 0.6, 1.0, 0.8], np.float32), np.array([True, True, False, True]), 2)
    0.6
    """
    levels = np.zeros(_LEVELS + 1)
    for pages in where(open_):
        levels += np.bincount((chance[pages] * _LEVELS).astype(np.int64), minlength=len(levels))
    above = np.cumsum(levels[::-1])
    return max(0, _LEVELS - int(np.searchsorted(above, many))) / _LEVELS


def weigh_hints(council: Mixture, signals: Signals, pages: Pages, changed: NDArray[np.bool_]) -> None:
    """What visits say of the sources of hints, given what was thought of the pages without them."""
    if council.book.hints is not None:
        signals.chance(pages, council.chance(pages))
    signals.observe(pages, changed)


def cycle_length(book: Book) -> float:
    """How long a cycle is, as a rule, in seconds; 0 while nobody can say."""
    times = book.memory.get("shock.times", np.zeros(0))
    return float(np.median(np.diff(times))) * DAY if len(times) > 1 else 0.0


def last_visits(book: Book) -> NDArray[np.float64]:
    """One per site: when it was last visited; where that was not noted, when time began."""
    visited = np.full(book.sites, book.memory.get("shock.times", np.zeros(1))[0] * DAY)
    kept = book.memory.get("shock.visited", visited[:0])
    visited[: len(kept)] = kept
    return visited


def _largest(worth: Column, many: int) -> NDArray[np.int64]:
    """The pages worth most, the most first; of those that are level at the end some that lie apart.

    One page of sixteen tells what about four times as many are worth at least. If enough are worth more than that, they
    are found among those, which is quick.

    >>> _largest(np.array([1, 2, 1, 1, 1, 3], np.float32), 4).tolist()
    [5, 1, 0, 4]
    """
    some = worth[::_EACH]
    rank = 4 + 4 * many // _EACH
    if rank < len(some) // 4:
        above = np.flatnonzero(worth > np.partition(some, len(some) - rank)[len(some) - rank])
        if len(above) >= many:
            return above[_first_of(worth[above], many)]
    return _first_of(worth, many)


def _first_of(worth: Column, many: int) -> NDArray[np.int64]:
    if many >= len(worth):
        return np.argsort(-worth, kind="stable")
    last = np.partition(worth, len(worth) - many)[len(worth) - many]
    more, level = np.flatnonzero(worth > last), np.flatnonzero(worth == last)
    left = many - len(more)
    apart = level if left == len(level) else level[np.linspace(0, len(level) - 1, left).astype(np.int64)]
    return np.concatenate((more[np.argsort(-worth[more], kind="stable")], apart))
