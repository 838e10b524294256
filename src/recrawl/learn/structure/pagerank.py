"""PageRank of the pages in the book (T eq. 9; spec S5, K6).

    rank(p) = (1 - damping) / N + damping * sum of rank(q) / links(q) over the pages q that link to p

Power iteration on the links of the book, without reversing them. A page without links counts as linking to every page
equally, so that the ranks always sum to 1. Every few rounds the ranks are extrapolated from the last two steps, which
halves the number of rounds. Only rounds without extrapolation are proven to converge, by the factor `damping` each; so
the second half of the allowed rounds is without.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.book import LinkGraph

TOP = 10
"""The highest value of `log_scale`."""
_EVEN = 1e-6
"""Ranks whose logarithms differ by less than this are equal up to rounding."""
_LEAP = 6
"""Rounds between extrapolations."""


def pagerank(
    links: LinkGraph,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-7,
    start: NDArray[np.float64] | None = None,
    most: int = 1000,
) -> NDArray[np.float64]:
    """Return one rank per page; they sum to 1.

    Parameters
    ----------
    links
        The link graph. A link that occurs twice counts twice.
    damping
        The probability of following a link rather than jumping to a random page; from 0 to below 1.
    tolerance
        Iteration ends when the sum of the ranks' changes in a round is below this. The remaining error is at most
        damping / (1 - damping) times as much.
    start
        Ranks to start from, of an earlier state of the links; close ones save rounds. May be shorter than the number of
        pages, if new pages come last.
    most
        Maximum rounds. 1000 suffice for any links at the usual damping.

    Example
    -------
    >>> ring = LinkGraph(np.array([0, 1, 2, 3]), np.array([1, 2, 0], np.int32))
    >>> pagerank(ring).round(3).tolist()
    [0.333, 0.333, 0.333]
    >>> star = LinkGraph(np.array([0, 0, 1, 2]), np.array([0, 0], np.int32))
    >>> pagerank(star).round(3).tolist()
    [0.574, 0.213, 0.213]
    """
    pages = len(links)
    if not pages:
        return np.zeros(0)
    target = links.target.astype(np.intp)  # otherwise each round would convert them
    out = np.diff(links.start)
    share = damping / np.maximum(out, 1)
    ranks = _begun(start, pages)
    step = ranks
    for turn in range(most):
        new: NDArray[np.float64] = np.bincount(target, np.repeat(ranks * share, out), pages).astype(np.float64)
        # Random jumps, and the rank of pages without links.
        new += (1.0 - new.sum()) / pages
        before, step = step, new - ranks
        moved = float(np.abs(step).sum())
        if moved < tolerance:
            return new
        if turn % _LEAP == _LEAP - 1 and turn < most // 2:
            new = _leapt(new, step, before, damping)
        ranks = new
    return ranks


def _leapt(
    ranks: NDArray[np.float64], step: NDArray[np.float64], before: NDArray[np.float64], damping: float
) -> NDArray[np.float64]:
    """Extrapolate the ranks, assuming that each step is the same multiple of the previous one."""
    # Sums rather than `np.dot`, whose threads are slower on busy machines.
    along, length = float((step * before).sum()), float((before * before).sum())
    part = float(np.clip(along / max(length, 1e-300), -damping, damping))
    # At least the minimum rank of any page, which also limits the harm of a bad extrapolation.
    leapt = np.maximum(ranks + step * (part / (1.0 - part)), (1.0 - damping) / len(ranks))
    leapt /= leapt.sum()
    return leapt


def log_scale(ranks: NDArray[np.float64]) -> NDArray[np.int64]:
    """Convert PageRank to whole numbers from 0 to 10, as the browser toolbars of 2007 showed it (spec S5).

    Ranks spread over orders of magnitude, so the scale is logarithmic: 11 steps of the same factor from the lowest rank
    to the highest. The toolbars' factor was never published; here the highest page has 10 and the lowest 0. If all
    ranks are equal, all pages have 0.

    >>> log_scale(np.array([0.001, 0.01, 0.1, 1.0])).tolist()
    [0, 3, 7, 10]
    >>> log_scale(np.array([0.5, 0.5])).tolist()
    [0, 0]
    """
    if not len(ranks):
        return np.zeros(0, np.int64)
    power = np.log(ranks)
    power -= power.min()
    top = power.max()
    if top < _EVEN:
        return np.zeros(len(ranks), np.int64)
    steps: NDArray[np.float64] = np.minimum(power / top * (TOP + 1), TOP)
    return steps.astype(np.int64)


def _begun(start: NDArray[np.float64] | None, pages: int) -> NDArray[np.float64]:
    """Return the starting ranks: equal ones, or the given ones with an equal share for each new page."""
    ranks = np.full(pages, 1.0 / pages)
    if start is not None:
        ranks[: len(start)] = start
    ranks /= ranks.sum()
    return ranks
