"""PageRank of the pages in the book (T eq. 9; spec S5, K6): how likely a person who follows links at random is there.

    rank(p) = (1 - damping) / N + damping * sum of rank(q) / links(q) over the pages q that link to p

Power iteration on the links as they lie in the book, without turning them. A page without links would let its rank
drain away; it is taken to link to every page alike, so that the ranks always sum to 1. Every few rounds the ranks leap
to where the last steps are heading, which halves the number of rounds. Leaps come with no proof, plain rounds do: each
brings the ranks nearer by the factor `damping`. So the second half of the rounds allowed is without leaps.
"""

from __future__ import annotations

import numpy as np
import scipy  # its parts load when first used: few commands rank pages
from numpy.typing import NDArray

from recrawl.book import LinkGraph

TOP = 10
"""The highest value of `log_scale`."""
_EVEN = 1e-6
"""Ranks whose logarithms lie closer together than this are equal: they differ by rounding alone."""
_LEAP = 6
"""Rounds from one leap to the next."""


def pagerank(
    links: LinkGraph,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-7,
    start: NDArray[np.float64] | None = None,
    most: int = 1000,
) -> NDArray[np.float64]:
    """One rank per page; they sum to 1.

    Parameters
    ----------
    links
        Who links to whom. A link that is there twice counts twice.
    damping
        The chance to follow a link rather than to start anew anywhere; 0 to less than 1.
    tolerance
        Iteration ends when the ranks, all together, move by less than this in a round. What is then still missing is
        at most damping / (1 - damping) times as much.
    start
        Ranks to start from, as of an earlier state of the links: the nearer they are, the fewer rounds are needed.
        May be shorter than there are pages, new ones being last.
    most
        Rounds after which to stop in any case. 1000 are enough for any links at the usual damping.

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
    # Row numbers as small as the column numbers, or scipy would widen and copy the latter.
    rows = links.start.astype(np.int32) if len(links.target) < 2**31 else links.start
    graph = scipy.sparse.csr_array((np.ones(len(links.target)), links.target, rows), shape=(pages, pages))
    onto = graph.T
    share = damping / np.maximum(np.diff(links.start), 1)
    ranks = _begun(start, pages)
    step = ranks
    for turn in range(most):
        new: NDArray[np.float64] = onto @ (ranks * share)
        # What did not travel along a link: fresh starts, and all that stood on pages without links.
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
    """Where the steps are heading, if each is the same part of the one before, as those of power iteration become."""
    # Sums rather than `np.dot`, whose threads cost more than they bring where cores are busy.
    along, length = float((step * before).sum()), float((before * before).sum())
    part = float(np.clip(along / max(length, 1e-300), -damping, damping))
    # Never below what every page has at least; that also keeps a leap too far from doing harm.
    leapt = np.maximum(ranks + step * (part / (1.0 - part)), (1.0 - damping) / len(ranks))
    leapt /= leapt.sum()
    return leapt


def log_scale(ranks: NDArray[np.float64]) -> NDArray[np.int64]:
    """PageRank as whole numbers from 0 to 10, as the toolbars of 2007 showed it (spec S5).

    Ranks of web pages spread over orders of magnitude, so the scale counts in powers: from the lowest rank to the
    highest it has 11 steps, each the same factor over the one before. Which factor the toolbars had was never said;
    here it is the one that gives the highest page 10 and the lowest 0. If all ranks are equal, no page is more
    popular than the rest: all have 0.

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
    """The first guess: even, or what is given with an even share for each page that it lacks."""
    ranks = np.full(pages, 1.0 / pages)
    if start is not None:
        ranks[: len(start)] = start
    ranks /= ranks.sum()
    return ranks
