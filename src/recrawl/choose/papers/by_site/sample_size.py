"""Sample sizes, confidence intervals and the rate threshold of the policies that sample sites (Q §2.6, §2.7).

A larger sample ranks the sites more reliably but leaves less budget to download them. `root_sample` is the square root
rule, `optimal_sample` the rule that uses known change rates; `interval` and `threshold` belong to adaptive sampling.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from recrawl.book import Book
from recrawl.choose.papers.by_site.site_sampling import Deck, Level, site_rates
from recrawl.columns import Floats, Ints
from recrawl.errors import UsageError


def check_sample(sample: str | int, policy: str, *words: str) -> str:
    """Return the parameter `sample` as text, or raise an error unless it is one of the words or a positive number."""
    text = str(sample)
    if text in words or (text.isdecimal() and int(text) > 0):
        return text
    names = ", ".join(words)
    raise UsageError(f"{policy}'s sample must be {names} or a number of pages per site above 0, not '{text}'")


def sample_size(sample: str, book: Book, deck: Deck, level: Level, budget: int) -> tuple[int, int]:
    """Return the pages to sample of each group, and the limit for all: half the budget, or all if a number is given."""
    if sample.isdecimal():
        return int(sample), budget
    half = max(1, budget // 2)
    pages = int(deck.size.sum())
    share = min(1.0, budget / pages)
    if sample == "optimal":
        names, rates = site_rates(book, level)
        rate = rates[np.searchsorted(names, deck.names)]
        known = ~np.isnan(rate)
        best = optimal_sample(pages / len(deck), share, rate[known], deck.size[known])
        if best is not None:
            return best, half
    return root_sample(pages / len(deck), share), half


def root_sample(pages: float, share: float) -> int:
    """Return √(N·r) for N pages per site and the share r of all pages that can be downloaded (T §6.2).

    >>> root_sample(1000, 0.1)
    10
    """
    return max(1, round(float(np.sqrt(pages * share))))


def optimal_sample(pages: float, share: float, rate: Floats, size: Ints) -> int | None:
    """Return √(N·r·f(p_t) / (6·(p̄_r - p̄))) from the rates p of the sites (Q §2.6); None if it is undefined.

    p_t is the rate above which the sites use up the downloads, f the density of rates at p_t, p̄_r the mean rate of the
    sites above it and p̄ of all sites. For rates spread evenly over 0 to 1 it is √(N·r / (3·(1 - r))):

    >>> optimal_sample(1000, 0.25, (np.arange(400) + 0.5) / 400, np.full(400, 1000)), round((250 / 2.25) ** 0.5)
    (11, 11)
    """
    if len(rate) < 2:
        return None
    limit = threshold(rate, size, share * float(size.sum()))
    above = rate[rate > limit]
    if not len(above) or above.mean() <= rate.mean():
        return None
    gain = 6.0 * float(above.mean() - rate.mean())
    best = float(np.sqrt(pages * share * density(rate, limit) / gain))
    return int(np.clip(round(best), 1, max(1, round(pages))))


def density(rate: Floats, at: float) -> float:
    """Return the density of rates at a point: their share in a window over the window's width within 0 to 1.

    The window's half width is that of a box kernel: 1.84 standard deviations, times n^(-1/5).
    """
    half = max(0.01, 1.84 * float(rate.std()) * float(len(rate)) ** -0.2)
    width: float = min(1.0, at + half) - max(0.0, at - half)
    near = int(np.count_nonzero(np.abs(rate - at) <= half))
    return near / len(rate) / width


def threshold(rate: Floats, size: Ints, downloads: float) -> float:
    """Return the rate p_t of the site at which the downloads run out when sites are downloaded by rate.

    If they run out between two sites it is the mean of their rates; if they suffice for all sites it is -inf.

    >>> threshold(np.array([0.4, 0.7, 0.1]), np.array([100, 100, 100]), 150)
    0.4
    >>> threshold(np.array([0.4, 0.7, 0.1]), np.array([100, 100, 100]), 200)
    0.25
    """
    order = np.argsort(-rate, kind="stable")
    filled = np.cumsum(size[order])
    last = int(np.searchsorted(filled, downloads))
    if last >= len(order) or (last == len(order) - 1 and filled[last] <= downloads):
        return float("-inf")
    if filled[last] <= downloads:
        return float(rate[order[last : last + 2]].mean())
    return float(rate[order[last]])


def interval(found: Floats, answered: Floats | Ints, confidence: float) -> tuple[Floats, Floats]:
    """Return Wilson's confidence interval of each group's share of changed visits; 0 to 1 without an answer.

    If `found` is a sum of values between 0 and 1, the interval is never too narrow: no such value varies more than one
    that is 0 or 1.

    >>> low, high = interval(np.array([0.0, 5.0]), np.array([10, 10]), 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.237], [0.278, 0.763])
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    n = np.maximum(answered, 1)
    share = found / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(np.maximum(share * (1 - share), 0) / n + z * z / (4 * n * n))
    none = answered == 0
    return np.where(none, 0.0, np.maximum(centre - half, 0)), np.where(none, 1.0, np.minimum(centre + half, 1))
