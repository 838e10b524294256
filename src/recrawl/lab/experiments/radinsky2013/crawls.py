"""The crawls of R's figure 8: machines trained once on observed days, and policies that learn as they crawl.

A crawl of R (§8.3): for some days a share of the pages, drawn at random, is visited; then the methods are trained,
once; then the crawl begins, and each day the same share is drawn in proportion to the probability of change. All
methods see the same first days. Between visits a page counts as it was at the last one, and only a visit gives a label.

An online crawl runs a policy of `recrawl.choose` from the first day on; it learns from its own visits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.choose import make_policy
from recrawl.choose.protocol import needs_of
from recrawl.columns import DAY, Flags, Floats, Ints
from recrawl.lab.predict.days import Days, as_history
from recrawl.lab.predict.frozen import FrozenMachines
from recrawl.lab.predict.methods import PredictionSetting
from recrawl.lab.replays.replay import Setup, Web
from recrawl.learn.experts.machine_state import log_loss
from recrawl.loop import run_cycle

_WARM_UP = 3
"""First days on which all pages are visited: features need a page's last two versions."""

Predictor = Callable[[Days, int], Floats]
"""From what is known and a day: the probability of each page, NaN where the method abstains."""


@dataclass(slots=True)
class Losses:
    """The log loss of predictions on the visits of a crawl: of the method, and of the frequency for the same visits."""

    visits: int = 0
    predicted: int = 0
    """Visits whose page the machines predicted; the others are not compared."""
    method: float = 0.0
    frequency: float = 0.0

    def add(self, method: Floats, frequency: Floats, changed: Flags) -> None:
        """Add visits; NaN where the machines abstained."""
        known = np.isfinite(method)
        self.visits += len(known)
        self.predicted += int(known.sum())
        self.method += float(log_loss(method[known], changed[known]).sum())
        self.frequency += float(log_loss(frequency[known], changed[known]).sum())


@dataclass(frozen=True, slots=True)
class CrawlPlan:
    """A crawl: `observed` days of random visits, then `crawled` days by a method."""

    method: str
    """random, frequency, 2d or 3d."""
    share: float
    observed: int
    crawled: int
    seed: int
    k: int = 20
    losses: Losses = field(default_factory=Losses)


def frozen_crawl(days: Days, plan: CrawlPlan) -> Flags:
    """Page by day of the crawl: whether the copy is fresh at the end of the day, after its visits.

    >>> days = Days(["http://a.example/"], ["a.example"], np.zeros(1, np.int32), np.arange(3), *[np.ones((1, 3), bool)],
    ...     np.array([[1, 2, 3]]), *[np.zeros((1, 3), bool)] * 2, "text", *[np.zeros((1, 3), np.int32)] * 3, None)
    >>> frozen_crawl(days, CrawlPlan("random", share=1.0, observed=1, crawled=2, seed=1)).tolist()
    [[True, True]]
    """
    rng = np.random.default_rng([plan.seed, 83])
    visits = np.zeros(days.seen.shape, np.bool_)
    visits[:, :_WARM_UP] = True
    for day in range(_WARM_UP, plan.observed):
        visits[_draw(np.ones(len(days)), days.seen[:, day], plan.share, rng), day] = True
    known = days.visited(visits)
    frequency = _frequency(known, plan.observed)
    machines = _machines(known, plan)
    for day in range(plan.observed, plan.observed + plan.crawled):
        found = np.full(len(days), np.nan) if machines is None else machines(carried_forward(known), day)
        base = np.ones(len(days)) if plan.method == "random" else frequency
        chosen = _draw(np.where(np.isfinite(found), found, base), days.seen[:, day], plan.share, rng)
        visits[chosen, day] = True
        known = days.visited(visits)
        if plan.method in ("2d", "3d"):
            plan.losses.add(found[chosen], frequency[chosen], known.changed[chosen, day])
    return _fresh(days, visits)[:, plan.observed : plan.observed + plan.crawled]


def _machines(known: Days, plan: CrawlPlan) -> Predictor | None:
    if plan.method not in ("2d", "3d"):
        return None
    setting = PredictionSetting(plan.method, k=plan.k, train=plan.observed - 1, seed=plan.seed)
    return FrozenMachines.fit(carried_forward(known), setting, plan.observed).probability


def _frequency(known: Days, before: int) -> Floats:
    """The share of a page's labelled visits before a day that found a change, with Laplace smoothing."""
    labelled = known.labelled[:, :before].sum(axis=1)
    return np.asarray((known.changed[:, :before].sum(axis=1) + 1) / (labelled + 2), np.float64)


def carried_forward(known: Days) -> Days:
    """What a crawler knows: between visits the last version observed; labels only where there was a visit.

    R's machines need a page's content on the day before. At a tenth of the pages per day it is rarely known from a
    visit on that very day, and they would abstain almost everywhere.
    """
    day = np.arange(known.seen.shape[1])
    last = np.maximum.accumulate(np.where(known.seen, day, -1), axis=1)
    rows, safe = np.arange(len(known))[:, None], np.maximum(last, 0)

    def carried(column: NDArray[Any]) -> NDArray[Any]:
        return np.where(last >= 0, column[rows, safe], column)

    return replace(
        known,
        seen=last >= 0,
        version=carried(known.version),
        words=carried(known.words),
        size=carried(known.size),
        text=carried(known.text),
        lists=None if known.lists is None else carried(known.lists),
    )


def _draw(probability: Floats, observable: Flags, share: float, rng: np.random.Generator) -> Ints:
    """Pages drawn without replacement in proportion to their probability."""
    pages = np.flatnonzero(observable)
    key = np.log(rng.random(len(pages))) / np.maximum(probability[pages], 1e-6)
    return pages[np.argsort(-key)[: max(1, round(share * len(pages)))]]


def _fresh(days: Days, visits: Flags) -> Flags:
    """Page by day: whether the copy of the last visit is the page of the day."""
    stored = np.full(len(days), -1, np.int64)
    fresh = np.zeros(days.seen.shape, np.bool_)
    for day in range(days.seen.shape[1]):
        visited = visits[:, day] & days.seen[:, day]
        stored[visited] = days.version[visited, day]
        fresh[:, day] = stored == days.version[:, day]
    return fresh


def online_crawl(days: Days, policy: str, share: float, total: int, seed: int) -> Flags:
    """Page by day: whether the copy is fresh, where a policy chooses and learns from the first day on."""
    chooser, history = make_policy(policy), as_history(days)
    setup = Setup(budget=max(1, round(share * len(days))), cycle=DAY, cycles=total - 1, seed=seed)
    web = Web(history, setup)
    book = web.first_book()
    fresh = np.ones((len(days), total), np.bool_)
    for day in range(1, total):
        web.begin(day, book, needs_of(chooser))
        run_cycle(chooser, chooser, web, book, setup.budget, seed * 1_000_003 + day, partial(web.recorded, book))
        fresh[:, day] = ~np.isfinite(web.timeline.since)
    return fresh
