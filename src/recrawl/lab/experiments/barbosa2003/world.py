"""B's world, generated: 61 news sites with as many pages at each depth, changing as often, as B prints; no HTML.

B prints how many pages lie at most 1, 2 and 3 links from the anchors and what share of them had changed (table 1), how
many pages there are in all, and what share of those uniform visits found changed. The rest is assumed:

- Beyond depth 3 each depth has as many times the pages of the one before as depth 3 has of depth 2, until all are used.
- Pages beyond depth 3 change at one rate: the one with which uniform visits, a whole pass apart, find B's 22 %.
- How the pages of one depth differ is not printed. Two natures bracket it. `alike`: all change at one rate.
  `two-kinds`: some change all the time, which is every three hours, the others as seldom as pages beyond depth 3.
- Each page is linked by one page of the depth above it, drawn at random. Pages neither come nor go.

So table 1 and the success rate of uniform visits come out as printed because they were put in. What was not put in:
the daily shares of figure 2, the times, the delays, the number of requests, and the n that is recommended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from recrawl.columns import DAY, HOUR, Flags, Floats, Int32s, Ints
from recrawl.errors import UsageError
from recrawl.lab.experiments.barbosa2003 import published as b
from recrawl.lab.histories.history import History, LinkLists, assemble

STARTS = 1_030_838_400.0
"""1 September 2002, UTC."""
RESTLESS = 3 * HOUR
"""How often pages that change all the time do."""

Nature = Literal["alike", "two-kinds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BWorld:
    """The world by its parameters; `build` makes it, always the same from the same."""

    sites: int = b.SITES
    """Fewer make a smaller world of sites of the same size."""
    days: float = 21.0
    nature: Nature = "alike"
    seed: int = 1

    def __post_init__(self) -> None:
        if self.sites < 1 or not 0 < self.days < float("inf"):
            raise UsageError("B's world needs at least one site and some days")

    def build(self) -> History:
        """The history; its `facts` hold each page's depth, and pages of depth 0 are the anchors."""
        rng = np.random.default_rng(self.seed)
        counts = [max(1, round(pages / b.SITES)) for pages in layer_sizes()]
        per_site = np.repeat(np.arange(len(counts)), counts)
        depth = np.tile(per_site, self.sites)
        urls = [
            f"http://news{s:02}.example/{d}/{k}" for s in range(self.sites) for k, d in enumerate(per_site.tolist())
        ]
        page, time = self._changes(depth, rng)
        version = np.arange(len(page)) - np.searchsorted(page, page)
        starts, target = _tree(counts, self.sites, rng)
        history = assemble(
            urls,
            page,
            STARTS + time,
            version,
            change="given",
            carries=frozenset(),
            links=LinkLists(page.astype(np.int32), starts, target),
        )
        history.facts["depth"] = depth.astype(np.float64)
        return history

    def _changes(self, depth: Ints, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Pages and times of all rows, the first of each page at time 0."""
        rate, restless = rates(depth, self.nature, rng)
        seconds = self.days * DAY
        often = rng.poisson(rate * seconds)
        pages = np.repeat(np.arange(len(depth)), often)
        times = rng.uniform(0, seconds, len(pages))
        busy = np.flatnonzero(restless)
        steps = np.arange(int(seconds // RESTLESS)) * RESTLESS
        ticks = rng.uniform(0, RESTLESS, len(busy))[:, None] + steps
        page = np.concatenate([np.arange(len(depth)), pages, np.repeat(busy, len(steps))])
        time = np.concatenate([np.zeros(len(depth)), times, ticks.ravel()])
        order = np.lexsort((time, page))
        return page[order], time[order]


def layer_sizes() -> list[int]:
    """Pages of each depth over all 61 sites, from the anchors, depth 0, to the deepest."""
    known = [pages for _, pages, _ in b.by_depth()]
    sizes = [b.SITES, known[0] - b.SITES, *known[1:]]
    growth = known[2] / known[1]
    while sum(sizes) < b.PAGES:
        sizes.append(min(round(sizes[-1] * growth), b.PAGES - sum(sizes)))
    return sizes


def slow_rate(nature: Nature) -> float:
    """Changes a second of pages beyond depth 3, so that uniform visits a pass apart find what B found."""
    whole = b.PAGES / b.PER_MINUTE * 60
    close = sum(pages for _, pages, _ in b.by_depth())
    low, high = 0.0, 1.0 / DAY
    for _ in range(60):  # by halving: what is found grows with the rate
        rate = (low + high) / 2
        still = np.exp(-rate * whole)
        found = (b.PAGES - close) * (1 - still)
        for _, pages, share in b.by_depth():
            restless = _restless_share(share, rate)
            moved = 1 - (1 - share) ** (whole / (b.EVERY_HOURS * HOUR))
            found += pages * (moved if nature == "alike" else restless + (1 - restless) * (1 - still))
        low, high = (rate, high) if found < b.UNIFORM_SUCCESS * b.PAGES else (low, rate)
    return (low + high) / 2


def rates(depth: Ints, nature: Nature, rng: np.random.Generator) -> tuple[Floats, Flags]:
    """Each page's changes a second that come at random, and which pages change all the time besides."""
    slow = slow_rate(nature)
    rate, restless = np.full(len(depth), slow), np.zeros(len(depth), bool)
    for layer, _, share in b.by_depth():
        here = depth == layer if layer > 1 else depth <= 1
        if nature == "alike":
            rate[here] = -np.log(1 - share) / (b.EVERY_HOURS * HOUR)
        else:
            restless[here] = rng.random(int(here.sum())) < _restless_share(share, slow)
    return rate, restless


def _restless_share(share: float, slow: float) -> float:
    """How many pages of a depth must change all the time for this share to have changed after six hours."""
    anyway = 1 - np.exp(-slow * b.EVERY_HOURS * HOUR)
    return float((share - anyway) / (1 - anyway))


def _tree(counts: list[int], sites: int, rng: np.random.Generator) -> tuple[Ints, Int32s]:
    """Where each page's links begin, and the links: every page but the anchors is linked by one of the depth above."""
    begins = np.cumsum([0, *counts])
    size = int(begins[-1])
    parent = [rng.integers(begins[d - 1], begins[d], (sites, counts[d])) for d in range(1, len(counts))]
    parents = np.concatenate(parent, axis=1) + np.arange(sites)[:, None] * size
    children = (np.arange(counts[0], size) + np.arange(sites)[:, None] * size).ravel()
    order = np.argsort(parents.ravel(), kind="stable")
    degree = np.bincount(parents.ravel(), minlength=sites * size)
    return np.concatenate(([0], np.cumsum(degree))).astype(np.int64), children[order].astype(np.int32)
