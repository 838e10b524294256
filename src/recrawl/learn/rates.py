"""Change rates from visits: estimators, posteriors and the expected freshness of a repository."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.book import Book
from recrawl.columns import DAY, Flags, Floats, Ints
from recrawl.gamma import quantile
from recrawl.learn.chunks import chunks
from recrawl.model import Outcomes
from recrawl.times import SKEW

# --------------------------------------------------------------------------------------------------------------------
# The likelihood equation of change rates from interval-censored observations, solved for all pages at once.
#
# A visit that finds a page changed after t days shows that there was a change within t days, but not when or how many.
# Such visits enter the likelihood equation of a rate λ as h(λt) with h(u) = u / (e^u - 1); the rest is two numbers:
#
#     a + Σ h(λ t)  =  b · λ          a: changes with known times, b: days known to be without a change
#
# A Gamma prior adds its shape to a and its rate to b. The left side is decreasing and convex, the right side
# increasing, so there is one solution, and Newton's method approaches it from below without overshooting.


_MAX_STEPS = 800
"""Usually five or six suffice. In extreme cases λt grows by one per step, up to 700, where doubles overflow."""
_TOLERANCE = 1e-13


def censored_term(u: Floats) -> Floats:
    """Return h(u) = u / (e^u - 1): 1 at 0, decreasing to 0.

    >>> censored_term(np.array([0.0, 1.0, 1e4])).round(4).tolist()
    [1.0, 0.582, 0.0]
    """
    safe = np.clip(u, 1e-12, 700.0)  # e^700 is nearly the largest double
    h: Floats = safe / np.expm1(safe)
    return h


def solve_rates(page: Ints, gap: Floats, times: Floats, a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the rate of every page, and the curvature of the log-likelihood over log λ, in changes.

    Rows are visits that found a change, each counted `times` times; `a` and `b` have one value per page. A page needs
    b > 0, and a > 0 or a row; otherwise its rate is NaN.

    >>> rate, curvature = solve_rates(np.array([0]), np.ones(1), np.ones(1), np.zeros(2), np.array([1.0, 0.0]))
    >>> rate.round(4).tolist(), curvature.round(4).tolist()
    ([0.6931, nan], [0.9609, nan])
    """
    pages = len(a)
    found = np.bincount(page, times, pages)
    days = np.bincount(page, times * gap, pages)
    rate, curvature = np.full(pages, np.nan), np.full(pages, np.nan)
    open_ = np.flatnonzero((b > 0) & (a + found > 0))
    rate[open_] = (a + found)[open_] / (b + days)[open_]
    curvature[open_] = a[open_]
    place = np.full(pages, -1)
    place[open_] = np.arange(len(open_))
    rows = place[page] >= 0
    owner, gap, times = place[page[rows]], gap[rows], times[rows]
    for _ in range(_MAX_STEPS):
        if not len(open_):
            break
        u = rate[open_][owner] * gap
        h = censored_term(u)
        excess = a[open_] + np.bincount(owner, times * h, len(open_)) - b[open_] * rate[open_]
        curvature[open_] = np.bincount(owner, times * h * (h + u - 1), len(open_)) + b[open_] * rate[open_]
        step = excess / curvature[open_]
        rate[open_] *= 1 + np.maximum(step, 0.0)
        moving = step > _TOLERANCE
        if not moving.all():
            place = np.cumsum(moving) - 1
            rows = moving[owner]
            owner, gap, times = place[owner[rows]], gap[rows], times[rows]
            open_ = open_[moving]
    return rate, curvature


# --------------------------------------------------------------------------------------------------------------------
# The estimators of change rates in the literature, over columns.
#
# Changes are modelled as a Poisson process of rate λ. A visit shows only whether there was a change since the previous
# visit, so the number of changed visits underestimates the changes; each estimator corrects this for one kind of
# observation:
#
#     naive           no correction
#     bias_reduced    visits at equal intervals
#     irregular       visits at any intervals: maximum likelihood
#     moment          visits at any intervals: the expected number of changed visits equals the observed one
#     averaged        visits at exponentially distributed intervals: a ratio of counts
#     last_modified   the server reports the time of the last change
#
# All return changes per unit of the input time. `comparison` selects them by name and keeps all rates finite;
# `posteriors` adds uncertainty and shares information between pages.


_BISECTIONS = 80
"""More than the bits of a double."""


def naive(changed: ArrayLike, watched: ArrayLike) -> Floats:
    """Return X/T: changed visits over the time from the first visit to the last; at most the rate of visits.

    >>> naive([0, 5, 10], 10.0).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray(np.asarray(changed, np.float64) / np.asarray(watched, np.float64))


def bias_reduced(changed: ArrayLike, visits: ArrayLike, interval: ArrayLike) -> Floats:
    """Return -ln((n - X + 0.5) / (n + 0.5)) / I, if X of n visits, I apart, found a change; finite even if all did.

    >>> bias_reduced([0, 5, 10], 10, 1.0).round(3).tolist()
    [0.0, 0.647, 3.045]
    """
    x, n = np.asarray(changed, np.float64), np.asarray(visits, np.float64)
    return np.asarray(np.log((n + 0.5) / (n - x + 0.5)) / np.asarray(interval, np.float64))


def last_modified(changed: ArrayLike, visits: ArrayLike, exposure: ArrayLike) -> Floats:
    """Return X'/T with X' = (X - 1) - X / (n·ln(1 - X/n)), if every visit reports the time of the last change.

    T sums, over the n visits, the time without a change: since the last change if the page had changed (X visits),
    since the previous visit if not. X/T alone would be too high on average.

    >>> last_modified([0, 1, 4], 4, 10.0).round(4).tolist()
    [0.0, 0.0869, 0.3]
    """
    x, n = np.asarray(changed, np.float64), np.asarray(visits, np.float64)
    some, all_ = x > 0, x >= n
    log = np.log1p(-np.where(some & ~all_, x / np.maximum(n, 1.0), 0.5))
    # The limits of the formula: if none changed, X' is 0; if all changed, the second term is 0.
    corrected = np.where(all_, x - 1.0, x - 1.0 - x / (np.maximum(n, 1.0) * log))
    return np.asarray(np.where(some, corrected, 0.0) / np.asarray(exposure, np.float64))


def averaged(changed: ArrayLike, visits: ArrayLike, interval: ArrayLike) -> Floats:
    """Return X / (n + 1 - X) over the mean interval.

    It assumes exponentially distributed intervals; at equal intervals it is too high.

    >>> averaged([0, 5, 10], 10, 1.0).round(3).tolist()
    [0.0, 0.833, 10.0]
    """
    x, n = np.asarray(changed, np.float64), np.asarray(visits, np.float64)
    return np.asarray(x / (n + 1.0 - x) / np.asarray(interval, np.float64))


def irregular(
    page: NDArray[np.integer],
    gap: Floats,
    changed: Flags,
    pages: int,
    *,
    smooth: float = 0.0,
    times: Floats | None = None,
) -> Floats:
    """Return the maximum likelihood rates: Σ_changed t / (e^(λt) - 1) = Σ_unchanged t. One row per visit, any order.

    Without smoothing, a page with no changed visit has rate 0, a page with no unchanged visit inf, and a page without
    rows NaN. `smooth` adds a changed and an unchanged visit with this gap to each page, which keeps every rate finite
    and above 0. `times` is the number of times a row was seen, 1 by default.

    >>> rows = np.array([0, 0, 1, 1])
    >>> irregular(rows, np.ones(4), np.array([True, False, True, True]), 3).round(4).tolist()
    [0.6931, inf, nan]
    """
    owner, length, found = page.astype(np.int64), gap, changed
    count = np.ones(len(gap)) if times is None else times
    if smooth > 0:
        owner = np.concatenate((owner, np.repeat(np.arange(pages), 2)))
        length = np.concatenate((gap, np.full(2 * pages, smooth)))
        found = np.concatenate((changed, np.tile([True, False], pages)))
        count = np.concatenate((count, np.ones(2 * pages)))
    quiet = np.bincount(owner[~found], (count * length)[~found], pages).astype(np.float64)
    some = np.bincount(owner[found], count[found], pages) > 0
    rate, _ = solve_rates(owner[found], length[found], count[found], np.zeros(pages), quiet)
    return np.where(some & (quiet > 0), rate, np.where(some, np.inf, np.where(quiet > 0, 0.0, np.nan)))


def moment(page: NDArray[np.integer], gap: Floats, expected: Floats, times: Floats | None = None) -> Floats:
    """Return the rate of every page at which Σ (1 - e^(-λt)) over its visits equals `expected`.

    With the observed number X of changed visits it is the moment estimator; that has no solution if all visits found a
    change, so `comparison` uses X·n/(n + 1/2), which equals the bias-reduced estimator at equal intervals. The rate is
    0 for an expectation of 0, inf for the number of visits or more, NaN for a page without visits.

    >>> moment(np.array([0, 0, 1, 2]), np.array([1.0, 1.0, 2.0, 2.0]), np.array([1.0, 0.0, 1.0, 0.0])).round(4).tolist()
    [0.6931, 0.0, inf, nan]
    """
    pages = len(expected)
    owner = page.astype(np.int64)
    count = np.ones(len(gap)) if times is None else times
    visits, days = np.bincount(owner, count, pages), np.bincount(owner, count * gap, pages)
    open_ = (expected > 0) & (expected < visits)
    rate = np.where(visits > 0, np.where(expected >= visits, np.inf, 0.0), np.nan)
    rows = open_[owner]
    place = np.cumsum(open_) - 1
    owner, gap, count, target = place[owner[rows]], gap[rows], count[rows], expected[open_]
    shortest = np.full(len(target), np.inf)
    np.minimum.at(shortest, owner, gap)
    # Bounds of the solution: 1 - e^-x <= x, and every gap is at least the shortest.
    low = np.log(target / days[open_])
    high = np.log(-np.log1p(-target / visits[open_]) / shortest)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = np.bincount(owner, count * -np.expm1(-np.exp(middle)[owner] * gap), len(target)) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    rate[open_] = np.exp((low + high) / 2)
    return rate


# --------------------------------------------------------------------------------------------------------------------
# Visits as gaps between them, the input of all estimators of change rates.
#
# A visit shows whether its page has changed since the previous visit. `Gaps` has one row for every such comparison, in
# any order. `GapSums` summarises them in four numbers per page, for a policy that cannot keep every visit: it treats
# all gaps that ended in a change as equally long, and all others too. This is exact for regular visits and close for
# others.
#
# Times are in days here.


MIN_GAP = 1.0 / DAY
"""The shortest gap: one second, even if the clock stands still or steps back."""
MAX_GAP = 36525.0
"""The longest gap: a century."""


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """Comparisons of visits with the previous ones, one row each, in any order; gaps from a second to a century.

    >>> gaps = Gaps.of([0, 0, 1], [1.0, 2.0, -1e-3], [True, False, False], pages=3)
    >>> gaps.gap.round(5).tolist(), gaps.visits.tolist(), gaps.changes.tolist()
    ([1.0, 2.0, 1e-05], [2.0, 1.0, 0.0], [1.0, 0.0, 0.0])
    """

    page: Ints
    gap: Floats
    """Days since the previous visit."""
    changed: Flags
    pages: int
    """Number of pages."""
    times: Floats
    """The number of visits that the row stands for."""
    quiet: Floats
    """For a changed page whose server reports the last change: the days from then to the visit; else NaN."""

    @classmethod
    def of(
        cls,
        page: object,
        gap: object,
        changed: object,
        *,
        pages: int,
        times: object = None,
        quiet: object = None,
    ) -> Gaps:
        """Build from any columns that numpy accepts; rows whose gap is NaN are left out.

        So are those in which the clock was set back: nobody knows how long they were.
        """
        length = np.asarray(gap, np.float64)
        valid = length >= -SKEW / DAY
        length = np.clip(length[valid], MIN_GAP, MAX_GAP)
        count = np.ones(len(length)) if times is None else np.asarray(times, np.float64)[valid]
        since = np.full(len(length), np.nan) if quiet is None else np.asarray(quiet, np.float64)[valid]
        return cls(
            page=np.asarray(page, np.int64)[valid],
            gap=length,
            changed=np.asarray(changed, bool)[valid],
            pages=pages,
            times=count,
            quiet=np.clip(since, MIN_GAP, length),  # the previous visit would have seen an earlier change
        )

    @property
    def visits(self) -> Floats:
        """One per page: comparisons."""
        return self.sums(self.times)

    @property
    def changes(self) -> Floats:
        """One per page: comparisons that found a change."""
        return self.sums(self.times * self.changed)

    @property
    def watched(self) -> Floats:
        """One per page: days from the first visit to the last."""
        return self.sums(self.times * self.gap)

    def sums(self, rows: Floats) -> Floats:
        """Return the sum of a column over each page's rows."""
        return np.bincount(self.page, rows, self.pages).astype(np.float64)


@dataclass(slots=True, eq=False)
class GapSums:
    """Four numbers per page: visits with a change and the days of their gaps, visits without and the days of theirs."""

    changed: Floats
    changed_days: Floats
    same: Floats
    same_days: Floats

    @classmethod
    def kept(cls, book: Book, name: str) -> GapSums:
        """Load the sums of a policy from the book's memory."""
        return cls(*(book.kept(f"{name}.{column}", 0.0) for column in _COLUMNS))

    def keep(self, book: Book, name: str) -> None:
        """Store the sums in the book's memory."""
        book.memory |= {f"{name}.{column}": getattr(self, column) for column in _COLUMNS}

    def add(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Add the visits of a cycle, before the book notes them; a first visit is no comparison.

        >>> book = Book.blank(2, now=3 * DAY)
        >>> book.visits[:], book.last_visit[:] = 1, [0.0, DAY]
        >>> sums = GapSums.kept(book, "mine")
        >>> sums.add(book, Outcomes(np.array([0, 1]), np.array([2, 0], np.int8)), np.full(2, 3 * DAY))
        >>> sums.changed.tolist(), sums.changed_days.tolist(), sums.same_days.tolist()
        ([1.0, 0.0], [3.0, 0.0], [0.0, 2.0])
        """
        compared = seen.answered & (book.visits[seen.pages] > 0)
        pages, changed = seen.pages[compared], seen.changed[compared]
        times = np.broadcast_to(np.asarray(at, np.float64), len(seen))[compared]
        gap = np.clip((times - book.last_visit[pages]) / DAY, MIN_GAP, MAX_GAP)
        for column, amount in zip(_COLUMNS, (changed, gap * changed, ~changed, gap * ~changed), strict=True):
            np.add.at(getattr(self, column), pages, amount)

    def gaps(self) -> Gaps:
        """Convert to gaps, at most two rows per page."""
        pages = len(self.changed)
        both = []
        for count, days, found in ((self.changed, self.changed_days, True), (self.same, self.same_days, False)):
            rows = np.flatnonzero(count > 0)
            both.append((rows, days[rows] / count[rows], np.full(len(rows), found), count[rows]))
        page, gap, changed, times = (np.concatenate(parts) for parts in zip(*both, strict=True))
        return Gaps.of(page, gap, changed, pages=pages, times=times)


_COLUMNS = ("changed", "changed_days", "same", "same_days")


# --------------------------------------------------------------------------------------------------------------------
# Gamma posteriors of pages' change rates, with nested priors.
#
# The prior mean of a page's rate is the rate of its directory (or another group), the prior mean of the directory's
# rate is the site's, and of the site's that of all pages; so a page with few visits uses what its group shows. A visit
# that finds no change, or a change whose time the server reports, updates a Gamma distribution exactly. For a change of
# unknown time the Gamma distribution with the same mode and the same curvature over the logarithm of the rate is used,
# which equals the exact posterior where that is a Gamma distribution.
#
# Times are in days, rates in changes per day.


FIRST_RATE = 0.02
"""The prior rate of all pages, in changes per day: one change in 50 days."""
SHAPE = 0.5
"""The weight of the group's rate against a page's own visits, in changes."""
_ROUNDS = 4
"""Rounds of updating group and page rates by each other; more rounds change the third digit."""


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Gamma distributions of rates with shapes `a` and rates `b`, one per page."""

    a: Floats
    b: Floats

    @property
    def rate(self) -> Floats:
        """The expected changes per day."""
        rate: Floats = self.a / self.b
        return rate

    def probability(self, days: Floats | float) -> Floats:
        """Return the probability of a change within a number of days.

        >>> Posterior(np.array([1.0, 1e9]), np.array([1.0, 1e9])).probability(1.0).round(4).tolist()
        [0.5, 0.6321]
        """
        probability: Floats = -np.expm1(-self.a * np.log1p(np.maximum(days, 0.0) / self.b))
        return probability

    def median_days(self) -> Floats:
        """Return the days within which a change has probability 1/2."""
        with np.errstate(over="ignore"):
            days: Floats = self.b * np.expm1(np.log(2.0) / self.a)
        return days

    def interval(self, share: float = 0.9) -> tuple[Floats, Floats]:
        """Return the bounds between which the rate lies with this probability, with equal tails.

        >>> low, high = Posterior(np.array([4.0]), np.array([2.0])).interval(0.9)
        >>> low.round(3).tolist(), high.round(3).tolist()
        ([0.683], [3.877])
        """
        low, high = (quantile(self.a, tail) / self.b for tail in ((1 - share) / 2, (1 + share) / 2))
        return np.asarray(low), np.asarray(high)


def posterior(gaps: Gaps, a: Floats | float, b: Floats | float) -> Posterior:
    """Update Gamma priors, one per page, with visits; exact if all changes have times or there are none.

    >>> seen = Gaps.of([0, 0, 1], [5.0, 3.0, 4.0], [True, False, True], pages=2, quiet=[2.0, np.nan, np.nan])
    >>> after = posterior(seen, 1.0, 10.0)
    >>> float(after.a[0]), float(after.b[0])
    (2.0, 15.0)
    >>> after.rate.round(3).tolist()
    [0.133, 0.17]
    """
    dated = gaps.changed & ~np.isnan(gaps.quiet)
    open_ = gaps.changed & ~dated
    known = gaps.sums(gaps.times * dated)
    days = gaps.sums(gaps.times * np.where(dated, gaps.quiet, gaps.gap * ~open_))
    rate, curvature = solve_rates(gaps.page[open_], gaps.gap[open_], gaps.times[open_], a + known, b + days)
    return Posterior(curvature, curvature / rate)


def nested(
    gaps: Gaps, levels: Sequence[NDArray[np.integer]] = (), *, shape: float = SHAPE, first: float = FIRST_RATE
) -> Posterior:
    """Return the posteriors of all pages; `levels` are columns of group numbers, coarse first: sites, directories.

    A page without a visit has the prior of its group.

    >>> site = np.array([0, 0, 0, 1])
    >>> seen = Gaps.of([0, 1, 3], [1.0, 1.0, 30.0], [True, True, False], pages=4)
    >>> nested(seen, [site]).rate.round(3).tolist()
    [0.34, 0.34, 0.127, 0.009]
    """
    prior = np.full(gaps.pages, first)
    dated = gaps.changed & ~np.isnan(gaps.quiet)
    days = gaps.sums(gaps.times * np.where(dated, gaps.quiet, gaps.gap))
    result = posterior(gaps, shape, shape / prior)
    for _ in range(_ROUNDS):
        u = result.rate[gaps.page] * gaps.gap
        events = gaps.sums(gaps.times * np.where(dated, 1.0, gaps.changed * (u + censored_term(u))))
        prior = np.full(gaps.pages, (events.sum() + 1.0) / (days.sum() + 1.0 / first))
        for group in levels:
            changes, watched = (np.bincount(group, column) if gaps.pages else column for column in (events, days))
            prior = (changes[group] + 1.0) / (watched[group] + 1.0 / prior)
        result = posterior(gaps, shape, shape / prior)
    return result


# --------------------------------------------------------------------------------------------------------------------
# The estimators of change rates by name: all take the same visits, and all rates are finite.
#
# A page without a comparison has no rate (NaN); every other rate is finite and not negative, also if all visits found a
# change or none did. With `gamma`, pages of a site share information (see `posteriors`).


SMOOTH = 0.5
"""Days of the two pseudo-visits that smooth the likelihood: one that found a change, one that did not."""


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
    """Use Cho's estimator if the times of all changes are known, the smoothed maximum likelihood otherwise."""
    dated = gaps.changed & ~np.isnan(gaps.quiet)
    open_ = gaps.changed & ~dated
    days = gaps.sums(gaps.times * np.where(dated, gaps.quiet, gaps.gap * ~open_))
    known, all_pages = gaps.sums(gaps.times * dated), np.arange(gaps.pages)
    rate, _ = solve_rates(
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
    "regular": (_regular, "Cho and Garcia-Molina's bias-reduced estimator, for evenly spaced visits"),
    "irregular": (_irregular, "maximum likelihood for visits at any intervals, smoothed by two half-day visits"),
    "moment": (_moment, "the rate at which the expected number of changed visits is the observed one (Upadhyay)"),
    "averaged": (_averaged, "a count for visits at random intervals (Avrachenkov); too high at even intervals"),
    "modified": (_modified, "uses the times of changes that a trusted server reports (Cho and Garcia-Molina)"),
    "gamma": (lambda gaps: nested(gaps).rate, "nested Gamma posteriors: all pages, site, directory, page"),
}
"""Name to function and description."""


def estimate(name: str, gaps: Gaps, levels: Sequence[NDArray[np.integer]] = ()) -> Floats:
    """Return the rates of all pages by one estimator, in changes per day; NaN for a page without a comparison.

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
        with np.errstate(divide="ignore", invalid="ignore"):  # pages without a comparison
            rates = ESTIMATORS[name][0](gaps)
    return np.where(gaps.visits > 0, rates, np.nan)


# --------------------------------------------------------------------------------------------------------------------
# The expected freshness of a repository, from each page's history and the time since its last visit.
#
# Changes are modelled as a Poisson process whose rate has a Gamma distribution: the page's own visits, with the mean
# rate of its site as the prior. So the probability of no change within a time t is (b / (b + t)) ** a, which allows for
# the uncertainty of rates estimated from few visits, unlike e^(-rate t).
#
# Pages of one site often change together, so a sum over pages has a higher variance than for independent pages.
# `spread` measures by how much, from the difference between found and expected updates per site in a cycle.


_AnyInts = NDArray[np.integer]

_PRIOR_WEIGHT = 0.5
"""The weight of the site's mean rate, in changes."""


@dataclass(frozen=True, slots=True)
class RateModel:
    """The Gamma distribution of each page's rate: mean a / b, in changes per second."""

    a: Floats
    b: Floats

    def unchanged(self, gap: Floats) -> Floats:
        """Return the probability of no change within a time.

        >>> RateModel(np.array([1.0]), np.array([3.0])).unchanged(np.array([1.0])).tolist()
        [0.75]
        """
        return np.asarray((self.b / (self.b + np.maximum(gap, 0.0))) ** self.a)


def estimated_changes(visits: _AnyInts, changes: _AnyInts) -> Floats:
    """Return the estimated number of changes, from visits that show only whether there was any (Cho, Garcia-Molina).

    >>> estimated_changes(np.array([1, 11, 11]), np.array([0, 0, 10])).round(2).tolist()
    [0.0, 0.0, 30.45]
    """
    compared = np.maximum(np.asarray(visits, np.float64) - 1.0, 0.0)
    seen = np.clip(np.asarray(changes, np.float64), 0.0, compared)
    return np.asarray(compared * np.log((compared + 0.5) / (compared - seen + 0.5)))


def site_rates(site: _AnyInts, visits: _AnyInts, changes: _AnyInts, watched: Floats, sites: int) -> Floats:
    """Return the mean rate of each site; `watched` is the time from a page's first visit to its last."""
    count, time = np.zeros(sites), np.zeros(sites)
    for rows in chunks(len(site)):
        count += np.bincount(site[rows], estimated_changes(visits[rows], changes[rows]), sites)
        time += np.bincount(site[rows], np.maximum(watched[rows], 0.0), sites)
    overall = (count.sum() + _PRIOR_WEIGHT) / (time.sum() + 30 * DAY)
    return np.asarray((count + _PRIOR_WEIGHT) / (time + _PRIOR_WEIGHT / overall))


def page_rates(visits: _AnyInts, changes: _AnyInts, watched: Floats, prior: Floats) -> RateModel:
    """Return the rate distribution of each page; `prior` is the mean rate of its site."""
    count = estimated_changes(visits, changes)
    return RateModel(count + _PRIOR_WEIGHT, np.maximum(watched, 0.0) + _PRIOR_WEIGHT / prior)


def fit_rates(site: _AnyInts, visits: _AnyInts, changes: _AnyInts, watched: Floats, sites: int) -> RateModel:
    """Return the rate distribution of each page, with the mean rate of its site among these pages as the prior."""
    return page_rates(visits, changes, watched, site_rates(site, visits, changes, watched, sites)[site])


def spread(site: _AnyInts, expected: Floats, found: Flags, sites: int) -> float:
    """Return the variance of the numbers found per site over that of independent pages; at least 1.

    >>> together = spread(np.repeat([0, 1], 50), np.full(100, 0.5), np.repeat([True, False], 50), 2)
    >>> together, spread(np.zeros(4, int), np.full(4, 0.5), np.array([True, False, True, False]), 1)
    (50.0, 1.0)
    """
    independent = float((expected * (1.0 - expected)).sum())
    error = np.bincount(site, found - expected, sites)
    return max(1.0, float((error * error).sum()) / independent) if independent > 0 else 1.0


def share_deviation(variance: float, pages: int, spread: float = 1.0) -> float:
    """Return the standard deviation of a share of pages, from the sum of p (1 - p) over them.

    >>> share_deviation(100 * 0.5 * 0.5, 100)
    0.05
    """
    return float(np.sqrt(variance * spread)) / max(pages, 1)
