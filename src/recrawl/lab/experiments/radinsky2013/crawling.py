"""R's figure 8 (§8.3, spec L7): a crawler that visits a tenth of the pages a day, where a predictor says; how fresh?

Each day a biased coin decides, weighted by the probability that a page has changed, until the day's visits are spent.
The predictor knows the visits only. It is asked in batches, as in R: at the start of every few days, from what was
seen until then. For R's machines, which look at texts, a page is between visits what it was at the last one. Where a
predictor has nothing to say yet, the page's frequency decides; where there is none either, all pages are alike. The
published values of figure 8 are in a chart only; R's sentences about it can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Floats, Ints
from recrawl.lab.experiments.radinsky2013 import published as r
from recrawl.lab.experiments.radinsky2013.settings import Where, better, shown, stepping, worlds
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result, Row
from recrawl.lab.predict.days import Days
from recrawl.lab.predict.evaluation import often_flipping
from recrawl.lab.predict.methods import PredictionSetting, predict
from recrawl.lab.predict.scores import paired

SHARE = 0.1
"""Pages visited a day."""
BATCH = 5
"""Days for which predictions are made at once."""
METHODS = {
    "random": "random",
    "frequency": "frequency (baseline)",
    "2d": "2D, single expert",
    "3d": "3D, multiple experts",
    "pooled": "pooled (ours)",
}
_PAGES = 120
_DAYS = 200
_SPAN = 20
"""Days of one point of the figure."""
_WARM = 3
"""Days with a visit to every page before the crawl begins: without any label nothing can be compared."""

WINDOW = 100
"""Days that machines learn from: at a tenth a day, R's 50 would leave five examples of a page."""
_SILENT = 0.9
"""Machines that abstain more often than this say nothing about themselves."""

_NOTE = (
    f"A tenth of the pages a day; at most {_PAGES} pages that flip often, and the first {_DAYS} days. Predictions are "
    f"made anew every {BATCH} days, by machines from the last {WINDOW} days: a page has about ten visits in them, and "
    "a machine with fewer than ten examples abstains; then the page's frequency decides. A point is the mean over "
    f"{_SPAN} days. R's values are printed nowhere. Tests are paired over pages."
)


@dataclass(frozen=True, slots=True)
class Crawl:
    """How a crawl goes."""

    method: str
    seed: int
    share: float = SHARE
    train: int = r.TRAIN


def crawled(days: Days, how: Crawl, told: list[float] | None = None) -> Flags:
    """Page by day: whether the copy is fresh at the end of the day, after its visits.

    `told` takes in how large a share of the predictions of each batch was not left to the page's frequency.

    >>> days = Days(["http://a.example/"], ["a.example"], np.zeros(1, np.int32), np.arange(3), *[np.ones((1, 3), bool)],
    ...     np.array([[1, 2, 3]]), *[np.zeros((1, 3), bool)] * 2, "text", *[np.zeros((1, 3), np.int32)] * 3, None)
    >>> crawled(days, Crawl("random", seed=1, share=1.0)).tolist()
    [[True, True, True]]
    """
    rng = np.random.default_rng([how.seed, 83])
    total = days.seen.shape[1]
    where = np.zeros(days.seen.shape, np.bool_)
    where[:, :_WARM] = True
    held = np.full(len(days), -1, np.int64)
    fresh = np.zeros(days.seen.shape, np.bool_)
    chance = np.ones(len(days))
    for day in range(total):
        if day >= _WARM:
            if (day - _WARM) % BATCH == 0:
                chance, spoke = _chances(days.visited(where), how, day)
                if told is not None:
                    told.append(spoke)
            where[_drawn(chance, days.seen[:, day], how.share, rng), day] = True
        visited = where[:, day] & days.seen[:, day]
        held[visited] = days.version[visited, day]
        fresh[:, day] = held == days.version[:, day]
    return fresh


def believed(known: Days) -> Days:
    """What a crawler takes to be there: between visits the last version seen; labels only where there was a visit.

    R's machines need a page's content on the day before. At a tenth of the pages a day it is hardly ever known by a
    visit on that very day, and they would abstain nearly everywhere.
    """
    day = np.arange(known.seen.shape[1])
    last = np.maximum.accumulate(np.where(known.seen, day, -1), axis=1)
    rows, safe = np.arange(len(known))[:, None], np.maximum(last, 0)

    def held(column: NDArray[Any]) -> NDArray[Any]:
        return np.where(last >= 0, column[rows, safe], column)

    return replace(
        known,
        seen=last >= 0,
        version=held(known.version),
        words=held(known.words),
        size=held(known.size),
        text=held(known.text),
        lists=None if known.lists is None else held(known.lists),
    )


def _drawn(chance: Floats, there: Flags, share: float, rng: np.random.Generator) -> Ints:
    """Pages, drawn without replacement in proportion to their chance."""
    pages = np.flatnonzero(there)
    luck = np.log(rng.random(len(pages))) / np.maximum(chance[pages], 1e-6)
    return pages[np.argsort(-luck)[: max(1, round(share * len(pages)))]]


def _chances(known: Days, how: Crawl, day: int) -> tuple[Floats, float]:
    """What the predictor says of every page on that day, from the visits before it; and of how many it said so."""
    if how.method == "random":
        return np.ones(len(known)), 1.0
    over = range(day, day + 1)
    often = predict(known, PredictionSetting("frequency", train=how.train), over).probability[:, 0]
    often = np.where(np.isfinite(often), often, 0.5)
    if how.method == "frequency":
        return often, 1.0
    wanted = how.train if how.method == "pooled" else max(how.train, WINDOW)
    setting = PredictionSetting(how.method, train=min(wanted, max(1, day - 2)), seed=how.seed)
    if day < setting.first:
        return often, 0.0
    found = predict(known if how.method == "pooled" else believed(known), setting, over)
    chance = found.probability[:, 0]
    spoke = np.isfinite(chance) & ~found.fallback[:, 0]
    return np.where(np.isfinite(chance), chance, often), float(spoke.mean())


def fig_8(options: ExperimentOptions) -> Result:
    """Freshness by days of crawling."""
    places = worlds(options)
    step = stepping(options, len(places) * len(METHODS))
    rows: list[Row] = []
    claims: list[Claim] = []
    for where in places:
        days = _part(where, options)
        fresh: dict[str, Floats] = {}
        spoke: dict[str, list[float]] = {method: [] for method in METHODS}
        for method in METHODS:
            runs = [crawled(days, Crawl(method, seed), spoke[method]) for seed in range(1, options.seeds + 1)]
            fresh[method] = np.mean(runs, axis=0)
            step()
        rows += _rows(where, fresh)
        claims += _claims(where, fresh, {method: fmean(shares or [1.0]) for method, shares in spoke.items()})
    picture = Picture(
        "line", "days", "freshness", "Fig. 8: freshness by days of crawling", "days of crawling", "share of pages",
        colour="method", facet="world", zero=False,
    )  # fmt: skip
    return Result(
        rows,
        claims=claims,
        pictures=[picture],
        worlds=[where.told() for where in places],
        notes=[_NOTE],
        table={"world": "world", "days": ">days", "method": "method", "freshness": ">freshness"},
    )


def _part(where: Where, options: ExperimentOptions) -> Days:
    """The pages that flip often, at most so many, and the first days."""
    pages = np.flatnonzero(often_flipping(where.days))
    most = max(5, round(_PAGES * options.scale))
    some = pages[np.unique(np.linspace(0, len(pages) - 1, min(most, len(pages))).astype(np.int64))]
    return where.days.take(some).between(0, min(where.days.seen.shape[1], max(30, round(_DAYS * options.scale))))


def _rows(where: Where, fresh: dict[str, Floats]) -> list[Row]:
    total = next(iter(fresh.values())).shape[1]
    return [
        {
            "world": f"{where.name} ({where.label})",
            "method": METHODS[method],
            "days": begin + _SPAN,
            "freshness": float(values[:, begin : begin + _SPAN].mean()),
        }
        for method, values in fresh.items()
        for begin in range(0, total - _SPAN + 1, _SPAN)
    ]


def _claims(where: Where, fresh: dict[str, Floats], spoke: dict[str, float]) -> list[Claim]:
    """R's sentences about the figure, and ours beside them."""

    def test(one: str, other: str, after: int) -> dict[str, Any]:
        part = slice(after, None)
        found = paired(fresh[one][:, part].mean(axis=1), fresh[other][:, part].mean(axis=1))
        return {**found, "difference": None if found["difference"] is None else 100 * found["difference"]}

    total = fresh["2d"].shape[1]
    told = [
        ("Both 2D and 3D improve over the baseline after 50 days.", (("2d", "frequency"), ("3d", "frequency")), 50),
        ("3D is superior to 2D after 100 days.", (("3d", "2d"),), 100),
        ("(Ours) The pooled model is better than 3D after 50 days.", (("pooled", "3d"),), 50),
    ]
    silent = [method for method in ("2d", "3d") if spoke[method] < 1 - _SILENT]
    shares = ", ".join(f"{method} {spoke[method]:.0%}" for method in ("2d", "3d"))
    return [
        Claim.of(
            "§8.3, fig. 8",
            says,
            f"{where.name} ({where.label})",
            None if silent else _all(tests),
            f"{'; '.join(map(_told, pairs, tests))}; by machines: {shares} of predictions",
            "with so few visits machines mostly abstain, and the page's frequency decides",
        )
        for says, pairs, after in told
        if total > after + 10
        for tests in [[test(one, other, after) for one, other in pairs]]
    ]


def _all(tests: Sequence[dict[str, Any]]) -> bool | None:
    """Whether the first was better in all of them."""
    verdicts = [better(test) for test in tests]
    return None if None in verdicts else all(verdicts)


def _told(pair: tuple[str, str], test: dict[str, Any]) -> str:
    return f"{pair[0]} against {pair[1]} {shown(test)}"
