"""What a shard offers in a round, and the threshold that follows from all offers.

A shard's `RankedPages` are pages with their worth: the expected gain of a visit per cost, or whatever the policy ranks
by. Its `Offer` is a histogram of it. `settle` merges the offers of all shards, finds the worth at which the round's
visits are used up, and answers every shard with a `Cut`: that threshold, and how many pages the shard may take. Pages
of equal worth at the threshold are divided in proportion to how many each shard has.

Some pages come later: a policy that wants variety puts pages behind those that are less alike. How far behind must not
depend on the number of shards: `reach` is the number of pages, of all shards together and best first, within which they
wait. So an offer holds as many pages, and a page beyond the reach comes after all pages within it.

A worth has a key, an integer in the same order. Each of the best pages has a bin of its own; further down, a bin holds
a twelfth of the pages above it. So small offers are exact, and large ones stay small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Float32s, Floats, Ints, unique
from recrawl.model import Pages, Picks

_EXACT = 48
"""The best pages of an offer that have bins of their own."""
_GROWTH = 1 + 1 / 12
"""The number of pages down to the end of a bin, relative to the bin before it, after that."""
_SAMPLED = 1 << 16
"""Pages from which the bins of a larger offer follow."""
_LAST_BIT = 0x7FFFFFFF
_LATER = 1 << 33
"""The keys of pages that come later lie this far below."""
_WAITING = -_LATER // 2
"""The keys of pages that wait are below this, those of others above."""
LOWEST = -4 * _LATER
"""A threshold below all keys."""
_ENCODED = ("<i8", "<i4")
"""Types of the columns of a histogram as bytes."""
_LARGEST = np.float32(3e38)


class Cut(NamedTuple):
    """The answer to an offer."""

    threshold: int
    """The lowest key of which pages are taken. If pages that come later are taken, it is the key at the end of the
    reach, lowered like theirs: all pages within the reach that do not wait are taken before them."""
    quota: int
    """The number of pages that the shard may take."""


class Histogram(NamedTuple):
    """Pages by worth, the highest bin first; bins without pages are left out."""

    bins: Ints
    """The lowest key of each bin."""
    counts: Ints


class Offer:
    """How many pages a shard could visit, and the histogram of their worth, which is counted when it is needed.

    A process that sends an offer to another sends the histogram alone.

    >>> Offer(np.array([0.5, 4.0, 0.5])).histogram.counts.tolist()
    [1, 2]
    """

    def __init__(self, worth: Floats | Float32s, later: Flags | None = None, reach: int = 0) -> None:
        """Offer pages of this worth; pages where `later` is true come after all others within the reach."""
        self._pages = len(worth)
        self.reach = reach
        self._count: Callable[[], Histogram] = partial(_counted, worth, later)

    @cached_property
    def histogram(self) -> Histogram:
        """Pages by worth."""
        return self._count()

    def without_best(self, cut: Cut) -> Offer:
        """Return the offer after the pages of a cut were taken.

        >>> offer = Offer(np.array([8.0, 4.0, 4.0, 1.0]))
        >>> offer.without_best(Cut(LOWEST, 2)).histogram.counts.tolist()
        [1, 1]
        """
        bins, counts = self.histogram
        order = np.argsort(-_demoted(bins, _reached(cut.threshold)), kind="stable")
        left = counts.copy()
        left[order] -= np.diff(np.minimum(np.cumsum(counts[order]), cut.quota), prepend=0)
        return _from_histogram(Histogram(bins[left > 0], left[left > 0]), self.reach)

    def encoded(self) -> bytes:
        """Return the reach and the histogram as bytes.

        >>> Offer.decoded(Offer(np.array([8.0, 4.0, 4.0])).encoded()).histogram.counts.tolist()
        [1, 2]
        """
        columns: tuple[NDArray[Any], ...] = (np.array([self.reach], np.int64), *self.histogram)
        return b"".join(column.astype(kind).tobytes() for column, kind in zip(columns, ("<i8", *_ENCODED), strict=True))

    @classmethod
    def decoded(cls, data: bytes) -> Offer:
        """Return the offer that `encoded` gave."""
        reach = int(np.frombuffer(data, "<i8", 1)[0])
        rows, start, columns = len(data[8:]) // sum(np.dtype(kind).itemsize for kind in _ENCODED), 8, []
        for kind in _ENCODED:
            columns.append(np.frombuffer(data, kind, rows, start))
            start += columns[-1].nbytes
        return _from_histogram(Histogram(*(column.astype(np.int64) for column in columns)), reach)

    def __len__(self) -> int:
        """Return the number of pages."""
        return self._pages

    def __reduce__(self) -> tuple[Callable[[Histogram, int], Offer], tuple[Histogram, int]]:
        return _from_histogram, (self.histogram, self.reach)


def _from_histogram(histogram: Histogram, reach: int) -> Offer:
    offer = Offer(np.zeros(0), reach=reach)
    offer._pages, offer.histogram = int(histogram.counts.sum()), histogram
    return offer


def _counted(worth: Floats | Float32s, later: Flags | None) -> Histogram:
    keys = keys_of(worth, later)
    bins = unique(np.concatenate([_lowest_keys(some) for some in (keys[keys > _WAITING], keys[keys < _WAITING])]))
    counts = np.bincount(np.searchsorted(bins, keys, side="right") - 1, minlength=len(bins))
    present = np.flatnonzero(counts)[::-1]
    return Histogram(bins[present], counts[present])


def _lowest_keys(keys: Ints) -> Ints:
    """Return the lowest key of each bin.

    >>> bins = _lowest_keys(np.arange(1000))
    >>> len(bins), int(bins.max()), int(bins.min())
    (86, 999, 0)
    """
    if not len(keys):
        return keys
    sample = np.sort(keys[:: -(-len(keys) // _SAMPLED)])[::-1]
    growing = _EXACT * _GROWTH ** np.arange(1, 1 + np.log(max(1, len(sample) / _EXACT)) / np.log(_GROWTH))
    ends = np.concatenate((np.arange(1, _EXACT + 1), growing.astype(np.int64)))
    lowest: Ints = np.append(sample[ends[ends <= len(sample)] - 1], keys.min())
    return lowest


def keys_of(worth: Floats | Float32s, later: Flags | None = None) -> Ints:
    """Return the key of each worth, in single precision; a higher worth never has a lower key.

    >>> keys = keys_of(np.array([-2.0, -1.0, 0.0, 1.0, 1.0, 1.04])).tolist()
    >>> keys == sorted(keys), keys[-3] == keys[-2] < keys[-1]
    (True, True)
    """
    finite = np.clip(worth, -_LARGEST, _LARGEST).astype(np.float32)
    bits = (finite + np.float32(0)).view(np.int32)  # which turns -0 into 0
    keys: Ints = np.where(bits >= 0, bits, bits ^ _LAST_BIT).astype(np.int64)  # negative numbers sort backwards
    return keys if later is None else keys - _LATER * later


@dataclass(frozen=True, slots=True, eq=False)
class RankedPages:
    """The pages that a shard could visit in a round."""

    pages: Pages
    """Best first, unless `order` is given."""
    worth: Floats | Float32s
    """One per page, comparable between shards; the best come first."""
    reason: str
    score: Floats | None = None
    """One per page, for the picks; the worth by default."""
    later: Flags | None = None
    """One per page: whether it waits until all other pages of all shards within the reach are taken."""
    reach: int = 0
    """The number of pages of all shards within which pages wait; a shard offers up to as many."""
    order: Callable[[int], Ints] | None = None
    """Returns the positions of the best pages, so many, best first: for pages that are not in order."""

    @classmethod
    def none(cls, reason: str) -> RankedPages:
        """No page."""
        return cls(np.zeros(0, np.int64), np.zeros(0), reason)

    def offer(self) -> Offer:
        """Return what all shards are told of these pages."""
        return Offer(self.worth, self.later, self.reach)

    def take_at(self, threshold: int, quota: int) -> Picks:
        """Return the best pages, at most `quota`, none below the threshold."""
        if threshold == LOWEST or self.later is None:
            best = np.arange(len(self.pages))[:quota] if self.order is None else self.order(quota)
            best = best[keys_of(self.worth[best]) >= threshold] if threshold > LOWEST else best
        else:
            keys = _demoted(keys_of(self.worth, self.later), _reached(threshold))
            best = np.flatnonzero(keys >= threshold)[:quota]
        score = self.worth if self.score is None else self.score
        return Picks(self.pages[best], score[best].astype(np.float64), self.reason)

    def without(self, taken: Pages) -> RankedPages:
        """Return the other pages, best first.

        >>> RankedPages(np.array([7, 8, 9]), np.array([3.0, 2.0, 1.0]), "worth").without(np.array([8])).pages.tolist()
        [7, 9]
        """
        best = np.arange(len(self.pages)) if self.order is None else self.order(len(self.pages))
        best = best[~np.isin(self.pages[best], taken)]
        score = None if self.score is None else self.score[best]
        later = None if self.later is None else self.later[best]
        return RankedPages(self.pages[best], self.worth[best], self.reason, score, later)


def settle(offers: Sequence[Offer], count: int) -> list[Cut]:
    """Return the threshold at which `count` pages are taken from all shards, and each shard's quota.

    The quotas add up to `count`, or to all pages that were offered if there are fewer.

    >>> settle([Offer(np.array([8.0, 4.0, 1.0, 1.0])), Offer(np.array([2.0, 1.0, 1.0, 1.0, 1.0]))], 6)
    [Cut(threshold=1065353216, quota=3), Cut(threshold=1065353216, quota=3)]
    """
    if len(offers) == 1:  # it takes its best pages; no histogram is needed
        return [Cut(LOWEST, max(0, min(count, len(offers[0]))))]
    bins, counts = (np.concatenate(column) for column in zip(*(offer.histogram for offer in offers), strict=True))
    if not len(bins) or count <= 0:
        return [Cut(0, 0)] * len(offers)
    shard = np.repeat(np.arange(len(offers)), [len(offer.histogram.bins) for offer in offers])
    within = max(offer.reach for offer in offers) or int(counts.sum())
    reach = _bin_at(_without_waiting(bins), counts, within)
    bins = _demoted(bins, reach)
    last = _bin_at(bins, counts, count)
    above, at = (np.bincount(shard[some], counts[some], len(offers)) for some in (bins > last, bins == last))
    quotas = above.astype(np.int64) + _divided(at.astype(np.int64), count - int(above.sum()))
    threshold = last if last > _WAITING else reach - _LATER
    return [Cut(threshold, quota) for quota in quotas.tolist()]


def _bin_at(bins: Ints, counts: Ints, rank: int) -> int:
    """Return the bin of the page at a rank, from 1; the lowest bin if there are fewer pages."""
    best = np.argsort(-bins, kind="stable")
    return int(bins[best[min(int(np.searchsorted(np.cumsum(counts[best]), rank)), len(best) - 1)]])


def _without_waiting(keys: Ints) -> Ints:
    """Return the keys that pages would have if none came later."""
    return np.where(keys > _WAITING, keys, keys + _LATER)


def _demoted(keys: Ints, reach: int) -> Ints:
    """Return the keys with those beyond the reach below all others."""
    return np.where(_without_waiting(keys) >= reach, keys, keys - 2 * _LATER)


def _reached(threshold: int) -> int:
    """Return the key at the end of the reach, as far as a threshold tells: below it nothing is taken."""
    return threshold if threshold > _WAITING or threshold == LOWEST else threshold + _LATER


def _divided(counts: Ints, visits: int) -> Ints:
    """Divide visits in proportion to counts; the largest remainders get the rest, the first shard of equal ones.

    >>> _divided(np.array([3, 3, 1]), 5).tolist(), _divided(np.array([2, 1]), 9).tolist()
    ([2, 2, 1], [2, 1])
    """
    total = int(counts.sum())
    if visits >= total:
        return counts
    parts: Ints = counts * visits // total
    rest = np.argsort(parts * total - counts * visits, kind="stable")[: visits - int(parts.sum())]
    parts[rest] += 1
    return parts


# --------------------------------------------------------------------------------------------------------------------
# The side of a cycle that belongs to no shard: what is left of the budget, and who may take how much of it.
#
# No round waits for all shards. A shard is late while its visits of an earlier round are under way, since one slow
# server must not hold up the others. Its last offer then counts without the pages that it was promised since, and what
# the round gives it is kept until it offers again: it takes its pages then, down to the lowest threshold that it has
# missed. Visits that a shard cannot use go back to the budget.
#
# The coordinator does no I/O and reads no clock: from the same offers in the same order follow the same answers.


_NOTHING = Offer(np.zeros(0))


@dataclass(slots=True)
class _ShardAccount:
    """What the coordinator knows of a shard."""

    stage: str = ""
    """The stage of its last offer; a shard that has missed a stage gets nothing of it."""
    offer: Offer = _NOTHING
    owed: int = 0
    """Visits of rounds that it has missed."""
    lowest: int = 0
    """The lowest threshold of those rounds."""


class Coordinator:
    """The budget of one cycle, divided among shards round by round."""

    def __init__(self, shards: int, budget: int) -> None:
        self.left = budget
        """Visits that no shard was given yet."""
        self._accounts = [_ShardAccount() for _ in range(shards)]

    def settle(self, stage: str, visits: int, offers: Mapping[int, Offer]) -> dict[int, Cut]:
        """Divide the visits of a round; return the cuts of the shards that have offered, by shard.

        >>> half, more = Offer(np.array([0.5, 0.5])), Offer(np.array([0.9, 0.8, 0.7]))
        >>> coordinator = Coordinator(2, 10)
        >>> [cut.quota for cut in coordinator.settle("a", 2, {0: half, 1: more}).values()]
        [0, 2]
        >>> coordinator.settle("a", 2, {0: half})[0].quota, coordinator.left  # shard 1 is late, and is kept one visit
        (1, 6)
        >>> coordinator.settle("a", 1, {0: _NOTHING, 1: more})[1].quota
        2
        """
        for shard, offer in offers.items():
            self._accounts[shard].stage, self._accounts[shard].offer = stage, offer
        offered = [account.offer if account.stage == stage else _NOTHING for account in self._accounts]
        cuts: dict[int, Cut] = {}
        for shard, cut in enumerate(settle(offered, min(visits, self.left))):
            account = self._accounts[shard]
            self.left -= cut.quota
            if len(self._accounts) > 1:
                account.offer = account.offer.without_best(cut)
            if shard in offers:
                lowest = min(cut.threshold, account.lowest) if account.owed else cut.threshold
                cuts[shard] = Cut(lowest, cut.quota + account.owed)
                account.owed = 0
            elif cut.quota:
                account.lowest = min(cut.threshold, account.lowest) if account.owed else cut.threshold
                account.owed += cut.quota
        return cuts

    def owed(self) -> dict[int, int]:
        """Return the visits that are kept for late shards, by shard."""
        return {shard: account.owed for shard, account in enumerate(self._accounts) if account.owed}

    def copy(self) -> Coordinator:
        """Return a coordinator that knows the same and goes on by itself."""
        same = Coordinator(0, self.left)
        same._accounts = [replace(account) for account in self._accounts]
        return same

    def give_back(self, visits: int) -> None:
        """Take back visits that a shard could not use."""
        self.left += visits
