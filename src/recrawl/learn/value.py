"""What a visit is worth: objectives, importance of pages, cost of visits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Floats, Int32s, Ints
from recrawl.errors import UsageError
from recrawl.learn.chunks import AnyFloats

# --------------------------------------------------------------------------------------------------------------------
# Page weights and visit costs, normalised so that no input can harm a policy.
#
# Importance is `even` (all weights equal), `pagerank` (by the links between pages), `sitemap` (by the priorities in
# sitemaps), `file:PATH` (given weights) or `clicks:PATH` (number of requests per page, plus one). Weights are finite,
# not negative, at most 1,000 times the median, and 1 on average; invalid ones are replaced, and `IgnoredWeights` counts
# them.
#
# Cost is `visit` (all visits equal) or `bytes` (expected transfer); costs are above 0 and 1 on average.


KINDS = ("even", "pagerank", "sitemap", "file:PATH", "clicks:PATH")
COSTS = ("visit", "bytes")
DEFAULT_PRIORITY = 0.5
"""The priority of a page without one, by the sitemap protocol."""
MIN_PRIORITY = 0.05
"""A priority of 0 does not make a page worthless."""
MAX_RATIO = 1000.0
"""The highest weight or cost, in multiples of the median."""
_MIN_WEIGHT = 1e-100
"""The lowest positive weight; the highest is its inverse."""
OVERHEAD = 1000.0
"""Bytes of a visit beyond the page: the request and the response headers; also the cost of a 304."""


@dataclass(frozen=True, slots=True)
class IgnoredWeights:
    """Numbers of weights that were replaced or cut, by reason."""

    unreadable: int = 0
    negative: int = 0
    infinite: int = 0
    unknown: int = 0
    cut: int = 0

    def __str__(self) -> str:
        """
        >>> str(IgnoredWeights(negative=2, cut=1))
        '2 are negative, 1 is above 1,000 times the median and cut to it'
        """
        words = {
            "unreadable": "not a number or not a URL",
            "negative": "negative",
            "infinite": "infinite",
            "unknown": "for an unknown URL",
            "cut": f"above {MAX_RATIO:,.0f} times the median and cut to it",
        }
        counts = ((getattr(self, name), text) for name, text in words.items())
        return ", ".join(f"{count:,} {'is' if count == 1 else 'are'} {text}" for count, text in counts if count)


def kind_of(text: str) -> tuple[str, str]:
    """Parse the setting `importance` into kind and path.

    >>> kind_of("pagerank"), kind_of("clicks:log.csv")
    (('pagerank', ''), ('clicks', 'log.csv'))
    """
    kind, colon, path = text.strip().partition(":")
    if (kind in ("even", "pagerank", "sitemap") and not colon) or (kind in ("file", "clicks") and path.strip()):
        return kind, path.strip()
    raise UsageError(f"importance must be {', '.join(KINDS[:-1])} or {KINDS[-1]}, not '{text}'")


def priority_weights(priority: Floats, site: Int32s) -> Floats:
    """Return weights by the sites' own priorities (0 to 1; nan for none), 1 on average within each site.

    A priority compares the pages of one site: a site that claims the highest for all its pages gains nothing.

    >>> priority_weights(np.array([1.0, 1.0, 0.9, np.nan, 0.1]), np.array([0, 0, 1, 1, 1])).round(2).tolist()
    [1.0, 1.0, 1.8, 1.0, 0.2]
    """
    raw = np.where(np.isnan(priority), DEFAULT_PRIORITY, np.maximum(priority, MIN_PRIORITY))
    mean = np.bincount(site, raw) / np.maximum(np.bincount(site), 1)
    weight: Floats = raw / mean[site]
    return weight


def match_weights(pages: Ints, keys: Ints, weight: Floats, *, add: bool, missing: float) -> tuple[Floats, int]:
    """Assign weights to pages by key; return the weights of the pages and the number of keys without a page.

    A page without a weight gets `missing`. With `add`, all weights of a page are added to `missing`.

    >>> pages, keys = np.array([5, 3, 9]), np.array([3, 9, 3, 4])
    >>> weight, unknown = match_weights(pages, keys, np.arange(4.0), add=True, missing=1.0)
    >>> weight.tolist(), unknown
    ([1.0, 3.0, 2.0], 1)
    """
    order = np.argsort(pages)
    place = np.searchsorted(pages, keys, sorter=order)
    hit = place < len(pages)
    hit[hit] = pages[order[place[hit]]] == keys[hit]
    found = order[place[hit]]
    weights = np.full(len(pages), missing)
    if add:
        weights += np.bincount(found, weight[hit], len(pages))
    else:
        weights[found] = weight[hit]  # the last weight of a page counts
    return weights, int(np.count_nonzero(~hit))


def normalise(raw: Floats, missing: float = 1.0) -> tuple[Floats, IgnoredWeights]:
    """Return weights that are 1 on average, with invalid ones replaced by `missing`, and how many were changed.

    >>> weight, ignored = normalise(np.array([1.0, 3.0, -2.0, np.nan, np.inf, 1e9]))
    >>> weight.round(3).tolist()
    [0.006, 0.018, 0.006, 0.006, 0.006, 5.958]
    >>> str(ignored)
    '1 is not a number or not a URL, 1 is negative, 1 is infinite, 1 is above 1,000 times the median and cut to it'
    """
    unreadable, negative, infinite = np.isnan(raw), raw < 0, np.isinf(raw) & (raw > 0)
    weight = np.where(unreadable | negative | infinite, missing, raw)
    # Without these bounds quotients and sums could be infinite.
    weight = np.where(weight > 0, np.clip(weight, _MIN_WEIGHT, 1 / _MIN_WEIGHT), 0.0)
    median = float(np.median(weight[weight > 0])) if (weight > 0).any() else 1.0
    weight = weight / median
    cut = weight > MAX_RATIO
    weight = np.minimum(weight, MAX_RATIO)
    mean = float(weight.mean()) if len(weight) else 0.0
    flags = {"unreadable": unreadable, "negative": negative, "infinite": infinite, "cut": cut}
    ignored = IgnoredWeights(**{name: int(np.count_nonzero(flag)) for name, flag in flags.items()})
    return weight / mean if mean > 0 else np.ones(len(weight)), ignored


def arrivals(links: Floats, changes: Floats, site: NDArray[np.integer]) -> Floats:
    """Return the new links per change of each page; a page with few changes uses the mean of its site.

    >>> arrivals(np.array([9.0, 0.0, 0.0]), np.array([3.0, 3.0, 0.0]), np.zeros(3, int)).round(2).tolist()
    [2.61, 0.36, 1.43]
    """
    sites = int(site.max(initial=-1)) + 1
    mean = (np.bincount(site, links, sites) + 1.0) / (np.bincount(site, changes, sites) + 1.0)
    per_change: Floats = (links + mean[site]) / (changes + 1.0)
    return per_change


def costs(size: NDArray[np.integer], not_modified: Floats | float = 0.0) -> Floats:
    """Return visit costs in bytes, scaled to 1 on average; `not_modified` is the probability of a 304 response.

    A page of unknown size has the median size.

    >>> costs(np.array([1000, 3000, 0])).tolist()
    [0.6666666666666666, 1.3333333333333333, 1.0]
    """
    known = size > 0
    bytes_ = np.where(known, size, np.median(size[known]) if known.any() else 0).astype(np.float64)
    cost, _ = normalise(OVERHEAD + bytes_ * (1.0 - np.clip(not_modified, 0.0, 1.0)))
    return cost


# --------------------------------------------------------------------------------------------------------------------
# The value of a visit (its *index*) for each objective.
#
# With the change rate λ and u = -ln(1 - p), the expected number of changes for the change probability p:
#
#     changes     p                                   most changes found
#     freshness   (1 - (1 + u) e^-u) / λ              most pages up to date; pages that change too fast get no visits
#     harmonic    (u - 1 + e^-u) / λ                  unseen changes cost 1, 1/2, 1/3 ...; every page is visited
#     age         (u²/2 - 1 + (1 + u) e^-u) / λ²      least time out of date; every page is visited
#     links       (Λ/θ) (1 - (1 + θt) e^-θt)          most new links, early: t = u/λ, Λ links a day, value e^-θ a day
#
# Each is multiplied by the page's weight and divided by the visit's cost. Visiting the pages with the highest index in
# every cycle gives all pages their optimal long-run frequencies. For `changes` the exact index is 1 - (1 + u) e^-u,
# which has the same order as p if all weights and costs are equal.
#
# `index` uses one rate per page; `expected_index` averages over a Gamma distribution of rates, given the time since the
# last visit. When more than ordinary time has passed (the site was rebuilt, a hint arrived), the page gets the index
# that it would have after the ordinary time in which it would have become equally stale: `time_to_change` computes this
# time from the change probability, `time_to_age` from the expected time out of date.


OBJECTIVES = ("changes", "freshness", "harmonic", "age", "links")
LINK_DECAY = 1 / 7
"""The rate at which a new link loses its value, per day: half of it in five days."""
_MIN_RATE = 1e-12
_MAX_PROBABILITY = 1 - 1e-6
"""The highest change probability; without a limit, one page with a vague rate would outrank all others."""
_NEWTON_STEPS = 3
"""Two suffice from the starting point used here."""


def index(
    objective: str,
    probability: AnyFloats,
    rate: Floats,
    *,
    weight: Floats | float = 1.0,
    cost: Floats | float = 1.0,
    links: Floats | float = 1.0,
) -> Floats:
    """Return the index of a visit from the change probability; `links` is the number of new links per change.

    Pass weights and costs that are all equal as one number (see `scalar_if_constant`).

    >>> index("freshness", np.array([0.5, 0.999]), np.array([0.1, 5.0])).round(2).tolist()
    [1.53, 0.2]
    >>> index("changes", np.array([0.5, 0.5]), np.ones(2), weight=np.array([1.0, 3.0])).round(2).tolist()
    [0.15, 0.46]
    """
    rate = np.maximum(rate, _MIN_RATE)
    u = -np.log1p(-np.clip(probability.astype(np.float64), 0.0, 1 - 1e-12))
    formulas: dict[str, Callable[[], AnyFloats]] = {
        "changes": lambda: probability if np.ndim(weight) == np.ndim(cost) == 0 else freshness_gain(u),
        "freshness": lambda: freshness_gain(u) / rate,
        "harmonic": lambda: harmonic_gain(u) / rate,
        "age": lambda: age_gain(u) / rate**2,
        "links": lambda: links * rate / LINK_DECAY * freshness_gain(LINK_DECAY * u / rate),
    }
    value: Floats = np.asarray(formulas[objective]() * weight / cost, np.float64)
    return value


def expected_index(
    objective: str,
    a: Floats,
    b: Floats,
    waited: Floats,
    *,
    weight: Floats | float = 1.0,
    cost: Floats | float = 1.0,
    links: Floats | float = 1.0,
) -> Floats:
    """Return the index of pages `waited` days after their last visit, averaged over Gamma(a, b) distributed rates.

    >>> sure = expected_index("freshness", np.array([1e8]), np.array([1e8]), np.array([2.0]))
    >>> float(sure[0]) - float(index("freshness", -np.expm1(-np.array([2.0])), np.ones(1))[0]) < 1e-6
    True
    """
    w = np.maximum(waited, 0.0)
    s = 1.0 + w / b
    early = _early(a, b, w)
    formulas: dict[str, Callable[[], Floats]] = {
        "changes": lambda: np.where(early, a * (a + 1) / 2 * (w / b) ** 2, 1.0 - s**-a * (1.0 + a * w / (b + w))),
        "freshness": lambda: np.where(early, a / b * w**2 / 2, b * _power(s, 1 - a) - w * s**-a),
        "harmonic": lambda: expected_age(a, b, w),  # the two formulas coincide
        "age": lambda: np.where(early, a / b * w**3 / 3, w**2 / 2 - b**2 * (_power(s, 2 - a) - _power(s, 1 - a))),
        "links": lambda: links * a / b / LINK_DECAY * freshness_gain(LINK_DECAY * w),
    }
    value: Floats = np.maximum(formulas[objective](), 0.0) * weight / cost
    return value


def expected_age(a: Floats, b: Floats, waited: Floats) -> Floats:
    """Return for how many of the `waited` days a page is expected to be out of date, for Gamma(a, b) rates."""
    return np.where(_early(a, b, waited), a / b * waited**2 / 2, waited - b * _power(1.0 + waited / b, 1 - a))


def time_to_change(a: Floats, b: Floats, probability: AnyFloats) -> Floats:
    """Return after how many days pages with Gamma(a, b) rates have these change probabilities.

    >>> time_to_change(np.array([1.0]), np.array([2.0]), np.array([0.5])).round(6).tolist()
    [2.0]
    """
    u = -np.log1p(-np.clip(probability.astype(np.float64), 0.0, _MAX_PROBABILITY))
    days: Floats = b * np.expm1(u / a)
    return days


def time_to_age(a: Floats, b: Floats, age: Floats) -> Floats:
    """Return after how many days pages with Gamma(a, b) rates are expected to be out of date for `age` days.

    >>> one, two = np.array([1.0]), np.array([2.0])
    >>> expected_age(one, two, time_to_age(one, two, np.array([5.0]))).round(6).tolist()
    [5.0]
    """
    days: Floats = age + np.sqrt(2 * age * b / a)
    for _ in range(_NEWTON_STEPS):
        days -= (expected_age(a, b, days) - age) / np.maximum(-np.expm1(-a * np.log1p(days / b)), 1e-300)
    return np.maximum(days, 0.0)


def freshness_gain(u: AnyFloats) -> Floats:
    """Return 1 - (1 + u) e^-u; near 0 it is u²/2."""
    return np.where(u < 1e-4, u * u * (0.5 - u / 3), 1 - (1 + u) * np.exp(-u))


def harmonic_gain(u: AnyFloats) -> Floats:
    """Return u - 1 + e^-u; near 0 it is u²/2."""
    return np.where(u < 1e-4, u * u * (0.5 - u / 6), u + np.expm1(-u))


def age_gain(u: AnyFloats) -> Floats:
    """Return u²/2 - 1 + (1 + u) e^-u; near 0 it is u³/3."""
    near = u**3 * (1 / 3 - u * (1 / 8 - u * (1 / 30 - u / 144)))
    return np.where(u < 0.01, near, u * u / 2 - freshness_gain(u))


def scalar_if_constant(column: Floats) -> Floats | float:
    """Return the column, or its value if all entries are equal.

    >>> scalar_if_constant(np.array([2.0, 2.0])), scalar_if_constant(np.array([2.0, 3.0])).tolist()
    (2.0, [2.0, 3.0])
    """
    return float(column[0]) if len(column) and (column == column[0]).all() else column


def _early(a: Floats, b: Floats, waited: Floats) -> Flags:
    """Return where the exact formulas would subtract nearly equal numbers and lose all digits."""
    return (1.0 + a) * waited / b < 1e-4


def _power(s: Floats, k: Floats) -> Floats:
    """Return (s^k - 1) / k, or ln s where k is 0."""
    log = np.log(s)
    flat = np.abs(k) < 1e-9
    powered: Floats = np.where(flat, log, np.expm1(k * log) / np.where(flat, 1.0, k))
    return powered
