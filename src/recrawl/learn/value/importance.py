"""Page weights and visit costs, normalised so that no input can harm a policy.

Importance is `even` (all weights equal), `pagerank` (by the links between pages), `sitemap` (by the priorities in
sitemaps), `file:PATH` (given weights) or `clicks:PATH` (number of requests per page, plus one). Weights are finite, not
negative, at most 1,000 times the median, and 1 on average; invalid ones are replaced, and `IgnoredWeights` counts them.

Cost is `visit` (all visits equal) or `bytes` (expected transfer); costs are above 0 and 1 on average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Floats, Int32s, Ints
from recrawl.errors import UsageError

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
