"""How much pages matter, and what visits cost: whatever people say becomes columns that no policy can be hurt by.

Importance is `even` (all alike), `pagerank` (by the links between pages), `file:PATH` (weights that somebody chose) or
`clicks:PATH` (how often pages were asked for; one is added to every page, so that what was never clicked still counts).
Weights are not negative, finite, at most a thousand times the median, and 1 on average; what is not is put right, and
`Ignored` says how much of it there was.

Cost is `visit` (all alike) or `bytes` (what a visit is expected to transfer), over zero and 1 on average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import UsageError

Floats = NDArray[np.float64]

KINDS = ("even", "pagerank", "file:PATH", "clicks:PATH")
COSTS = ("visit", "bytes")
MOST = 1000.0
"""No page matters or costs more than so many times the median page."""
_LEAST = 1e-100
"""Weights below count as this, and those above its inverse as that."""
OVERHEAD = 1000.0
"""Bytes of a visit beyond the page: what is asked, and the head of the answer; also what a 304 costs."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """How many weights could not be used as they were."""

    unreadable: int = 0
    negative: int = 0
    infinite: int = 0
    unknown: int = 0
    cut: int = 0

    def __str__(self) -> str:
        """
        >>> str(Ignored(negative=2, cut=1))
        '2 are negative, 1 is over 1,000 times the median and cut to that'
        """
        words = {
            "unreadable": "no number or no address",
            "negative": "negative",
            "infinite": "infinite",
            "unknown": "of addresses that are not known here",
            "cut": f"over {MOST:,.0f} times the median and cut to that",
        }
        counts = ((getattr(self, name), text) for name, text in words.items())
        return ", ".join(f"{many:,} {'is' if many == 1 else 'are'} {text}" for many, text in counts if many)


def kind_of(text: str) -> tuple[str, str]:
    """Kind and path of an importance as people write it.

    >>> kind_of("pagerank"), kind_of("clicks:log.csv")
    (('pagerank', ''), ('clicks', 'log.csv'))
    """
    kind, colon, path = text.strip().partition(":")
    if (kind in ("even", "pagerank") and not colon) or (kind in ("file", "clicks") and path.strip()):
        return kind, path.strip()
    raise UsageError(f"importance is {', '.join(KINDS[:-1])} or {KINDS[-1]}, not '{text}'")


def matched(
    pages: NDArray[np.int64], keys: NDArray[np.int64], weight: Floats, *, add: bool, missing: float
) -> tuple[Floats, int]:
    """Weights of pages, which are found by key, and how many keys mean none. `add` adds up what is said of one page.

    A page of which nothing is said has the weight `missing`, to which is added when there is something.

    >>> weight, unknown = matched(np.array([5, 3, 9]), np.array([3, 9, 3, 4]), np.arange(4.0), add=True, missing=1.0)
    >>> weight.tolist(), unknown
    ([1.0, 3.0, 2.0], 1)
    """
    order = np.argsort(pages)
    place = np.searchsorted(pages, keys, sorter=order)
    hit = place < len(pages)
    hit[hit] = pages[order[place[hit]]] == keys[hit]
    found = order[place[hit]]
    told = np.full(len(pages), missing)
    if add:
        told += np.bincount(found, weight[hit], len(pages))
    else:
        told[found] = weight[hit]  # of several, the last one counts
    return told, int(np.count_nonzero(~hit))


def tempered(raw: Floats, missing: float = 1.0) -> tuple[Floats, Ignored]:
    """Weights that do no harm: what is no weight is as if nothing had been said.

    >>> weight, ignored = tempered(np.array([1.0, 3.0, -2.0, np.nan, np.inf, 1e9]))
    >>> weight.round(3).tolist(), str(ignored)
    ([0.006, 0.018, 0.006, 0.006, 0.006, 5.958], '1 is no number or no address, 1 is negative, 1 is infinite, \
1 is over 1,000 times the median and cut to that')
    """
    lost, below, beyond = np.isnan(raw), raw < 0, np.isinf(raw) & (raw > 0)
    weight = np.where(lost | below | beyond, missing, raw)
    weight = np.where(weight > 0, np.clip(weight, _LEAST, 1 / _LEAST), 0.0)  # or quotients and sums would be infinite
    usual = float(np.median(weight[weight > 0])) if (weight > 0).any() else 1.0
    weight = weight / usual
    cut = weight > MOST
    weight = np.minimum(weight, MOST)
    mean = float(weight.mean()) if len(weight) else 0.0
    counts = (int(np.count_nonzero(some)) for some in (lost, below, beyond, cut))
    unreadable, negative, infinite, over = counts
    even = weight / mean if mean > 0 else np.ones(len(weight))
    return even, Ignored(unreadable=unreadable, negative=negative, infinite=infinite, cut=over)


def arrivals(links: Floats, changes: Floats, site: NDArray[np.integer]) -> Floats:
    """New links that a change of each page brings; a page that was seen to change little goes by its site.

    >>> arrivals(np.array([9.0, 0.0, 0.0]), np.array([3.0, 3.0, 0.0]), np.zeros(3, int)).round(2).tolist()
    [2.61, 0.36, 1.43]
    """
    many = int(site.max(initial=-1)) + 1
    usual = (np.bincount(site, links, many) + 1.0) / (np.bincount(site, changes, many) + 1.0)
    brings: Floats = (links + usual[site]) / (changes + 1.0)
    return brings


def costs(size: NDArray[np.integer], cheap: Floats | float = 0.0) -> Floats:
    """What visits cost in bytes, 1 on average; `cheap` is the chance of an answer without a page (a 304).

    A page of which no size is known is taken to have the median's.

    >>> costs(np.array([1000, 3000, 0])).tolist()
    [0.6666666666666666, 1.3333333333333333, 1.0]
    """
    known = size > 0
    bytes_ = np.where(known, size, np.median(size[known]) if known.any() else 0).astype(np.float64)
    cost, _ = tempered(OVERHEAD + bytes_ * (1.0 - np.clip(cheap, 0.0, 1.0)))
    return cost
