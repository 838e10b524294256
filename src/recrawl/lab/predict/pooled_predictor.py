"""The `pooled` predictor on days (see `learn.pooled.model`): its rows, with all that an archive tells beyond visits.

    chance = predict(days, train=50, test_days=range(100, 130), seed=1)

The prediction for a day rests on the days before it. What is known of a page is a fold over all its days; the model
learns from the rows of the last `train` days, and learns anew every four weeks of the test days; sooner when its
predictions fail, since a site that falls silent or is made over was in no row that it learned from.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from recrawl.columns import Float32s, Floats, Ints
from recrawl.lab.predict.days import Days
from recrawl.lab.predict.relatives import CANDIDATES, LAGS, RELATIVES, Relatives
from recrawl.learn.pooled import features as pooled_features
from recrawl.learn.pooled import model as pooled
from recrawl.learn.pooled.ledger import Ledger, weekday
from recrawl.learn.structure.directories import places

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
_OF_PAGES = ("content.words", "content.bytes", "content.links", "steps.last", "steps.mean")
_ADDRESS = ("address.depth", "address.length")
_MORE = (*_OF_PAGES, *_ADDRESS, *RELATIVES)
"""Columns beyond those of visits."""
_OF_ADDRESS = slice(len(_OF_PAGES), -len(RELATIVES))
_OF_RELATIVES = slice(-len(RELATIVES), None)


def predict(
    days: Days,
    train: int,
    test_days: range,
    seed: int,
    *,
    without: Collection[str] = (),
    retrain: int = RETRAIN,
    most: int | None = None,
) -> Floats:
    """Page by test day: how likely a change is; not a number before a page's second day."""
    # Products of small matrices: threads that wait for each other would cost more than they bring.
    with pooled.single_thread():
        return _predicted(days, train, test_days, seed, without, retrain, most)


def _predicted(
    days: Days,
    train: int,
    test_days: range,
    seed: int,
    without: Collection[str],
    retrain: int,
    most: int | None,
) -> Floats:
    rng = np.random.default_rng([seed, 11])
    most = min(pooled.MAX_ROWS, max(LEAST_ROWS, ROWS_A_PAGE * len(days))) if most is None else most
    rows = FeatureRows(days, max(0, test_days.start - train), without)
    chance = np.full((len(days), len(test_days)), np.nan)
    model: pooled.PooledModel | None = None
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
            known = rows.features(pages, day)
            chance[pages, place] = model.probability(known)
            rows.take(day, share, rng, (pages, known))
        else:
            rows.take(day, share if day >= rows.start else 0.0, rng)
    return chance


def _failing(days: Days, chance: Floats, test_days: range, since: slice) -> bool:
    """Whether predictions were worse than true ones would have been: their Σ(y - p)² is Σp(1 - p), give or take."""
    over = slice(test_days.start + since.start, test_days.start + since.stop)
    known = days.labelled[:, over] & np.isfinite(chance[:, since])
    told, came = chance[:, since][known], days.changed[:, over][known]
    loss, expected = float(((came - told) ** 2).sum()), float((told * (1.0 - told)).sum())
    return loss > 1.2 * expected + 2.0 * float(np.sqrt(expected))


class FeatureRows:
    """Runs through the days; makes rows of features, and keeps those to learn from."""

    def __init__(self, days: Days, start: int, without: Collection[str] = ()) -> None:
        self.days = days
        self.start = start
        """The first day whose rows are kept."""
        folder = places(days.urls)[2]
        self.ledger = Ledger.of(days.site, folder)
        self._relates = "relatives" not in without
        self._more = np.full((len(days), len(_MORE)), np.nan)
        self._size = {name.partition(".")[2]: self._more[:, place] for place, name in enumerate(_OF_PAGES)}
        self._more[:, _OF_ADDRESS] = addresses(days.urls)
        self._surprise: list[Float32s] = []
        self._relatives = Relatives()
        self.kept: list[tuple[int, Ints, Float32s]] = []
        names = [*pooled_features.feature_names(depth=False), *_MORE]
        # By the page's own rate probabilities are calibrated; without rhythms, by one that knows of none.
        own = "history.rate" if "rhythm" in without else pooled_features.BASELINE
        self._used = [place for place, name in enumerate(names) if name == own or name.partition(".")[0] not in without]
        self.names = [names[place] for place in self._used]
        """The columns that are looked at."""
        self.baseline = self.names.index(own)
        """The place of the page's own rate among them."""

    # -- features ---------------------------------------------------------------------------------------------------

    def features(self, pages: Ints, day: int) -> Float32s:
        """What is known before that day."""
        if self._relates and self._relatives.weights and len(self._surprise) >= len(LAGS):
            self._more[:, _OF_RELATIVES] = self._relatives.columns(self._surprise[: -len(LAGS) - 1 : -1])
        base = pooled_features.features(self.ledger, pages, float(self.days.times[day]))
        whole = np.hstack((base, self._more[pages].astype(np.float32)))
        return whole if len(self._used) == whole.shape[1] else whole[:, self._used]

    # -- learning ---------------------------------------------------------------------------------------------------

    def take(
        self, day: int, share: float, rng: np.random.Generator, known: tuple[Ints, Float32s] | None = None
    ) -> None:
        """The day has come: keep a share of its rows, then take in what was seen.

        `known` are rows of all pages that were seen before, where somebody has already asked for them.
        """
        labelled = np.flatnonzero(self.days.labelled[:, day])
        if share > 0 and len(labelled):
            some = labelled[rng.random(len(labelled)) < share]
            rows = self.features(some, day) if known is None else known[1][np.searchsorted(known[0], some)]
            self.kept.append((day, some, rows))
        seen = np.flatnonzero(self.days.seen[:, day])
        self._surprise.append(self._surprised(day, labelled))
        self._measure(seen, day)
        self.ledger.note(seen, float(self.days.times[day]), self.days.changed[seen, day])
        often = _RELATE if len(self.days) <= CANDIDATES else 4 * _RELATE
        # What is found today is asked for until the next time; before the first rows nobody asks.
        if day % often == 0 and day + often >= self.start and self._relates:
            self._relatives = Relatives.found(np.column_stack(self._surprise[-_MEMORY:]), rng)

    def drop_before(self, day: int) -> None:
        """Forget rows of days that lie too far back."""
        self.kept = [kept for kept in self.kept if kept[0] >= day]
        self.start = max(self.start, day)

    def fitted(self, rng: np.random.Generator) -> pooled.PooledModel:
        """The model of the rows that are kept."""
        if not self.kept:
            none = np.zeros((0, len(self.names)), np.float32)
            return pooled.fit(none, np.zeros(0, np.bool_), np.zeros(0), self.baseline, rng)
        features = np.concatenate([rows for _, _, rows in self.kept])
        labels = np.concatenate([self.days.changed[pages, day] for day, pages, _ in self.kept])
        when = np.concatenate([np.full(len(pages), float(day)) for day, pages, _ in self.kept])
        return pooled.fit(features, labels, when, self.baseline, rng)

    def _surprised(self, day: int, labelled: Ints) -> Float32s:
        """What came beyond the page's own rate on such a weekday."""
        found = np.zeros(len(self.days), np.float32)
        today = int(weekday(np.array([float(self.days.times[day])]))[0])
        ledger = self.ledger
        rate = (ledger.changed[labelled] + 0.5) / (ledger.compared[labelled] + 1.0)
        usual = (ledger.week_changes[labelled, today] + 2 * rate) / (ledger.week_days[labelled, today] + 2)
        found[labelled] = self.days.changed[labelled, day] - usual
        return found

    def _measure(self, seen: Ints, day: int) -> None:
        """Sizes of pages as last seen, and of their changes: the share of words that came or went."""
        words, size = self.days.words[seen, day].astype(np.float64), self._size
        changed = self.days.changed[seen, day]
        step = np.abs(words - size["words"][seen]) / np.maximum(np.maximum(words, size["words"][seen]), 1.0)
        moved = seen[changed]
        size["last"][moved] = step[changed]
        mean = size["mean"][moved]
        size["mean"][moved] = np.where(np.isnan(mean), step[changed], 0.8 * mean + 0.2 * step[changed])
        size["words"][seen] = words
        size["bytes"][seen] = self.days.size[seen, day]
        if self.days.lists is not None and self.days.links is not None:
            lists = np.maximum(self.days.lists[seen, day], 0)
            size["links"][seen] = np.diff(self.days.links.start)[lists] if len(self.days.links.start) > 1 else 0


def addresses(urls: Collection[str]) -> Floats:
    """What a page's address alone tells: its depth and its length.

    >>> addresses(["http://a.example/x/2024/index.html"]).tolist()
    [[2.0, 17.0]]
    """
    paths = [url.partition("://")[2].partition("/")[2] for url in urls]
    return np.array([(path.count("/"), len(path)) for path in paths], np.float64).reshape(-1, len(_ADDRESS))
