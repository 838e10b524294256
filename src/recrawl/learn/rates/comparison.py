"""The estimators of change rates by name, side by side: all take the same visits, and all are finite.

A page without a visit that could be compared has no rate (nan); every other rate is finite and not negative, also where
all visits found a change or none did. `gamma` is the one that pages of a site share knowledge in (see `posteriors`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from recrawl.learn.rates.censored import balanced
from recrawl.learn.rates.estimators import averaged, bias_reduced, irregular, last_modified, moment, naive
from recrawl.learn.rates.gaps import Floats, Gaps
from recrawl.learn.rates.posteriors import nested

SMOOTH = 0.5
"""Days of the two visits that the likelihood is smoothed with, one that found a change and one that did not."""


def _naive(gaps: Gaps) -> Floats:
    return naive(gaps.changes, gaps.watched)


def _regular(gaps: Gaps) -> Floats:
    return bias_reduced(gaps.changes, gaps.visits, gaps.watched / gaps.visits)


def _averaged(gaps: Gaps) -> Floats:
    return averaged(gaps.changes, gaps.visits, gaps.watched / gaps.visits)


def _irregular(gaps: Gaps) -> Floats:
    rate = irregular(gaps.page, gaps.gap, gaps.changed, gaps.pages, smooth=SMOOTH, times=gaps.times)
    return np.where(gaps.visits > 0, rate, np.nan)


def _moment(gaps: Gaps) -> Floats:
    visits = gaps.visits
    return moment(gaps.page, gaps.gap, gaps.changes * visits / (visits + 0.5), gaps.times)


def _modified(gaps: Gaps) -> Floats:
    """Where the time of each change is known, Cho's; where only of some, the likeliest rate, smoothed."""
    told = gaps.changed & ~np.isnan(gaps.quiet)
    open_ = gaps.changed & ~told
    days = gaps.sums(gaps.times * np.where(told, gaps.quiet, gaps.gap * ~open_))
    known, all_pages = gaps.sums(gaps.times * told), np.arange(gaps.pages)
    rate, _ = balanced(
        np.concatenate((gaps.page[open_], all_pages)),
        np.concatenate((gaps.gap[open_], np.full(gaps.pages, SMOOTH))),
        np.concatenate((gaps.times[open_], np.ones(gaps.pages))),
        known,
        days + SMOOTH,
    )
    whole = (gaps.sums(gaps.times * open_) == 0) & (gaps.visits > 0)
    return np.where(whole, last_modified(gaps.changes, gaps.visits, days), np.where(gaps.visits > 0, rate, np.nan))


ESTIMATORS: dict[str, tuple[Callable[[Gaps], Floats], str]] = {
    "naive": (_naive, "changed visits over time; too low for pages that change faster than they are visited"),
    "regular": (_regular, "Cho and Garcia-Molina's bias-reduced estimator, as if visits were evenly spaced"),
    "irregular": (_irregular, "the likeliest rate for visits at any intervals, smoothed by two half-day visits"),
    "moment": (_moment, "the rate that expects as many changed visits as were seen (Upadhyay)"),
    "averaged": (_averaged, "a count for visits at random intervals (Avrachenkov); too high at even ones"),
    "modified": (_modified, "the times of changes that a trusted server tells (Cho and Garcia-Molina)"),
    "gamma": (lambda gaps: nested(gaps).rate, "a Gamma posterior, nested: all pages, site, directory, page"),
}
"""Name to function and a line about it."""


def estimate(name: str, gaps: Gaps, levels: Sequence[NDArray[np.integer]] = ()) -> Floats:
    """The rates of all pages by one estimator, in changes a day; nan for a page without an answer.

    >>> seen = Gaps.of(np.repeat([0, 1, 2], 4), np.ones(12), [0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1], pages=4)
    >>> for name in ("naive", "regular", "irregular", "moment", "gamma"):
    ...     print(name, estimate(name, seen).round(2).tolist())
    naive [0.0, 0.5, 1.0, nan]
    regular [0.0, 0.59, 2.2, nan]
    irregular [0.21, 0.83, 2.62, nan]
    moment [0.0, 0.59, 2.2, nan]
    gamma [0.07, 0.4, 0.91, nan]
    """
    if name == "gamma":
        rates = nested(gaps, levels).rate
    else:
        with np.errstate(divide="ignore", invalid="ignore"):  # pages without an answer
            rates = ESTIMATORS[name][0](gaps)
    return np.where(gaps.visits > 0, rates, np.nan)
