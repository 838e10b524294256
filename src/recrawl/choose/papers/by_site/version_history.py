"""A page's change rate over its last versions (Q §3.3.2), for `frequency-greedy` and `frequency-adaptive`.

Each version is compared with the previous one when it arrives, and only the result is stored: one bit per visit, in one
number per page. So only the newest version of a page is needed (Q §3.3.2.3: 2P/T instead of V·P/T), and C = D/V counts
D changes in the last V comparisons.

Q §3.3.2.1 asks for a V that adapts: few versions where the change rate varies (Q fig. 4.1), many where it is steady.
`steady_versions` looks, for each group of pages, for the time at which its change rate most likely shifted, and takes
the versions since then; all of them where no shift explains the history better (Bayesian information criterion,
Schwarz 1978).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.columns import Floats, Ints
from recrawl.errors import UsageError
from recrawl.model import Outcomes

MAX_VERSIONS = 60
"""Comparisons that fit into one number."""
_LEAST = 5
"""The fewest versions that `steady_versions` takes: on one or two days a burst of changes looks like a shift."""


@dataclass(frozen=True, slots=True)
class ComparisonHistory:
    """The comparisons of all pages that a policy has stored."""

    flags: Ints
    """Per page: its last comparisons as bits, 1 for a change, the newest lowest."""
    compared: Ints
    """Per page: how many there are."""

    def rates(self, versions: int | Ints) -> Floats:
        """Return C of every page over its last `versions` comparisons; 1 for a page without any: it is new.

        >>> ComparisonHistory(np.array([0b01101, 0]), np.array([5, 0])).rates(3).round(3).tolist()
        [0.667, 1.0]
        """
        counted = np.minimum(self.compared, versions)
        return np.where(counted > 0, _ones(self.flags, versions) / np.maximum(counted, 1), 1.0)


def check_versions(versions: str | int, policy: str) -> str:
    """Return the parameter `versions` as text, or raise an error unless it is `auto` or a number from 1 to 60."""
    text = str(versions)
    if text == "auto" or (text.isdecimal() and 1 <= int(text) <= MAX_VERSIONS):
        return text
    raise UsageError(f"{policy}'s versions must be auto or a whole number from 1 to {MAX_VERSIONS}, not '{text}'")


def versions_of(book: Book, policy: str, versions: str, group: NDArray[np.integer]) -> int | Ints:
    """Return V: the number given, or with `auto` one per page from the history of its group."""
    return int(versions) if versions != "auto" else steady_versions(stored(book, policy), group)


def stored(book: Book, policy: str) -> ComparisonHistory:
    """Return the comparisons that a policy has stored."""
    return ComparisonHistory(book.kept(f"{policy}.flags", 0, np.int64), book.kept(f"{policy}.compared", 0, np.int64))


def page_rates(book: Book, policy: str, versions: int | Ints, seen: Outcomes) -> Floats:
    """Return C of each visited page, this visit included; 0 for a visit that failed.

    A page with fewer than `versions` comparisons uses those it has; a first download counts as a change.
    """
    own = versions if isinstance(versions, int) else versions[seen.pages]
    rates = _with_visits(stored(book, policy), seen).rates(own)
    return np.where(seen.answered, rates, 0.0)


def store_comparisons(book: Book, policy: str, versions: str, seen: Outcomes) -> None:
    """Store the comparisons of a cycle in the book's memory; a first download is no comparison."""
    most = MAX_VERSIONS if versions == "auto" else int(versions)
    past, now = stored(book, policy), _with_visits(stored(book, policy), seen)
    kept = seen.answered & (book.visits[seen.pages] > 0)
    pages = seen.pages[kept]
    past.flags[pages] = now.flags[kept] & ((1 << most) - 1)
    past.compared[pages] = np.minimum(now.compared[kept], most)
    book.memory[f"{policy}.flags"], book.memory[f"{policy}.compared"] = past.flags, past.compared


def steady_versions(history: ComparisonHistory, group: NDArray[np.integer]) -> Ints:
    """Return V of every page: the versions since the last shift of its group's change rate, all if there was none.

    >>> steady_versions(ComparisonHistory(np.full(4, 0b0101010101), np.full(4, 10)), np.zeros(4, int)).tolist()
    [60, 60, 60, 60]
    >>> lately = ComparisonHistory(np.full(4, 0b11111), np.full(4, 40))  # 5 changes, the last ones of 40
    >>> steady_versions(lately, np.zeros(4, int)).tolist()
    [5, 5, 5, 5]
    """
    _, number = np.unique(group, return_inverse=True)
    counted, changed = _by_age(history, number)
    if not len(counted):
        return np.full(len(number), MAX_VERSIONS)
    share = _independent_share(counted, changed)
    since, found = np.cumsum(counted * share, axis=0), np.cumsum(changed * share, axis=0)
    total, all_found = since[-1], found[-1]
    two_rates = _log_likelihood(found, since) + _log_likelihood(all_found - found, total - since)
    gain = (two_rates - _log_likelihood(all_found, total))[:-1]
    gain[: _LEAST - 1] = 0.0
    # A shift adds two parameters: a second rate, and the time.
    shifted = gain.max(axis=0, initial=0.0) > np.log(np.maximum(total, 2.0))
    versions = gain.argmax(axis=0) + 1 if len(gain) else np.full(len(total), MAX_VERSIONS)
    return np.where(shifted, versions, MAX_VERSIONS)[number]


def _log_likelihood(changes: Floats, counted: Floats) -> Floats:
    """Return the log-likelihood of so many changes among the comparisons, at their own rate."""
    rate = np.clip(changes / np.maximum(counted, 1e-9), 1e-12, 1 - 1e-12)
    return changes * np.log(rate) + (counted - changes) * np.log1p(-rate)


def _by_age(history: ComparisonHistory, number: Ints) -> tuple[Floats, Floats]:
    """Return comparisons and changes, age (0 for the newest comparison) by group."""
    groups = int(number.max(initial=-1)) + 1
    ages = np.arange(int(history.compared.max(initial=0)))
    counted = [np.bincount(number, history.compared > age, groups) for age in ages]
    changed = [np.bincount(number, history.flags >> age & 1, groups) for age in ages]
    shape = len(ages), groups
    return np.array(counted, np.float64).reshape(shape), np.array(changed, np.float64).reshape(shape)


def _independent_share(counted: Floats, changed: Floats) -> Floats:
    """Return, per group, how many independent comparisons one comparison is worth, at most 1.

    Pages that change together tell less than as many independent ones: the group's rate differs from visit to visit by
    more than chance. The variance is that of successive differences, which a single shift of the rate hardly raises.
    """
    rate = changed / np.maximum(counted, 1)
    pairs = (counted[1:] > 0).sum(axis=0)
    jumps = np.where(counted[1:] > 0, np.diff(rate, axis=0) ** 2, 0.0).sum(axis=0) / 2 / np.maximum(pairs, 1)
    total = np.maximum(counted.sum(axis=0), 1)
    mean = changed.sum(axis=0) / total
    pages = total / np.maximum((counted > 0).sum(axis=0), 1)
    expected = mean * (1 - mean) / pages
    share: Floats = np.clip(expected / np.maximum(jumps, 1e-12), 1 / np.maximum(pages, 1), 1.0)
    return share


def _ones(flags: Ints, versions: int | Ints) -> Ints:
    """Return the number of changes among the last `versions` comparisons."""
    ones: Ints = np.bitwise_count(flags & ((np.int64(1) << versions) - 1)).astype(np.int64)
    return ones


def _with_visits(history: ComparisonHistory, seen: Outcomes) -> ComparisonHistory:
    """Return the histories of the visited pages, with these visits."""
    flags = ((history.flags[seen.pages] << 1) | seen.changed) & ((1 << MAX_VERSIONS) - 1)
    return ComparisonHistory(flags, np.minimum(history.compared[seen.pages] + 1, MAX_VERSIONS))
