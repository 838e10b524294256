"""B's world, generated: 61 news sites with B's number of pages and change rate at each depth; no HTML.

B prints how many pages lie at most 1, 2 and 3 links from the anchors and what share of them had changed (table 1), how
many pages there are in all, and what share of those uniform visits found changed. The rest is assumed:

- Beyond depth 3 the number of pages grows from depth to depth as from depth 2 to 3, until all pages are placed.
- Pages beyond depth 3 change at one rate: that at which uniform visits, one pass apart, find B's 22 %.
- B does not print how pages of one depth differ. Two assumptions bracket it. `alike`: all change at one rate.
  `two-kinds`: some change every three hours, the others as rarely as pages beyond depth 3.
- Each page is linked from one random page of the depth above. Pages neither appear nor disappear.

So table 1 and the success rate of uniform visits agree because the world was fitted to them. Not fitted are the daily
shares of figure 2, the durations, the delays, the number of requests, and the recommended n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from recrawl.columns import DAY, HOUR, Flags, Floats, Int32s, Ints
from recrawl.errors import UsageError
from recrawl.lab.experiments.barbosa2003 import published as b
from recrawl.lab.histories.history import History, LinkLists, assemble

START = 1_030_838_400.0
"""1 September 2002, UTC."""
FAST_INTERVAL = 3 * HOUR
"""Seconds between changes of fast pages."""

RateMix = Literal["alike", "two-kinds"]
"""How the pages of one depth differ: all at one rate, or fast and slow pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BWorld:
    """Parameters of the world; `build` always gives the same world for the same parameters."""

    sites: int = b.SITES
    """Fewer sites make a smaller world; the size of a site stays."""
    days: float = 21.0
    mix: RateMix = "alike"
    seed: int = 1

    def __post_init__(self) -> None:
        if self.sites < 1 or not 0 < self.days < float("inf"):
            raise UsageError(
                f"B's world needs at least 1 site and more than 0 days, not {self.sites} and {self.days:g}"
            )

    def build(self) -> History:
        """Generate the history; its `facts` hold each page's depth, and pages of depth 0 are the anchors."""
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
            START + time,
            version,
            change="given",
            carries=frozenset(),
            links=LinkLists(page.astype(np.int32), starts, target),
        )
        history.facts["depth"] = depth.astype(np.float64)
        return history

    def _changes(self, depth: Ints, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Pages and times of all rows, the first of each page at time 0."""
        rate, fast = rates(depth, self.mix, rng)
        seconds = self.days * DAY
        counts = rng.poisson(rate * seconds)
        pages = np.repeat(np.arange(len(depth)), counts)
        times = rng.uniform(0, seconds, len(pages))
        fast_pages = np.flatnonzero(fast)
        steps = np.arange(int(seconds // FAST_INTERVAL)) * FAST_INTERVAL
        ticks = rng.uniform(0, FAST_INTERVAL, len(fast_pages))[:, None] + steps
        page = np.concatenate([np.arange(len(depth)), pages, np.repeat(fast_pages, len(steps))])
        time = np.concatenate([np.zeros(len(depth)), times, ticks.ravel()])
        order = np.lexsort((time, page))
        return page[order], time[order]


def layer_sizes() -> list[int]:
    """Pages at each depth over all 61 sites, from the anchors at depth 0 to the deepest."""
    by_depth = [pages for _, pages, _ in b.by_depth()]
    sizes = [b.SITES, by_depth[0] - b.SITES, *by_depth[1:]]
    growth = by_depth[2] / by_depth[1]
    while sum(sizes) < b.PAGES:
        sizes.append(min(round(sizes[-1] * growth), b.PAGES - sum(sizes)))
    return sizes


def slow_rate(mix: RateMix) -> float:
    """Changes per second of pages beyond depth 3, so that uniform visits one pass apart find what B found."""
    pass_seconds = b.PAGES / b.PER_MINUTE * 60
    near_pages = sum(pages for _, pages, _ in b.by_depth())
    low, high = 0.0, 1.0 / DAY
    for _ in range(60):  # bisection: the share found grows with the rate
        rate = (low + high) / 2
        unchanged = np.exp(-rate * pass_seconds)
        changed_pages = (b.PAGES - near_pages) * (1 - unchanged)
        for _, pages, share in b.by_depth():
            fast = _fast_share(share, rate)
            changed = 1 - (1 - share) ** (pass_seconds / (b.EVERY_HOURS * HOUR))
            changed_pages += pages * (changed if mix == "alike" else fast + (1 - fast) * (1 - unchanged))
        low, high = (rate, high) if changed_pages < b.UNIFORM_SUCCESS * b.PAGES else (low, rate)
    return (low + high) / 2


def rates(depth: Ints, mix: RateMix, rng: np.random.Generator) -> tuple[Floats, Flags]:
    """Each page's random changes per second, and which pages are fast."""
    slow = slow_rate(mix)
    rate, fast = np.full(len(depth), slow), np.zeros(len(depth), bool)
    for layer, _, share in b.by_depth():
        at_depth = depth == layer if layer > 1 else depth <= 1
        if mix == "alike":
            rate[at_depth] = -np.log(1 - share) / (b.EVERY_HOURS * HOUR)
        else:
            fast[at_depth] = rng.random(int(at_depth.sum())) < _fast_share(share, slow)
    return rate, fast


def _fast_share(share: float, slow: float) -> float:
    """The share of fast pages at a depth for this share of its pages to have changed after six hours."""
    slow_change = 1 - np.exp(-slow * b.EVERY_HOURS * HOUR)
    return float((share - slow_change) / (1 - slow_change))


def _tree(counts: list[int], sites: int, rng: np.random.Generator) -> tuple[Ints, Int32s]:
    """Start of each page's links, and the links: every page is linked from one page of the depth above."""
    offsets = np.cumsum([0, *counts])
    size = int(offsets[-1])
    parent = [rng.integers(offsets[d - 1], offsets[d], (sites, counts[d])) for d in range(1, len(counts))]
    parents = np.concatenate(parent, axis=1) + np.arange(sites)[:, None] * size
    children = (np.arange(counts[0], size) + np.arange(sites)[:, None] * size).ravel()
    order = np.argsort(parents.ravel(), kind="stable")
    degree = np.bincount(parents.ravel(), minlength=sites * size)
    return np.concatenate(([0], np.cumsum(degree))).astype(np.int64), children[order].astype(np.int32)
