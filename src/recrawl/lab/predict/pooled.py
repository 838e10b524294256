"""The `pooled` predictor on days (see `recrawl.learn.pooled`): its rows, with all that an archive tells beyond visits.

    chance = predict(days, train=50, test_days=range(100, 130), seed=1)

The prediction for a day rests on the days before it. What is known of a page is a fold over all its days; the model
learns from the rows of the last `train` days, and learns anew every four weeks of the test days; sooner when its
predictions fail, since a site that falls silent or is made over was in no row that it learned from.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.days import Days
from recrawl.lab.predict.pooled_relatives import CANDIDATES, LAGS, Relatives
from recrawl.learn import pooled, pooled_features
from recrawl.learn.places import places
from recrawl.learn.pooled_ledger import Ledger, weekday

RETRAIN = 28
"""Test days after which the model is fitted anew; sooner when its predictions turn out worse than they should be."""
_SOONEST = 3
_WATCHED = 7
"""Days by which that is judged."""
FAMILIES = (
    "history", "recency", "rhythm", "calendar", "site", "folder", "relatives", "content", "steps", "address",
)  # fmt: skip
"""What `without` can leave out; the page's own rate, by which probabilities are calibrated, always stays."""
LEAST_ROWS, ROWS_A_PAGE = 200_000, 5
"""Rows that are kept to learn from: so many of each page, if that is more. Of these a fit takes those that tell."""
_RELATE = 14
"""Days after which relatives are looked for anew; four times that where pages are many."""
_MEMORY = 120
"""Days in which they are looked for."""

Floats = NDArray[np.float32]
Column = NDArray[np.float64]


def predict(
    days: Days,
    train: int,
    test_days: range,
    seed: int,
    *,
    without: Collection[str] = (),
    retrain: int = RETRAIN,
    most: int | None = None,
) -> Column:
    """Page by test day: how likely a change is; not a number before a page's second day."""
    # Products of small matrices: threads that wait for each other would cost more than they bring.
    with importlib.import_module("threadpoolctl").threadpool_limits(limits=1):
        return _predicted(days, train, test_days, seed, without, retrain, most)


def _predicted(
    days: Days,
    train: int,
    test_days: range,
    seed: int,
    without: Collection[str],
    retrain: int,
    most: int | None,
) -> Column:
    rng = np.random.default_rng([seed, 11])
    most = min(pooled.MOST_ROWS, max(LEAST_ROWS, ROWS_A_PAGE * len(days))) if most is None else most
    rows = Rows(days, max(0, test_days.start - train), without)
    chance = np.full((len(days), len(test_days)), np.nan)
    model: pooled.Pooled | None = None
    share = min(1.0, most / max(1, int(days.labelled[:, rows.start : test_days.start].sum())))
    fitted = 0
    for day in range(test_days.stop):
        if day >= test_days.start:
            place = day - test_days.start
            since = slice(max(fitted, place - _WATCHED), place)
            waited = place - fitted
            if model is None or waited >= retrain or (waited >= _SOONEST and _failing(days, chance, test_days, since)):
                rows.drop_before(day - train)
                model, fitted = rows.fitted(rng), place
            # Whoever predicts does not know which pages will be there: all that were seen before get a chance.
            pages = np.flatnonzero(~np.isnan(rows.ledger.last))
            chance[pages, place] = model.probability(rows.features(pages, day))
        rows.take(day, share if day >= rows.start else 0.0, rng)
    return chance


def _failing(days: Days, chance: Column, test_days: range, since: slice) -> bool:
    """Whether predictions were worse than true ones would have been: their Σ(y - p)² is Σp(1 - p), give or take."""
    over = slice(test_days.start + since.start, test_days.start + since.stop)
    known = days.labelled[:, over] & np.isfinite(chance[:, since])
    told, came = chance[:, since][known], days.changed[:, over][known]
    loss, expected = float(((came - told) ** 2).sum()), float((told * (1.0 - told)).sum())
    return loss > 1.2 * expected + 2.0 * float(np.sqrt(expected))


class Rows:
    """Runs through the days; makes rows of features, and keeps those to learn from."""

    def __init__(self, days: Days, start: int, without: Collection[str] = ()) -> None:
        self.days = days
        self.start = start
        """The first day whose rows are kept."""
        folder = places(days.urls)[2]
        self.ledger = Ledger.of(days.site, folder)
        self._address = addresses(days.urls)
        self._without = frozenset(without)
        pages = len(days)
        self._size = {name: np.full(pages, np.nan) for name in ("words", "bytes", "links", "step", "steps")}
        self._surprise: list[Floats] = []
        self._relatives = Relatives()
        self.kept: list[tuple[int, NDArray[np.int64], Floats]] = []
        self.names: list[str] = []

    # -- features ---------------------------------------------------------------------------------------------------

    def features(self, pages: NDArray[np.int64], day: int) -> Floats:
        """What is known before that day."""
        base = pooled_features.features(self.ledger, pages, float(self.days.times[day]))
        more = {
            "content.words": self._size["words"],
            "content.bytes": self._size["bytes"],
            "content.links": self._size["links"],
            "steps.last": self._size["step"],
            "steps.mean": self._size["steps"],
            **self._address,
            **self._moved(),
        }
        self.names = [*pooled_features.names(depth=False), *more]
        whole = np.empty((len(pages), len(self.names)), np.float32)
        whole[:, : base.shape[1]] = base
        for place, column in enumerate(more.values(), base.shape[1]):
            whole[:, place] = column[pages]
        return whole[:, self.used()] if self._without else whole

    def used(self) -> list[int]:
        """The columns that are looked at."""
        return [
            place
            for place, name in enumerate(self.names)
            if name == self._own_rate or name.partition(".")[0] not in self._without
        ]

    @property
    def baseline(self) -> int:
        """The place of the page's own rate among them."""
        return [self.names[place] for place in self.used()].index(self._own_rate)

    @property
    def _own_rate(self) -> str:
        """By which probabilities are calibrated; without rhythms, one that knows of none."""
        return "history.rate" if "rhythm" in self._without else pooled_features.BASELINE

    def _moved(self) -> dict[str, Column]:
        unknown = {f"relatives.{what}{lag}": np.full(len(self.days), np.nan) for lag in LAGS for what in _WHAT}
        if "relatives" in self._without or len(self._surprise) < len(LAGS) or not self._relatives.weights:
            return unknown
        return unknown | self._relatives.columns(self._surprise[::-1])

    # -- learning ---------------------------------------------------------------------------------------------------

    def take(self, day: int, share: float, rng: np.random.Generator) -> None:
        """The day has come: keep a share of its rows, then take in what was seen."""
        labelled = np.flatnonzero(self.days.labelled[:, day])
        if share > 0 and len(labelled):
            some = labelled[rng.random(len(labelled)) < share]
            self.kept.append((day, some, self.features(some, day)))
        seen = np.flatnonzero(self.days.seen[:, day])
        self._surprise.append(self._surprised(day, labelled))
        self._measure(seen, day)
        self.ledger.note(seen, float(self.days.times[day]), self.days.changed[seen, day])
        often = _RELATE if len(self.days) <= CANDIDATES else 4 * _RELATE
        # What is found today is asked for until the next time; before the first rows nobody asks.
        if day % often == 0 and day + often >= self.start and "relatives" not in self._without:
            self._relatives = Relatives.found(np.column_stack(self._surprise[-_MEMORY:]), rng)

    def drop_before(self, day: int) -> None:
        """Forget rows of days that lie too far back."""
        self.kept = [kept for kept in self.kept if kept[0] >= day]
        self.start = max(self.start, day)

    def fitted(self, rng: np.random.Generator) -> pooled.Pooled:
        """The model of the rows that are kept."""
        if not self.kept:
            self.features(np.zeros(0, np.int64), 0)
            width = len(self.used())
            none = np.zeros((0, width), np.float32)
            return pooled.fit(none, np.zeros(0, np.bool_), np.zeros(0), self.baseline, rng)
        features = np.concatenate([rows for _, _, rows in self.kept])
        labels = np.concatenate([self.days.changed[pages, day] for day, pages, _ in self.kept])
        when = np.concatenate([np.full(len(pages), float(day)) for day, pages, _ in self.kept])
        return pooled.fit(features, labels, when, self.baseline, rng)

    def _surprised(self, day: int, labelled: NDArray[np.int64]) -> Floats:
        """What came beyond the page's own rate on such a weekday."""
        found = np.zeros(len(self.days), np.float32)
        today = int(weekday(np.array([float(self.days.times[day])]))[0])
        ledger = self.ledger
        rate = (ledger.changed[labelled] + 0.5) / (ledger.compared[labelled] + 1.0)
        usual = (ledger.week_changes[labelled, today] + 2 * rate) / (ledger.week_days[labelled, today] + 2)
        found[labelled] = self.days.changed[labelled, day] - usual
        return found

    def _measure(self, seen: NDArray[np.int64], day: int) -> None:
        """Sizes of pages as last seen, and of their changes: the share of words that came or went."""
        words, size = self.days.words[seen, day].astype(np.float64), self._size
        changed = self.days.changed[seen, day]
        step = np.abs(words - size["words"][seen]) / np.maximum(np.maximum(words, size["words"][seen]), 1.0)
        moved = seen[changed]
        size["step"][moved] = step[changed]
        mean = size["steps"][moved]
        size["steps"][moved] = np.where(np.isnan(mean), step[changed], 0.8 * mean + 0.2 * step[changed])
        size["words"][seen] = words
        size["bytes"][seen] = self.days.size[seen, day]
        if self.days.lists is not None and self.days.links is not None:
            lists = np.maximum(self.days.lists[seen, day], 0)
            size["links"][seen] = np.diff(self.days.links.start)[lists] if len(self.days.links.start) > 1 else 0


_WHAT = ("day", "weight")


def addresses(urls: Collection[str]) -> dict[str, Column]:
    """What a page's address alone tells.

    >>> {name: column.tolist() for name, column in addresses(["http://a.example/x/2024/index.html"]).items()}
    {'address.depth': [2.0], 'address.length': [17.0], 'address.digits': [4.0], 'address.index': [1.0]}
    """
    return dict(zip(_ADDRESS, np.array(list(map(_address, urls)), np.float64).reshape(-1, 4).T, strict=True))


_ADDRESS = ("address.depth", "address.length", "address.digits", "address.index")


def _address(url: str) -> tuple[float, ...]:
    path = url.partition("://")[2].partition("/")[2]
    name = path.rpartition("/")[2].partition("?")[0]
    index = name in ("", "index.html", "index.htm")
    return path.count("/"), len(path), sum(map(str.isdigit, path)), index
