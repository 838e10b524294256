"""How many pages of a site tell enough about it, and where the line between good and poor sites lies (Q §2.6, §2.7).

A larger sample finds the best sites more surely and leaves less to download from them. The lines here are the square
root rule, the rule that uses what is known of the sites, the confidence interval and the threshold of adaptive
sampling. No policy itself.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.papers.site_sampling import Deck, Level, site_rates
from recrawl.errors import UsageError

Floats = NDArray[np.float64]


def check_sample(sample: str | int, policy: str, *words: str) -> str:
    """The parameter `sample` as text: one of the words, or a whole number over 0."""
    text = str(sample)
    if text in words or (text.isdecimal() and int(text) > 0):
        return text
    raise UsageError(f"{policy}'s sample is {', '.join(words)} or a number of pages per site over 0, not '{text}'")


def sample_size(sample: str, book: Book, deck: Deck, level: Level, budget: int) -> tuple[int, int]:
    """The pages to sample of each group, and the most in all: half of the budget, unless a number was asked for."""
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
    """√(N·r): N pages per site, r the share of all pages that can be downloaded (T §6.2).

    >>> root_sample(1000, 0.1)
    10
    """
    return max(1, round(float(np.sqrt(pages * share))))


def optimal_sample(pages: float, share: float, rate: Floats, size: NDArray[np.int64]) -> int | None:
    """√(N·r·f(p_t) / (6·(p̄_r - p̄))), once the rates p of the sites are known (Q §2.6); None when it says nothing.

    p_t is the rate at which the sites above fill the downloads, f the density of rates there, p̄_r the mean rate of the
    sites above it and p̄ of all. Rates that are spread evenly over 0 to 1 make it √(N·r / (3·(1 - r))):

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
    """How densely the rates lie around one: the share of them in a window, by the window's width inside 0 to 1.

    The window narrows with their number as usual for a box kernel (1.84 standard deviations, times n^(-1/5)).
    """
    half = max(0.01, 1.84 * float(rate.std()) * float(len(rate)) ** -0.2)
    width: float = min(1.0, at + half) - max(0.0, at - half)
    near = int(np.count_nonzero(np.abs(rate - at) <= half))
    return near / len(rate) / width


def threshold(rate: Floats, size: NDArray[np.int64], downloads: float) -> float:
    """The rate p_t of the site with which the downloads are used up when the best sites are downloaded whole.

    Halfway to the next site where they end between two; -inf where they suffice for all.

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


def interval(found: Floats, answered: NDArray[np.int64], confidence: float) -> tuple[Floats, Floats]:
    """Between which shares the true one lies with this confidence (Wilson's interval; 0 to 1 without an answer).

    Where what is found is a sum of values between 0 and 1 it is wider than need be, never narrower: no such value
    varies more than one that is 0 or 1.

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
