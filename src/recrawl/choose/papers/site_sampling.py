"""What the policies that judge a whole site by a sample of its pages share (spec P3 to P7). No policy itself.

A `Deck` holds the pages of every site in an order drawn by chance; the next pages of a site, taken from the top, are a
random sample of it, and taking all that is left downloads it whole. So no page comes twice, and nothing is drawn page
by page. `evidence` counts per site what visits said. `quotas` and `in_order` divide the downloads that are left:
proportionally (P3) and greedily (P4). They are plain functions of numbers, so that the lab can check them against the
example that Al-Qaaideh works out.

A *group* is a site, or a directory where a policy is told so (`level=directory`).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.errors import UsageError
from recrawl.model import Outcomes, Pages

Level = Literal["site", "directory"]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def check_level(level: str, policy: str) -> Level:
    """The level, or a sentence about what it may be."""
    if level == "site":
        return "site"
    if level == "directory":
        return "directory"
    raise UsageError(f"{policy}'s level is site or directory, not '{level}'")


def check_whole(value: float, what: str, most: float = float("inf")) -> int:
    """The number, if it is a whole one over 0; else a sentence."""
    if isinstance(value, int) and 1 <= value <= most:
        return value
    limit = "over 0" if most == float("inf") else f"from 1 to {most}"
    raise UsageError(f"{what} must be a whole number {limit}, not {value}")


class Deck:
    """The pages that may be visited, by group, each group shuffled. Groups are numbered 0, 1, ... in here.

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
        self._label = labels(book, level)
        pages = rng.permutation(np.flatnonzero(book.known))
        label = self._label[pages]
        # numpy sorts numbers of 16 bits in linear time, and there are seldom more sites than that.
        few = len(label) and label.min() >= 0 and label.max() < 2**16
        self._pages = pages[np.argsort(label.astype(np.uint16) if few else label, kind="stable")]
        label = self._label[self._pages]
        first = np.flatnonzero(np.diff(label, prepend=label[:1] - 1))
        self.names: NDArray[np.integer[Any]] = label[first]
        """One per group, ascending: its number in the book."""
        self.size: Counts = np.diff(np.append(first, len(label)))
        """One per group: its pages."""
        self.left: Counts = self.size.copy()
        """One per group: the pages not dealt yet."""
        self._end = first + self.size

    def deal(self, counts: Counts, order: Counts | None = None) -> Pages:
        """The next `counts` pages of each group, group after group in the order given."""
        groups = np.arange(len(self)) if order is None else order
        take = np.minimum(counts, self.left)[groups]
        start = (self._end - self.left)[groups]
        inside = np.arange(take.sum()) - np.repeat(np.cumsum(take) - take, take)
        self.left[groups] -= take
        pages: Pages = self._pages[np.repeat(start, take) + inside]
        return pages

    def group_of(self, pages: Pages) -> Counts:
        """The groups of pages that were dealt."""
        return np.asarray(np.searchsorted(self.names, self._label[pages]), np.int64)

    def __len__(self) -> int:
        """How many groups there are."""
        return len(self.names)


def labels(book: Book, level: Level) -> NDArray[np.integer[Any]]:
    """One number per page: its site, or its directory."""
    return book.site if level == "site" else book.folder


def evidence(deck: Deck, seen: Outcomes, worth: Floats | None = None) -> tuple[Floats, Counts]:
    """Per group: changes found, and visits that said something. Failures count in neither.

    `worth` is what each outcome counts as; without it a change counts as one and no change as nothing.
    """
    said = seen.answered
    group = deck.group_of(seen.pages[said])
    value = seen.changed.astype(np.float64) if worth is None else worth
    found = np.bincount(group, weights=value[said], minlength=len(deck))
    return found.astype(np.float64), np.bincount(group, minlength=len(deck)).astype(np.int64)


def draw(pages: Counts, each: int, most: int, rng: np.random.Generator) -> Counts:
    """A sample of up to `each` pages of every group, at most `most` in all; `pages` is how many each group has.

    When that is too few for as many groups, all get an even part of it. When it is too few for one page of each, pages
    are drawn among all pages alike, so that large groups are looked at more likely than small ones.
    """
    room = np.minimum(pages, each)
    if np.count_nonzero(room) <= most:
        return evenly(most, room, rng)
    drawn = rng.multivariate_hypergeometric(pages, max(0, most), method="marginals")
    return np.minimum(drawn, room)


def judged(deck: Deck, changed: Floats, answered: Counts) -> Floats:
    """The rate of every group by its sample. A group none of whose pages was dealt is taken to be as all together."""
    together = float(changed.sum()) / max(1, int(answered.sum()))
    return np.where(deck.left == deck.size, together, share_changed(changed, answered))


def share_changed(changed: Floats | Counts, sampled: Counts) -> Floats:
    """Changes per visit; nothing where no visit said anything."""
    return np.asarray(changed / np.maximum(sampled, 1), np.float64)


def best_first(rate: Floats, rng: np.random.Generator) -> Counts:
    """Groups by rate, the highest first. Equal rates are common with small samples: chance decides among them."""
    return np.lexsort((rng.random(len(rate)), -rate))


def in_order(order: Counts, downloads: int, room: Counts) -> Counts:
    """Downloads per group when each is downloaded whole before the next begins (spec P4).

    >>> in_order(np.array([1, 0, 2]), 12, room=np.array([10, 5, 10])).tolist()
    [7, 5, 0]
    """
    before = np.cumsum(room[order]) - room[order]
    taken = np.zeros(len(room), np.int64)
    taken[order] = np.clip(downloads - before, 0, room[order])
    return taken


def quotas(changed: Counts | Floats, sampled: Counts, downloads: int, room: Counts | None = None) -> Counts:
    """Downloads per site in proportion to the share of its sample that changed (spec P3).

    Q_w = D·(c_w/z_w) / Σ(c/z), in whole numbers by the method of largest remainders, which spends D exactly. A site
    gets no more than it has pages (`room`); what it cannot use goes to the others in the same proportion, and to
    sites whose sample showed no change only when all others are full.

    >>> quotas(np.array([7, 4]), np.array([10, 10]), 80).tolist()
    [51, 29]
    """
    rate = share_changed(changed, sampled)
    space = np.full(len(rate), downloads, np.int64) if room is None else room
    given = apportion(downloads, rate, space)
    return given + apportion(downloads - int(given.sum()), (rate == 0).astype(np.float64), space)


def expected_finds(downloads: Counts, changed: Counts | Floats, sampled: Counts) -> Counts:
    """Changed pages that so many downloads would bring if each site were as its sample; to the nearest whole page.

    >>> expected_finds(np.array([51, 29]), np.array([7, 4]), np.array([10, 10])).tolist()
    [36, 12]
    """
    return np.floor(downloads * share_changed(changed, sampled) + 0.5).astype(np.int64)


def evenly(total: int, room: Counts, rng: np.random.Generator) -> Counts:
    """The same for every group as far as there is room; what does not divide falls to some by chance."""
    return apportion(total, np.ones(len(room)), room, rng.permutation(len(room)))


def apportion(total: int, weight: Floats | Counts, room: Counts, turn: Counts | None = None) -> Counts:
    """Whole numbers in proportion to weights, none over its room, that add up to the total if there is room.

    Groups that are full are set aside and the rest divide what is left, until none overflows. Fractions are settled
    by largest remainders (Hamilton's method); `turn` says who comes first among equal ones.

    >>> apportion(10, np.array([1, 1, 2]), np.array([9, 1, 9])).tolist()
    [3, 1, 6]
    """
    given = np.zeros(len(room), np.int64)
    who = np.flatnonzero((weight > 0) & (room > 0))
    total = min(total, int(room[who].sum()))
    if total <= 0:
        return given
    exact = _filled(total, weight[who] / weight[who].max(), room[who].astype(np.float64))
    whole = np.floor(exact + 1e-9).astype(np.int64)
    rest = np.where(whole < room[who], np.round(exact - whole, 9), -1.0)
    first = who if turn is None else turn[who]
    whole[np.lexsort((first, -rest))[: total - int(whole.sum())]] += 1
    given[who] = whole
    return given


def _filled(total: int, weight: Floats, room: Floats) -> Floats:
    """The exact shares: min(room, level · weight), with the level at which they add up to the total."""
    by = np.argsort(room / weight, kind="stable")  # the first to be full come first
    full_before = np.cumsum(room[by]) - room[by]
    weight_left = np.cumsum(weight[by][::-1])[::-1]
    level = (total - full_before) / weight_left
    open_ = np.flatnonzero(level * weight[by] < room[by])
    return np.minimum(room, level[open_[0]] * weight) if len(open_) else room


def site_rates(book: Book, level: Level = "site") -> tuple[NDArray[np.integer[Any]], Floats]:
    """Groups by number, and the share of all visits to each that found a change; nan where no visit could tell.

    The first download of a page says nothing about change, so it is left out of visits and changes.

    >>> book = Book.blank(3)
    >>> book.site[:], book.visits[:], book.changes[:] = [0, 0, 4], [5, 1, 1], [3, 1, 1]
    >>> [column.tolist() for column in site_rates(book)]
    [[0, 4], [0.5, nan]]
    """
    names, group = np.unique(labels(book, level), return_inverse=True)
    told = np.maximum(book.visits - 1, 0)
    visits = np.bincount(group, weights=told, minlength=len(names))
    changes = np.bincount(group, weights=np.clip(book.changes - 1, 0, told), minlength=len(names))
    return names, np.where(visits > 0, changes / np.maximum(visits, 1), np.nan)
