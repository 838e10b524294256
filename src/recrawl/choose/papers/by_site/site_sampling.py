"""What the policies that sample the pages of whole sites share (spec P3 to P7).

A `Deck` holds the pages of every site in random order: the next pages from the top are a random sample of the site, and
taking the rest downloads it whole, so no page comes twice. `evidence` counts the changes that visits found per site.
`quotas` and `fill_in_order` divide the remaining downloads proportionally (P3) and greedily (P4). They are plain
functions of numbers, so that the lab can check them against Al-Qaaideh's worked example.

A *group* is a site, a directory with `level=directory`, or a cluster of similar pages with `level=cluster` (Q §1.3.4).
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.columns import Floats, Int32s, Ints
from recrawl.errors import UsageError
from recrawl.model import Outcomes, Pages

Level = Literal["site", "directory", "cluster"]
LEVELS: tuple[Level, ...] = get_args(Level)


def check_level(level: str, policy: str) -> Level:
    """Return the level, or raise an error if it is invalid."""
    for known in LEVELS:
        if level == known:
            return known
    raise UsageError(f"{policy}'s level must be {', '.join(LEVELS[:-1])} or {LEVELS[-1]}, not '{level}'")


def level_needs(level: Level) -> frozenset[str]:
    """Return the parts of the book that a level needs."""
    return frozenset({"clusters"} if level == "cluster" else ())


def check_whole(value: float, what: str, most: float = float("inf")) -> int:
    """Return the value if it is a whole number from 1 to `most`, or raise an error."""
    if isinstance(value, int) and 1 <= value <= most:
        return value
    limit = "above 0" if most == float("inf") else f"from 1 to {most}"
    raise UsageError(f"{what} must be a whole number {limit}, not {value}")


class Deck:
    """The pages that may be visited, by group, each group shuffled; groups are numbered from 0 here.

    >>> book = Book.blank(5)
    >>> book.site[:] = [8, 3, 8, 3, 8]
    >>> deck = Deck(book, "site", np.random.default_rng(1))
    >>> deck.size.tolist()
    [2, 3]
    >>> pages = deck.deal(np.array([2, 1]))
    >>> book.site[pages].tolist(), deck.left.tolist()
    ([3, 3, 8], [0, 2])
    """

    def __init__(self, book: Book, level: Level, rng: np.random.Generator) -> None:
        self.level = level
        self._label = labels(book, level)
        pages = rng.permutation(np.flatnonzero(book.known))
        label = self._label[pages]
        # numpy sorts 16-bit numbers in linear time, and few books have more sites.
        fits = len(label) and label.min() >= 0 and label.max() < 2**16
        self._pages = pages[np.argsort(label.astype(np.uint16) if fits else label, kind="stable")]
        label = self._label[self._pages]
        first = np.flatnonzero(np.diff(label, prepend=label[:1] - 1))
        self.names: NDArray[np.integer[Any]] = label[first]
        """One per group, ascending: its number in the book."""
        self.size: Ints = np.diff(np.append(first, len(label)))
        """One per group: its number of pages."""
        self.left: Ints = self.size.copy()
        """One per group: the number of pages not dealt yet."""
        self._end = first + self.size

    def deal(self, counts: Ints, order: Ints | None = None) -> Pages:
        """Take the next `counts` pages of each group, group by group in the given order."""
        groups = np.arange(len(self)) if order is None else order
        take = np.minimum(counts, self.left)[groups]
        start = (self._end - self.left)[groups]
        inside = np.arange(take.sum()) - np.repeat(np.cumsum(take) - take, take)
        self.left[groups] -= take
        pages: Pages = self._pages[np.repeat(start, take) + inside]
        return pages

    def group_of(self, pages: Pages) -> Ints:
        """Return the groups of pages."""
        return np.asarray(np.searchsorted(self.names, self._label[pages]), np.int64)

    def __len__(self) -> int:
        return len(self.names)


def labels(book: Book, level: Level) -> NDArray[np.integer[Any]]:
    """Return each page's site, directory or cluster number; -1 for a page in no cluster: these are one group."""
    if level == "cluster":
        of: Int32s = np.full(len(book), -1, np.int32)
        if book.clusters is not None:
            of[: len(book.clusters.of)] = book.clusters.of
        return of
    return book.site if level == "site" else book.folder


def evidence(deck: Deck, seen: Outcomes, value: Floats | None = None) -> tuple[Floats, Ints]:
    """Return, per group, the changes found and the number of answered visits; failures count in neither.

    `value` is what each outcome counts as; by default a change counts as 1 and no change as 0.
    """
    answered = seen.answered
    group = deck.group_of(seen.pages[answered])
    values = seen.changed.astype(np.float64) if value is None else value
    found = np.bincount(group, weights=values[answered], minlength=len(deck))
    return found.astype(np.float64), np.bincount(group, minlength=len(deck)).astype(np.int64)


def draw(pages: Ints, each: int, most: int, rng: np.random.Generator) -> Ints:
    """Return sample sizes: up to `each` pages of every group, at most `most` in all; `pages` is the groups' sizes.

    If `most` is too small, all groups get an even share. If it is smaller than the number of groups, pages are drawn
    from all pages, so that large groups are sampled with a higher probability.
    """
    room = np.minimum(pages, each)
    if np.count_nonzero(room) <= most:
        return apportion(most, np.ones(len(room)), room, rng.permutation(len(room)))
    drawn = rng.multivariate_hypergeometric(pages, max(0, most), method="marginals")
    return np.minimum(drawn, room)


def sampled_rates(deck: Deck, changed: Floats, answered: Ints) -> Floats:
    """Return the rate of every group from its sample; a group without a sample has the rate of all groups together."""
    overall = float(changed.sum()) / max(1, int(answered.sum()))
    return np.where(deck.left == deck.size, overall, share_changed(changed, answered))


def share_changed(changed: Floats | Ints, sampled: Ints) -> Floats:
    """Return changes per visit, 0 without visits."""
    return np.asarray(changed / np.maximum(sampled, 1), np.float64)


def order_by_rate(rate: Floats, rng: np.random.Generator) -> Ints:
    """Return the groups by rate, highest first; ties, which are common with small samples, are broken at random."""
    return np.lexsort((rng.random(len(rate)), -rate))


def fill_in_order(order: Ints, downloads: int, room: Ints) -> Ints:
    """Return downloads per group when each group is downloaded whole before the next begins.

    >>> fill_in_order(np.array([1, 0, 2]), 12, room=np.array([10, 5, 10])).tolist()
    [7, 5, 0]
    """
    before = np.cumsum(room[order]) - room[order]
    taken = np.zeros(len(room), np.int64)
    taken[order] = np.clip(downloads - before, 0, room[order])
    return taken


def quotas(changed: Ints | Floats, sampled: Ints, downloads: int, room: Ints | None = None) -> Ints:
    """Return downloads per site in proportion to the share of its sample that changed.

    Q_w = D·(c_w/z_w) / Σ(c/z), in whole numbers by the method of largest remainders, which spends D exactly. A site
    gets at most its number of pages (`room`); the excess goes to the others in the same proportion, and to sites whose
    sample showed no change only when all others are full.

    >>> quotas(np.array([7, 4]), np.array([10, 10]), 80).tolist()
    [51, 29]
    """
    rate = share_changed(changed, sampled)
    space = np.full(len(rate), downloads, np.int64) if room is None else room
    given = apportion(downloads, rate, space)
    return given + apportion(downloads - int(given.sum()), (rate == 0).astype(np.float64), space)


def expected_finds(downloads: Ints, changed: Ints | Floats, sampled: Ints) -> Ints:
    """Return the expected number of changed pages among the downloads if each site changes as its sample did, rounded.

    >>> expected_finds(np.array([51, 29]), np.array([7, 4]), np.array([10, 10])).tolist()
    [36, 12]
    """
    return np.floor(downloads * share_changed(changed, sampled) + 0.5).astype(np.int64)


def apportion(total: int, weight: Floats | Ints, room: Ints, tie: Ints | None = None) -> Ints:
    """Divide a total into whole numbers in proportion to weights, each at most its `room`.

    Full groups are set aside and the others divide the rest, until none overflows. Fractions are rounded by largest
    remainders (Hamilton's method); of equal remainders the group with the lowest `tie` comes first.

    >>> apportion(10, np.array([1, 1, 2]), np.array([9, 1, 9])).tolist()
    [3, 1, 6]
    """
    given = np.zeros(len(room), np.int64)
    groups = np.flatnonzero((weight > 0) & (room > 0))
    total = min(total, int(room[groups].sum()))
    if total <= 0:
        return given
    exact = _exact_shares(total, weight[groups] / weight[groups].max(), room[groups].astype(np.float64))
    whole = np.floor(exact + 1e-9).astype(np.int64)
    remainder = np.where(whole < room[groups], np.round(exact - whole, 9), -1.0)
    first = groups if tie is None else tie[groups]
    whole[np.lexsort((first, -remainder))[: total - int(whole.sum())]] += 1
    given[groups] = whole
    return given


def _exact_shares(total: int, weight: Floats, room: Floats) -> Floats:
    """Return min(room, level · weight), with the level at which the shares add up to the total."""
    by = np.argsort(room / weight, kind="stable")  # the groups that fill up first come first
    full_before = np.cumsum(room[by]) - room[by]
    weight_left = np.cumsum(weight[by][::-1])[::-1]
    level = (total - full_before) / weight_left
    open_ = np.flatnonzero(level * weight[by] < room[by])
    return np.minimum(room, level[open_[0]] * weight) if len(open_) else room


def site_rates(book: Book, level: Level = "site") -> tuple[NDArray[np.integer[Any]], Floats]:
    """Return the groups and the share of visits to each that found a change; nan without a comparison.

    The first download of a page is no comparison, so it is left out of visits and changes.

    >>> book = Book.blank(3)
    >>> book.site[:], book.visits[:], book.changes[:] = [0, 0, 4], [5, 1, 1], [3, 1, 1]
    >>> [column.tolist() for column in site_rates(book)]
    [[0, 4], [0.5, nan]]
    """
    names, group = np.unique(labels(book, level), return_inverse=True)
    compared = np.maximum(book.visits - 1, 0)
    visits = np.bincount(group, weights=compared, minlength=len(names))
    changes = np.bincount(group, weights=np.clip(book.changes - 1, 0, compared), minlength=len(names))
    return names, np.where(visits > 0, changes / np.maximum(visits, 1), np.nan)
