"""R's figure 8 (§8.3, spec L7): the freshness of a crawl that visits a share of the pages per day, as predicted.

R's methods are trained once, on what some days of random visits have shown, and not again during the crawl (`crawls`).
R visits a tenth of the pages per day, which gives a page few training examples; so a larger share is shown too, with
which the machines have enough. Beside them crawl policies that learn online. R does not print the values of the figure;
only its statements can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.choose import make_policy
from recrawl.choose.protocol import needs_of
from recrawl.columns import DAY, Flags, Floats, Ints
from recrawl.lab.experiments.radinsky2013 import published as r
from recrawl.lab.experiments.radinsky2013.settings import PredictionWorld, better, describe_test, progress_steps, worlds
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result, Row
from recrawl.lab.predict.days import Days, as_history
from recrawl.lab.predict.evaluation import often_flipping
from recrawl.lab.predict.methods import FrozenMachines, PredictionSetting
from recrawl.lab.predict.scores import paired
from recrawl.lab.replays.replay import Setup, Web
from recrawl.learn.experts.online_learner import log_loss
from recrawl.loop import run_cycle

# --------------------------------------------------------------------------------------------------------------------
# The crawls of R's figure 8: machines trained once on observed days, and policies that learn as they crawl.
#
# A crawl of R (§8.3): for some days a share of the pages, drawn at random, is visited; then the methods are trained,
# once; then the crawl begins, and each day the same share is drawn in proportion to the probability of change. All
# methods see the same first days. Between visits a page counts as it was at the last one, and only a visit gives a
# label.
#
# An online crawl runs a policy of `recrawl.choose` from the first day on; it learns from its own visits.


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


# --------------------------------------------------------------------------------------------------------------------


OBSERVED = {0.1: (50, 100, 150), 0.5: (30, 50, 100)}
"""By share of pages visited per day: after how many observed days machines are trained. A tenth is R's."""
CRAWLED = 15
"""Days of each crawl."""
FROZEN = {
    "random": "random",
    "frequency": "frequency (baseline)",
    "2d": "2D, trained once",
    "3d": "3D, trained once",
}
ONLINE = {
    "predicted(method=1d, pick=coin)": "own rate, online",
    "predicted(method=2d, pick=coin)": "2D, online",
    "predicted(method=3d, pick=coin)": "3D, online",
    "predicted(pick=coin)": "pooled, online (ours)",
}
_PAGES = 60
"""Pages at full scale, at most."""
_MIN_DECIDED = 0.5
"""Where machines decide less than this share of visits, nothing is claimed about them."""

Fresh = dict[tuple[float, int, str], Floats]
"""By share, observed days and method: one per page, the share of the crawl's days on which its copy was fresh."""


def fig_8(options: ExperimentOptions) -> Result:
    """Freshness by observed days, of methods trained once and of policies that learn online."""
    all_worlds = worlds(options, planted_days=max(map(max, OBSERVED.values())) + CRAWLED)
    step = progress_steps(options, len(all_worlds) * len(OBSERVED))
    result = Result([], worlds=[world.describe() for world in all_worlds])
    for world in all_worlds:
        days = _part(world, options)
        for share in OBSERVED:
            fresh, losses = _measure(days, share, range(1, options.seeds + 1), _observed_days(days, share))
            result.rows.extend(_rows(world, fresh, losses))
            result.claims.extend(_claims(world, share, fresh, losses))
            step()
    picture = Picture(
        "line", "days", "freshness", "Fig. 8: freshness by observed days", "observed days", "share of pages",
        colour="method", facet="crawl", zero=False,
    )  # fmt: skip
    headings = {"world": "world", "share": ">visited per day", "days": ">observed days", "method": "method"}
    headings |= {"freshness": ">freshness", "by_machines": ">by machines", "loss": ">log loss", "base": ">of frequency"}
    return replace(result, pictures=[picture], notes=[_note(options)], table=headings)


def _note(options: ExperimentOptions) -> str:
    pages = max(5, round(_PAGES * options.scale))
    return (
        f"At most {pages} pages that flip often and exist on all days; seeds: {options.seeds}. Methods "
        f"trained once crawl for {CRAWLED} days after the observed days, in which pages are visited at random; "
        "freshness is the mean over these days. Policies that learn online crawl from the first day on; their "
        "freshness is taken over the same days. All draw pages in proportion to the probability of change, as R does. "
        "*By machines* is the share of the crawl's visits whose page the machines predicted; elsewhere they abstained, "
        "and the page's frequency decided. Log loss compares both on these visits. R does not print the values. Tests "
        "are paired over pages."
    )


def _part(world: PredictionWorld, options: ExperimentOptions) -> Days:
    """A sample of the pages that flip often and exist on all days, so that all crawls have the same pages to visit."""
    total = max(map(max, OBSERVED.values())) + CRAWLED
    pages = np.flatnonzero(often_flipping(world.days) & world.days.seen[:, :total].all(axis=1))
    max_pages = max(5, round(_PAGES * options.scale))
    selected = pages[np.unique(np.linspace(0, len(pages) - 1, min(max_pages, len(pages))).astype(np.int64))]
    return world.days.take(selected)


def _observed_days(days: Days, share: float) -> list[int]:
    return [observed for observed in OBSERVED[share] if observed + CRAWLED <= days.seen.shape[1]]


def _measure(
    days: Days, share: float, seeds: Iterable[int], all_observed: list[int]
) -> tuple[Fresh, dict[tuple[float, int, str], Losses]]:
    """The freshness of every method after every number of observed days; and how well machines predicted."""
    fresh: Fresh = {}
    losses: dict[tuple[float, int, str], Losses] = {}
    seeds = list(seeds)
    for observed in all_observed:
        for method in FROZEN:
            known = losses.setdefault((share, observed, method), Losses())
            plans = [CrawlPlan(method, share, observed, CRAWLED, seed, r.K, known) for seed in seeds]
            fresh[share, observed, method] = np.mean([frozen_crawl(days, plan) for plan in plans], axis=(0, 2))
    if all_observed:
        total = max(all_observed) + CRAWLED
        for policy in ONLINE:
            runs = np.mean([online_crawl(days, policy, share, total, seed) for seed in seeds], axis=0)
            for observed in all_observed:
                fresh[share, observed, policy] = runs[:, observed : observed + CRAWLED].mean(axis=1)
    return fresh, losses


def _rows(world: PredictionWorld, fresh: Fresh, losses: dict[tuple[float, int, str], Losses]) -> list[Row]:
    names = FROZEN | ONLINE
    rows: list[Row] = []
    for key, values in fresh.items():
        share, observed, method = key
        loss = losses.get(key, Losses())
        rows.append(
            {
                "world": world.title,
                "crawl": f"{world.name}, {share:.0%} per day",
                "share": share,
                "method": names[method],
                "days": observed,
                "freshness": float(values.mean()),
                "by_machines": loss.predicted / loss.visits if loss.visits else None,
                "loss": loss.method / loss.predicted if loss.predicted else None,
                "base": loss.frequency / loss.predicted if loss.predicted else None,
            }
        )
    return rows


def _claims(
    world: PredictionWorld, share: float, fresh: Fresh, losses: dict[tuple[float, int, str], Losses]
) -> list[Claim]:
    """R's statements about the figure, and ours beside them."""
    statements = [
        ("Both 2D and 3D improve over the baseline after 50 days.", (("2d", "frequency"), ("3d", "frequency")), 50),
        ("3D is superior to 2D after 100 days.", (("3d", "2d"),), 100),
        (
            "(Ours) 3D that learns online is better than 3D trained once.",
            (("predicted(method=3d, pick=coin)", "3d"),),
            50,
        ),
    ]
    claims = []
    for says, pairs, after in statements:
        if (share, after, "3d") not in fresh:
            continue
        tests = [_test(fresh, share, after, one, other) for one, other in pairs]
        loss = {method: losses[share, after, method] for method in ("2d", "3d")}
        decided = min(one.predicted / max(one.visits, 1) for one in loss.values())
        holds = None if decided < _MIN_DECIDED else _all(tests)
        where = f"{world.title}, {share:.0%} per day"
        numbers = f"{'; '.join(map(_describe_pair, pairs, tests))}; by machines: {decided:.0%} of visits"
        claims.append(Claim.of("§8.3, fig. 8", says, where, holds, numbers, _why(loss, decided, holds)))
    return claims


def _why(losses: dict[str, Losses], decided: float, holds: bool | None) -> str:
    """The reason why a statement is open or does not hold, from the log loss of the machines in the same crawl."""
    if decided < _MIN_DECIDED:
        return f"machines decided {decided:.0%} of the visits only; elsewhere they had fewer than ten examples"
    if holds is None:
        return r.TOO_FEW
    parts = [f"{name} {one.method / one.predicted:.3f}, frequency {one.frequency / one.predicted:.3f}"
             for name, one in losses.items()]  # fmt: skip
    worse = [name for name, one in losses.items() if one.method >= one.frequency]
    if worse:
        names = " and ".join(worse)
        return f"tested: {names} predicted the visits no better than the frequency (log loss: {'; '.join(parts)})"
    return f"tested: the machines predicted the visits better (log loss: {'; '.join(parts)}); too little for freshness"


def _test(fresh: Fresh, share: float, observed: int, one: str, other: str) -> dict[str, Any]:
    found = paired(fresh[share, observed, one], fresh[share, observed, other])
    return {**found, "difference": None if found["difference"] is None else 100 * found["difference"]}


def _all(tests: Sequence[dict[str, Any]]) -> bool | None:
    """Whether the first was better in all tests."""
    verdicts = [better(test) for test in tests]
    return None if None in verdicts else all(verdicts)


def _describe_pair(pair: tuple[str, str], test: dict[str, Any]) -> str:
    names = FROZEN | ONLINE
    return f"{names[pair[0]]} against {names[pair[1]]} {describe_test(test)}"
