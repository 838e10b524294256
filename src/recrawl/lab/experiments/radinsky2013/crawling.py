"""R's figure 8 (§8.3, spec L7): the freshness of a crawl that visits a tenth of the pages per day, as predicted.

Each day pages are drawn in proportion to their change probability until the day's visits are used up. The predictor
knows the visits only. As in R, predictions are made in batches: every few days, from what was observed until then. R's
machines use texts; between visits a page counts as it was at the last one. Where a predictor abstains, the page's
frequency is used; where there is none either, all pages are equal. R does not print the values of figure 8; only its
statements can be compared.
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
from recrawl.lab.experiments.radinsky2013.settings import PredictionWorld, better, describe_test, progress_steps, worlds
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result, Row
from recrawl.lab.predict.days import Days
from recrawl.lab.predict.evaluation import often_flipping
from recrawl.lab.predict.methods import PredictionSetting, predict
from recrawl.lab.predict.scores import paired

SHARE = 0.1
"""Share of pages visited per day."""
BATCH = 5
"""Days between two predictions."""
METHODS = {
    "random": "random",
    "frequency": "frequency (baseline)",
    "2d": "2D, single expert",
    "3d": "3D, multiple experts",
    "pooled": "pooled (ours)",
}
_PAGES = 120
"""Pages at full scale, at most."""
_DAYS = 200
"""Days at full scale, at most."""
_DAYS_PER_POINT = 20
"""Days averaged into one point of the figure."""
_WARM_UP = 3
"""Days on which all pages are visited before the crawl begins, since labels need two visits."""

WINDOW = 100
"""Days that machines learn from: at a tenth of the pages per day, R's 50 would leave five examples per page."""
_MAX_ABSTAINED = 0.9
"""Where machines abstain for more than this share of predictions, nothing is claimed about them."""

_NOTE = (
    f"A tenth of the pages is visited per day; at most {_PAGES} pages that flip often, and the first {_DAYS} days. "
    f"Predictions are updated every {BATCH} days; machines learn from the last {WINDOW} days, in which a page has "
    "about ten visits. A machine with fewer than ten examples abstains, and the page's frequency decides. A point is "
    f"the mean over {_DAYS_PER_POINT} days. R does not print the values. Tests are paired over pages."
)


@dataclass(frozen=True, slots=True)
class Crawl:
    """Parameters of a crawl."""

    method: str
    seed: int
    share: float = SHARE
    train: int = r.TRAIN


def simulate_crawl(days: Days, crawl: Crawl, model_shares: list[float] | None = None) -> Flags:
    """Page by day: whether the copy is fresh at the end of the day, after its visits.

    `model_shares` collects, per batch, the share of predictions that were not left to the page's frequency.

    >>> days = Days(["http://a.example/"], ["a.example"], np.zeros(1, np.int32), np.arange(3), *[np.ones((1, 3), bool)],
    ...     np.array([[1, 2, 3]]), *[np.zeros((1, 3), bool)] * 2, "text", *[np.zeros((1, 3), np.int32)] * 3, None)
    >>> simulate_crawl(days, Crawl("random", seed=1, share=1.0)).tolist()
    [[True, True, True]]
    """
    rng = np.random.default_rng([crawl.seed, 83])
    total = days.seen.shape[1]
    visits = np.zeros(days.seen.shape, np.bool_)
    visits[:, :_WARM_UP] = True
    stored = np.full(len(days), -1, np.int64)
    fresh = np.zeros(days.seen.shape, np.bool_)
    probability = np.ones(len(days))
    for day in range(total):
        if day >= _WARM_UP:
            if (day - _WARM_UP) % BATCH == 0:
                probability, model_share = _probabilities(days.visited(visits), crawl, day)
                if model_shares is not None:
                    model_shares.append(model_share)
            visits[_draw(probability, days.seen[:, day], crawl.share, rng), day] = True
        visited = visits[:, day] & days.seen[:, day]
        stored[visited] = days.version[visited, day]
        fresh[:, day] = stored == days.version[:, day]
    return fresh


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


def _probabilities(known: Days, crawl: Crawl, day: int) -> tuple[Floats, float]:
    """The predicted probability of every page on a day, from the visits before; and the share a model predicted."""
    if crawl.method == "random":
        return np.ones(len(known)), 1.0
    test_days = range(day, day + 1)
    frequencies = predict(known, PredictionSetting("frequency", train=crawl.train), test_days).probability[:, 0]
    frequencies = np.where(np.isfinite(frequencies), frequencies, 0.5)
    if crawl.method == "frequency":
        return frequencies, 1.0
    train_days = crawl.train if crawl.method == "pooled" else max(crawl.train, WINDOW)
    setting = PredictionSetting(crawl.method, train=min(train_days, max(1, day - 2)), seed=crawl.seed)
    if day < setting.first:
        return frequencies, 0.0
    found = predict(known if crawl.method == "pooled" else carried_forward(known), setting, test_days)
    probability = found.probability[:, 0]
    model_share = np.isfinite(probability) & ~found.fallback[:, 0]
    return np.where(np.isfinite(probability), probability, frequencies), float(model_share.mean())


def fig_8(options: ExperimentOptions) -> Result:
    """Freshness by days of crawling."""
    all_worlds = worlds(options)
    step = progress_steps(options, len(all_worlds) * len(METHODS))
    rows: list[Row] = []
    claims: list[Claim] = []
    for world in all_worlds:
        days = _part(world, options)
        fresh: dict[str, Floats] = {}
        model_share: dict[str, list[float]] = {method: [] for method in METHODS}
        for method in METHODS:
            runs = [
                simulate_crawl(days, Crawl(method, seed), model_share[method]) for seed in range(1, options.seeds + 1)
            ]
            fresh[method] = np.mean(runs, axis=0)
            step()
        rows += _rows(world, fresh)
        claims += _claims(world, fresh, {method: fmean(shares or [1.0]) for method, shares in model_share.items()})
    picture = Picture(
        "line", "days", "freshness", "Fig. 8: freshness by days of crawling", "days of crawling", "share of pages",
        colour="method", facet="world", zero=False,
    )  # fmt: skip
    return Result(
        rows,
        claims=claims,
        pictures=[picture],
        worlds=[world.describe() for world in all_worlds],
        notes=[_NOTE],
        table={"world": "world", "days": ">days", "method": "method", "freshness": ">freshness"},
    )


def _part(world: PredictionWorld, options: ExperimentOptions) -> Days:
    """A sample of the pages that flip often, and the first days."""
    pages = np.flatnonzero(often_flipping(world.days))
    max_pages = max(5, round(_PAGES * options.scale))
    selected = pages[np.unique(np.linspace(0, len(pages) - 1, min(max_pages, len(pages))).astype(np.int64))]
    return world.days.take(selected).between(0, min(world.days.seen.shape[1], max(30, round(_DAYS * options.scale))))


def _rows(world: PredictionWorld, fresh: dict[str, Floats]) -> list[Row]:
    total = next(iter(fresh.values())).shape[1]
    return [
        {
            "world": world.title,
            "method": METHODS[method],
            "days": begin + _DAYS_PER_POINT,
            "freshness": float(values[:, begin : begin + _DAYS_PER_POINT].mean()),
        }
        for method, values in fresh.items()
        for begin in range(0, total - _DAYS_PER_POINT + 1, _DAYS_PER_POINT)
    ]


def _claims(world: PredictionWorld, fresh: dict[str, Floats], model_share: dict[str, float]) -> list[Claim]:
    """R's statements about the figure, and ours beside them."""

    def test(one: str, other: str, after: int) -> dict[str, Any]:
        part = slice(after, None)
        found = paired(fresh[one][:, part].mean(axis=1), fresh[other][:, part].mean(axis=1))
        return {**found, "difference": None if found["difference"] is None else 100 * found["difference"]}

    total = fresh["2d"].shape[1]
    statements = [
        ("Both 2D and 3D improve over the baseline after 50 days.", (("2d", "frequency"), ("3d", "frequency")), 50),
        ("3D is superior to 2D after 100 days.", (("3d", "2d"),), 100),
        ("(Ours) The pooled model is better than 3D after 50 days.", (("pooled", "3d"),), 50),
    ]
    silent = [method for method in ("2d", "3d") if model_share[method] < 1 - _MAX_ABSTAINED]
    shares = ", ".join(f"{method} {model_share[method]:.0%}" for method in ("2d", "3d"))
    return [
        Claim.of(
            "§8.3, fig. 8",
            says,
            world.title,
            None if silent else _all(tests),
            f"{'; '.join(map(_describe_pair, pairs, tests))}; by machines: {shares} of predictions",
            "with so few visits machines mostly abstain, and the page's frequency decides",
        )
        for says, pairs, after in statements
        if total > after + 10
        for tests in [[test(one, other, after) for one, other in pairs]]
    ]


def _all(tests: Sequence[dict[str, Any]]) -> bool | None:
    """Whether the first was better in all tests."""
    verdicts = [better(test) for test in tests]
    return None if None in verdicts else all(verdicts)


def _describe_pair(pair: tuple[str, str], test: dict[str, Any]) -> str:
    return f"{pair[0]} against {pair[1]} {describe_test(test)}"
