"""The state of one cycle of `shock`: the pages that may still be visited, and their change probabilities."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from recrawl.book import Book
from recrawl.choose.shock.ranking import CLOSED, group_ranks, highest, level_at, level_counts
from recrawl.choose.top_k import rank_within, top_k
from recrawl.columns import DAY, Flags, Float32s, Floats, Int32s, Ints, median
from recrawl.learn.chunks import AnyFloats, chunks, group_sums, where
from recrawl.learn.hints import Signals
from recrawl.learn.shocks.change_model import log_odds
from recrawl.learn.shocks.mixture import Mixture
from recrawl.learn.value import (
    expected_age,
    expected_index,
    scalar_if_constant,
    time_to_age,
    time_to_change,
)
from recrawl.model import Outcomes, Pages, Unvisited

SAMPLE = 2
"""Pages of an uncertain group per batch."""
CERTAIN = 0.7
"""The change probability from which a group is no longer uncertain."""
SURE = 0.9
"""The change probability from which no batch waits for an outcome."""
HALF_SIZE = 50
"""The group size at which a visit has half the maximum information value."""
MIN_PREDICTED = 1 << 19
"""When a cycle begins, the full model predicts at least this many pages, and at least four times the budget."""
NEAR = 12
"""Pages of a group that are predicted again after a visit to its site; more as the group itself is visited."""
MIN_PROBE_SHARE = 0.2
"""The lowest share of its probes that a site with reliable hints gets: its sources may stop working."""
WIDTH = 12
"""Multiple of the batch size among which pages of different groups are searched."""

Objective = Literal["changes", "freshness", "harmonic", "age", "links"]


class LoadedModels(NamedTuple):
    """What was learned from earlier cycles, as of now."""

    mixture: Mixture
    signals: Signals

    @classmethod
    def of(cls, book: Book, *, poisson: bool, prior: bool) -> LoadedModels:
        """Load the state from the book's memory."""
        return cls(Mixture.of(book, poisson=poisson, prior=prior), Signals.of(book))


class ShockPlan:
    """The pages that a cycle may still visit, and their change probabilities, updated after every batch."""

    def __init__(
        self,
        book: Book,
        open_: Flags,
        budget: int,
        *,
        objective: Objective = "changes",
        poisson: bool = True,
        prior: bool = True,
        pages: int = 0,
        weighted: bool = False,
        state: LoadedModels | None = None,
    ) -> None:
        """Predict the open pages; `pages` is their number in all shards, `weighted` if weights or costs differ.

        `state` is what was loaded from the book already; the plan changes it.
        """
        self.open = open_
        """One per page: whether it may still be visited."""
        self.left = int(np.count_nonzero(open_))
        self._share = self.left / max(pages, self.left, 1)
        """The share of the open pages of all shards that are here."""
        self.mixture, self._signals = state or LoadedModels.of(book, poisson=poisson, prior=prior)
        self.change_model, groups = self.mixture.change_model, self.mixture.change_model.shocks.groups
        self.probability = np.zeros(len(book), np.float32)
        """One per page: that it has changed since its last visit."""
        self._book, self._objective = book, objective
        self._weight, self._cost = scalar_if_constant(book.weight), scalar_if_constant(book.cost)
        self._weighted = weighted or not (isinstance(self._weight, float) and isinstance(self._cost, float))
        self._drawn_rates: Float32s | None = None
        self._valued = np.zeros((2, 0), np.float32)
        """One column per page, from the first call of `value`: a probability and the value computed from it."""
        self._predict_all(int(max(MIN_PREDICTED, 4 * budget) * self._share))
        self._size = group_sums(groups.of, open_, len(groups))
        """One per group: its number of open pages."""
        self._under_way = np.zeros(len(book), bool)
        self._near = np.full(len(groups), NEAR, np.int32)
        """One per group: how many of its pages, by rank, are predicted again after a visit to its site."""
        self._rank = group_ranks(self.probability, groups, self._size, open_)
        first = [chunk.start + np.flatnonzero(self._rank[chunk] == 0) for chunk in chunks(len(book))]
        self._first = np.concatenate(first)
        """One per group with open pages: its page with the highest probability when the cycle began."""
        self.levels = level_counts(self.probability, open_)
        """The number of open pages by probability when the cycle began."""
        self.compete(self.levels, budget)

    def compete(self, levels: Floats, budget: int) -> None:
        """Take the open pages of all shards, by probability, as those that compete for the budget."""
        self._last_taken = level_at(levels, budget)
        """The probability of the last page within the budget, as predicted when the cycle began."""

    def probes(self, visits: float) -> tuple[Ints, Floats]:
        """Return the page with the highest probability of each site whose share of `visits` per cycle is due.

        The share is by number of pages; a site whose sources signal its changes gets fewer. The second result is the
        number of visits that are due for the site of each page.
        """
        book, length = self._book, cycle_length(self._book)
        if not length:
            return np.zeros(0, np.int64), np.zeros(0)
        last = last_visits(book)
        size = group_sums(book.site, self.open, len(last))
        due = (book.now - last) / length * visits * size * self._share / max(self.left, 1)
        if book.hints is not None:
            due *= np.maximum(self._unsignalled(size), MIN_PROBE_SHARE)
        sites = np.flatnonzero((due >= 1) & (size > 0))
        sites = sites[np.argsort(-due[sites], kind="stable")][: max(1, int(2 * visits))]
        chosen = np.zeros(len(last), bool)
        chosen[sites] = True
        best, page = np.full(len(last), -1, np.float32), np.zeros(len(last), np.int64)
        for pages in where(self.open):
            rest = pages[chosen[book.site[pages]]]
            rest = rest[self.probability[rest] > best[book.site[rest]]][::-1]
            np.maximum.at(best, book.site[rest], self.probability[rest])
            equal = rest[self.probability[rest] == best[book.site[rest]]]
            page[book.site[equal]] = equal  # the last assignment counts, which is the first page of the site
        return page[chosen], due[chosen]

    def _unsignalled(self, size: Floats) -> Floats:
        """Return, per site with so many open pages, the mean share of changes that no source signals."""
        share = np.zeros(len(size))
        for pages in where(self.open):
            missed, _ = self._signals.sources(pages)
            share += np.bincount(self._book.site[pages], missed, len(size))
        return share / np.maximum(size, 1)

    def value(self, probability: Float32s) -> Float32s:
        """Return the value of a visit to each page for the objective, -inf for closed pages."""
        value = np.full(len(probability), -np.inf, np.float32)
        if self._objective == "changes" and not self._weighted:
            np.copyto(value, probability, where=self.open)
            return value
        if not self._valued.size:
            self._valued = np.full((2, len(probability)), -1, np.float32)
        for pages in where(self.open & (probability != self._valued[0])):  # most probabilities have not changed
            self._valued[:, pages] = probability[pages], self._index(pages, probability[pages])
        np.copyto(value, self._valued[1], where=self.open)
        return value

    def _index(self, pages: Ints, probability: Float32s) -> Floats:
        """Return the index after the ordinary time in which the pages would have become as stale as they are."""
        a, b = self.change_model.shocks.rate(pages)
        time = time_to_change(a, b, probability)
        if self._objective == "age":  # whatever has happened, a page was out of date at most since its last visit
            waited = np.maximum(self._book.now - self._book.last_visit[pages], 1.0) / DAY
            time = time_to_age(a, b, waited * expected_age(a, b, time) / np.maximum(time, 1e-9))
            time = np.sqrt(time * waited)  # a wrong belief that nothing has changed costs more the longer it lasts
        weight, cost = (one if isinstance(one, float) else one[pages] for one in (self._weight, self._cost))
        links = self._book.arrivals[pages]
        return expected_index(self._objective, a, b, time, weight=weight, cost=cost, links=links)

    def add_information_value(self, value: Float32s, curiosity: float, after: int) -> None:
        """Raise the value of the first page of each group without a visit in this cycle, for what it tells of others.

        The information is worth more the less certain the outcome is, the more pages of the group could still be
        visited in the `after` visits that follow, and the less likely the last pages within the budget have changed.
        """
        first = self._first[self.open[self._first]]
        group = self.change_model.shocks.groups.of[first]
        unvisited = (self._near[group] == NEAR) & self.mixture.shared(first)  # a visit would have raised it
        page, size = first[unvisited], np.minimum(self._size[group[unvisited]], after)
        value[page] *= 1 + curiosity * (1 - self._last_taken) * (1 - self.probability[page]) * size / (size + HALF_SIZE)

    def draw(self, rng: np.random.Generator) -> Float32s:
        """Return probabilities by rates drawn from their posterior; the same draw throughout the cycle."""
        if self._drawn_rates is None:
            self._drawn_rates = np.zeros_like(self.probability)
            for pages in where(self.open):
                a, b = self.change_model.shocks.rate(pages)
                self._drawn_rates[pages] = rng.gamma(a) / b
        drawn = np.zeros_like(self.probability)
        for pages in where(self.open):
            by_rate = -np.expm1(-self._drawn_rates[pages] * self.change_model.exposure(pages))
            drawn[pages] = self._signals.predict(pages, by_rate)
        return drawn

    def best(self, value: Float32s, count: int, per_group: int) -> tuple[Ints, Flags]:
        """Return the pages with the highest value for a batch of `count`, at most `per_group` of each uncertain group.

        A few visits show whether the group has changed; if it has not, further visits would be wasted. Of `WIDTH` times
        as many pages as the batch has, those beyond `per_group` follow, for which the second result is true: they are
        visited before pages of other groups that are less valuable than all of these.
        """
        pages = highest(value, min(self.left, count * WIDTH))
        later = (self._rank_in_group(pages) >= per_group) & self._uncertain(pages)
        order = np.argsort(later, kind="stable")
        return pages[order], later[order]

    def informative(self, pages: Pages) -> Flags:
        """Return the pages of a batch whose outcomes the next batch needs: the first ones of each group.

        They tell of the group, and servers answer them first: two if nothing was heard of the group in this cycle, else
        one. To await all pages of a group, however likely it has changed, would let all servers wait for one with many
        of them. A page that has changed almost surely tells little. One that failed at its last visit is behind the
        queue of its server, and is likely to tell nothing.
        """
        unheard = self._near[self.change_model.shocks.groups.of[pages]] == NEAR
        sample = self._rank_in_group(pages) < np.where(unheard, SAMPLE, 1)
        unsure: Flags = (self.probability[pages] < SURE) & (self._book.failures[pages] == 0)
        return unsure & sample

    def _rank_in_group(self, pages: Pages) -> Int32s:
        return rank_within(self.change_model.shocks.groups.of[pages])

    def _uncertain(self, pages: Pages) -> Flags:
        low: Flags = self.probability[pages] < CERTAIN
        return low & self.mixture.shared(pages)

    def take(self, pages: Pages) -> None:
        """Close the pages of a batch: they are under way."""
        self.left -= len(pages)
        self.open[pages] = False
        self._rank[pages] = CLOSED
        self._under_way[pages] = True

    def _close_sites(self, held: Pages) -> None:
        """Close all pages of the sites of these pages, and all others that may not be visited any more."""
        site = np.zeros(self._book.sites, bool)
        site[self._book.site[held]] = True
        closed = self.open & (site[self._book.site] | ~self._book.known)
        self.left -= int(np.count_nonzero(closed))
        self.open &= ~closed
        self._rank[closed] = CLOSED

    def observe(self, seen: Outcomes) -> None:
        """Update with the outcomes of pages under way: predict pages of the same sites again."""
        held = seen.pages[seen.what == Unvisited.HELD]
        if len(held):
            self._close_sites(held)
        seen = seen.take(self._under_way[seen.pages])  # pages never downloaded are not of this plan
        self._under_way[seen.pages] = False
        pages, changed = seen.pages[seen.answered], seen.changed[seen.answered]
        observe_signals(self.mixture, self._signals, pages, changed)
        self.mixture.observe_new_pages(pages, changed)
        self.mixture.observe(pages, changed)
        groups = self.change_model.shocks.groups
        visited = groups.of[seen.pages]
        self._near[visited] += 2 * SAMPLE  # once per group, however many of its pages were visited
        np.add.at(self._near, visited, 1)
        touched = np.zeros(int(groups.site.max(initial=-1)) + 1, bool)
        touched[groups.site[visited]] = True
        self._predict_again(np.where(touched[groups.site], self._near, 0))

    def _predict_all(self, count: int) -> None:
        """Predict all open pages; if there are too many, the best by the shock model, and one page of every group."""
        if self.left <= count:
            for pages in where(self.open):
                self.probability[pages] = self._predict(pages)
            return
        for pages in where(self.open):  # signals included, since one can outweigh the shock model
            self.probability[pages] = self._signals.predict(pages, self.change_model.predict_by_shocks(pages))
        chosen = np.zeros(len(self.open), bool)
        chosen[top_k(np.where(self.open, -self.probability, np.float32(1)), count)] = True
        first = np.zeros(len(self.change_model.shocks.groups), np.int64)
        for pages in where(self.open):
            first[self.change_model.shocks.groups.of[pages]] = pages
        chosen[first] = True
        self.probability /= 2  # rank pages with a rough prediction behind those with a full one
        for pages in where(chosen & self.open):
            self.probability[pages] = self._predict(pages)

    def _predict_again(self, near: Int32s) -> None:
        """Predict the next `near` pages of each group; shift its other pages by the mean change in log odds."""
        of, most = self.change_model.shocks.groups.of, near.max(initial=0)
        pages = np.concatenate([chunk.start + np.flatnonzero(self._rank[chunk] < most) for chunk in chunks(len(of))])
        pages = pages[self._rank[pages] < near[of[pages]]]
        predicted = self._predict(pages)
        moved = log_odds(predicted) - log_odds(self.probability[pages])
        count = np.maximum(np.bincount(of[pages], minlength=len(near)), 1)
        odds = np.exp(np.bincount(of[pages], moved, len(near)) / count).astype(np.float32)
        for chunk in chunks(len(of)):
            factor, probability = odds.take(of[chunk]), self.probability[chunk]
            rest = factor - 1
            rest *= probability
            rest += 1
            probability *= factor
            probability /= rest
        self.probability[pages] = predicted

    def _predict(self, pages: Ints) -> AnyFloats:
        return self._signals.predict(pages, self.mixture.predict(pages))


def observe_signals(mixture: Mixture, signals: Signals, pages: Pages, changed: Flags) -> None:
    """Update the trust in sources of hints with visits, given the predictions without hints."""
    if mixture.book.hints is not None:
        signals.predict(pages, mixture.predict(pages))
    signals.observe(pages, changed)


def cycle_length(book: Book) -> float:
    """Return the median length of cycles in seconds; 0 before the second cycle."""
    times = book.memory.get("shock.times", np.zeros(0))
    return median(np.diff(times)) * DAY if len(times) > 1 else 0.0


def last_visits(book: Book) -> Floats:
    """Return the time of each site's last visit; the beginning of the first cycle if it is unknown."""
    visited = np.full(book.sites, book.memory.get("shock.times", np.zeros(1))[0] * DAY)
    kept = book.memory.get("shock.visited", visited[:0])
    visited[: len(kept)] = kept
    return visited
