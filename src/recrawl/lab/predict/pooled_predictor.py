"""The `pooled` predictor on days (see `learn.pooled.model`), with features that only archives offer.

    probability = predict(days, train=50, test_days=range(100, 130), seed=1)

The prediction for a day uses the days before it. A page's features are a fold over all its days; the model learns from
the rows of the last `train` days. It is refitted every four weeks of test days, or sooner when its predictions get
worse than expected, since a site that stops changing or is redesigned was in no row it learned from.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from recrawl.columns import Float32s, Floats, Ints
from recrawl.extras import sparse
from recrawl.lab.predict.days import Days
from recrawl.learn.pooled import features as pooled_features
from recrawl.learn.pooled import model as pooled
from recrawl.learn.pooled.ledger import Ledger, weekday
from recrawl.learn.structure.directories import places

# --------------------------------------------------------------------------------------------------------------------
# Relatives for the `pooled` predictor: pages whose changes precede those of others, found from changes alone.
#
# A page's *surprise* on a day is its label minus its own rate on that weekday; without that, all pages with the same
# weekly rhythm would be relatives. Page A is a relative of B at a lag if A's surprises predict B's. Among many pages
# some correlate by chance; only correlations above that level count, so most pages have no relatives.


LAGS = (1, 2)
"""Days by which a relative may precede a page."""
RELATIVES = tuple(f"relatives.{what}{lag}" for lag in LAGS for what in ("day", "weight"))
"""The feature columns."""
MAX_CANDIDATES = 4096
"""Pages searched for relatives, a random sample where there are more."""
_MAX_RELATIVES = 10
_BATCH = 1024
_MIN_DAYS = 14


@dataclass(slots=True)
class Relatives:
    """By lag: which pages changed one or two days before which others, more often than by chance."""

    weights: list[sparse.csr_array] = field(default_factory=list)
    """One matrix per lag; none while there are too few days."""
    totals: list[Floats] = field(default_factory=list)
    """One per lag: the total weight of each page's relatives."""

    @classmethod
    def search(cls, surprise: Float32s, rng: np.random.Generator) -> Relatives:
        """Find relatives in surprises (page by day), 0 where unknown."""
        pages, days = surprise.shape
        candidates = (
            np.arange(pages) if pages <= MAX_CANDIDATES else np.sort(rng.choice(pages, MAX_CANDIDATES, replace=False))
        )
        lags = LAGS if days >= _MIN_DAYS else ()
        weights = [_correlated(surprise[:, lag:], surprise[candidates, : days - lag], candidates) for lag in lags]
        return cls(weights, [np.asarray(weight.sum(axis=1)).ravel() for weight in weights])

    def columns(self, surprises: list[Float32s]) -> Floats:
        """Page by column, by lag: the weighted mean surprise of the relatives, and their total weight.

        `surprises` are those of the last days, newest first.
        """
        columns = []
        for weight, total, surprise in zip(self.weights, self.totals, surprises, strict=True):
            columns += [np.where(total > 0, (weight @ surprise) / np.maximum(total, 1e-9), np.nan), total]
        return np.column_stack(columns)


def _correlated(target: Float32s, source: Float32s, pages: Ints) -> sparse.csr_array:
    """Row by page: the highest correlations, as far as they exceed the level expected by chance."""
    left, right = _unit(target), _unit(source)
    limit = np.sqrt(2.0 * np.log(max(2, len(source))) / target.shape[1]) + 0.05
    parts_found: list[tuple[Ints, Ints, Float32s]] = []
    for begin in range(0, len(left), _BATCH):
        correlation = left[begin : begin + _BATCH] @ right.T
        row, column = np.nonzero(correlation > limit)
        parts_found.append((row + begin, pages[column], correlation[row, column]))
    row, other, weight = (np.concatenate(parts) for parts in zip(*parts_found, strict=True))
    row, other, weight = _top(*(column[row != other] for column in (row, other, weight)))
    return sparse.csr_array((weight, (row, other)), shape=(len(left), len(left)))


def _top(row: Ints, other: Ints, weight: Float32s) -> tuple[Ints, Ints, Float32s]:
    """The entries of highest weight in each row; rows must be sorted."""
    order = np.lexsort((-weight, row))
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    kept = order[rank < _MAX_RELATIVES]
    return row[kept], other[kept], weight[kept]


def _unit(series: Float32s) -> Float32s:
    centred = series - series.mean(axis=1, keepdims=True)
    length = np.sqrt((centred**2).sum(axis=1, keepdims=True))
    return np.asarray(centred / np.maximum(length, 1e-6), np.float32)


# --------------------------------------------------------------------------------------------------------------------


RETRAIN = 28
"""Test days between two fits, unless predictions get worse than they should be."""
_MIN_RETRAIN = 3
"""Minimum days between two fits."""
_CHECK_DAYS = 7
"""Days over which predictions are checked."""
FAMILIES = (
    "history", "recency", "rhythm", "calendar", "site", "folder", "relatives", "content", "steps", "address",
)  # fmt: skip
"""Feature families that `without` can leave out; the page's own rate always stays, for calibration."""
MIN_ROWS, ROWS_PER_PAGE = 200_000, 5
"""Training rows kept: this many per page, and at least `MIN_ROWS`. A fit uses the informative ones."""
_RELATE_EVERY = 14
"""Days between two searches for relatives; four times that where pages are many."""
_RELATE_DAYS = 120
"""Days of surprises that a search for relatives uses."""
_PAGE_COLUMNS = ("content.words", "content.bytes", "content.links", "steps.last", "steps.mean")
_URL_COLUMNS = ("address.depth", "address.length")
_EXTRA_COLUMNS = (*_PAGE_COLUMNS, *_URL_COLUMNS, *RELATIVES)
"""Columns beyond those that follow from visits."""
_URL_SLICE = slice(len(_PAGE_COLUMNS), -len(RELATIVES))
_RELATIVES_SLICE = slice(-len(RELATIVES), None)


def predict(
    days: Days,
    train: int,
    test_days: range,
    seed: int,
    *,
    without: Collection[str] = (),
    retrain: int = RETRAIN,
    max_rows: int | None = None,
) -> Floats:
    """Page by test day: the change probability; NaN before a page's second day."""
    # On small matrices several threads cost more than they gain.
    with pooled.single_thread():
        return _predict(days, train, test_days, seed, without, retrain, max_rows)


def _predict(
    days: Days,
    train: int,
    test_days: range,
    seed: int,
    without: Collection[str],
    retrain: int,
    max_rows: int | None,
) -> Floats:
    rng = np.random.default_rng([seed, 11])
    max_rows = min(pooled.MAX_ROWS, max(MIN_ROWS, ROWS_PER_PAGE * len(days))) if max_rows is None else max_rows
    rows = FeatureRows(days, max(0, test_days.start - train), without)
    probability = np.full((len(days), len(test_days)), np.nan)
    model: pooled.PooledModel | None = None
    share = min(1.0, max_rows / max(1, int(days.labelled[:, rows.start : test_days.start].sum())))
    fitted = 0
    for day in range(test_days.stop):
        if day >= test_days.start:
            column = day - test_days.start
            since = slice(max(fitted, column - _CHECK_DAYS), column)
            days_since_fit = column - fitted
            if (
                model is None
                or days_since_fit >= retrain
                or (days_since_fit >= _MIN_RETRAIN and _failing(days, probability, test_days, since))
            ):
                rows.drop_before(day - train)
                model, fitted = rows.fitted(rng), column
            # Which pages will exist is unknown at prediction time, so all pages observed before get a probability.
            pages = np.flatnonzero(~np.isnan(rows.ledger.last))
            known = rows.features(pages, day)
            probability[pages, column] = model.probability(known)
            rows.advance(day, share, rng, (pages, known))
        else:
            rows.advance(day, share if day >= rows.start else 0.0, rng)
    return probability


def _failing(days: Days, probability: Floats, test_days: range, since: slice) -> bool:
    """Whether the loss is higher than calibrated predictions explain: the expected Σ(y - p)² is Σp(1 - p)."""
    span = slice(test_days.start + since.start, test_days.start + since.stop)
    known = days.labelled[:, span] & np.isfinite(probability[:, since])
    predicted, actual = probability[:, since][known], days.changed[:, span][known]
    loss, expected = float(((actual - predicted) ** 2).sum()), float((predicted * (1.0 - predicted)).sum())
    return loss > 1.2 * expected + 2.0 * float(np.sqrt(expected))


class FeatureRows:
    """Goes through the days, computes rows of features, and keeps those to learn from."""

    def __init__(self, days: Days, start: int, without: Collection[str] = ()) -> None:
        self.days = days
        self.start = start
        """The first day whose rows are kept."""
        folder = places(days.urls)[2]
        self.ledger = Ledger.of(days.site, folder)
        self._use_relatives = "relatives" not in without
        self._extra = np.full((len(days), len(_EXTRA_COLUMNS)), np.nan)
        self._sizes = {name.partition(".")[2]: self._extra[:, column] for column, name in enumerate(_PAGE_COLUMNS)}
        self._extra[:, _URL_SLICE] = url_features(days.urls)
        self._surprise: list[Float32s] = []
        self._relatives = Relatives()
        self.training_rows: list[tuple[int, Ints, Float32s]] = []
        names = [*pooled_features.feature_names(depth=False), *_EXTRA_COLUMNS]
        # Probabilities are calibrated with the page's own rate; without the rhythm family, with the plain rate.
        own = "history.rate" if "rhythm" in without else pooled_features.BASELINE
        self._used = [
            column for column, name in enumerate(names) if name == own or name.partition(".")[0] not in without
        ]
        self.names = [names[column] for column in self._used]
        """The columns in use."""
        self.baseline = self.names.index(own)
        """The index of the page's own rate among them."""

    # -- features ---------------------------------------------------------------------------------------------------

    def features(self, pages: Ints, day: int) -> Float32s:
        """One row per page, as known before that day."""
        if self._use_relatives and self._relatives.weights and len(self._surprise) >= len(LAGS):
            self._extra[:, _RELATIVES_SLICE] = self._relatives.columns(self._surprise[: -len(LAGS) - 1 : -1])
        base = pooled_features.features(self.ledger, pages, float(self.days.times[day]))
        whole = np.hstack((base, self._extra[pages].astype(np.float32)))
        return whole if len(self._used) == whole.shape[1] else whole[:, self._used]

    # -- learning ---------------------------------------------------------------------------------------------------

    def advance(
        self, day: int, share: float, rng: np.random.Generator, known: tuple[Ints, Float32s] | None = None
    ) -> None:
        """Process a day: keep a share of its rows, then add its observations.

        `known` holds the rows of all pages observed before, where they were already computed.
        """
        labelled = np.flatnonzero(self.days.labelled[:, day])
        if share > 0 and len(labelled):
            sampled = labelled[rng.random(len(labelled)) < share]
            rows = self.features(sampled, day) if known is None else known[1][np.searchsorted(known[0], sampled)]
            self.training_rows.append((day, sampled, rows))
        seen = np.flatnonzero(self.days.seen[:, day])
        self._surprise.append(self._surprise_on(day, labelled))
        self._update_sizes(seen, day)
        self.ledger.note(seen, float(self.days.times[day]), self.days.changed[seen, day])
        every = _RELATE_EVERY if len(self.days) <= MAX_CANDIDATES else 4 * _RELATE_EVERY
        # Relatives found today are used until the next search; before the first row is kept nothing uses them.
        if day % every == 0 and day + every >= self.start and self._use_relatives:
            self._relatives = Relatives.search(np.column_stack(self._surprise[-_RELATE_DAYS:]), rng)

    def drop_before(self, day: int) -> None:
        """Drop the rows of earlier days."""
        self.training_rows = [entry for entry in self.training_rows if entry[0] >= day]
        self.start = max(self.start, day)

    def fitted(self, rng: np.random.Generator) -> pooled.PooledModel:
        """The model fitted to the kept rows."""
        if not self.training_rows:
            none = np.zeros((0, len(self.names)), np.float32)
            return pooled.fit(none, np.zeros(0, np.bool_), np.zeros(0), self.baseline, rng)
        features = np.concatenate([rows for _, _, rows in self.training_rows])
        labels = np.concatenate([self.days.changed[pages, day] for day, pages, _ in self.training_rows])
        when = np.concatenate([np.full(len(pages), float(day)) for day, pages, _ in self.training_rows])
        return pooled.fit(features, labels, when, self.baseline, rng)

    def _surprise_on(self, day: int, labelled: Ints) -> Float32s:
        """Per page: the day's label minus the page's own rate on this weekday; 0 where there is no label."""
        surprise = np.zeros(len(self.days), np.float32)
        today = int(weekday(np.array([float(self.days.times[day])]))[0])
        ledger = self.ledger
        rate = (ledger.changed[labelled] + 0.5) / (ledger.compared[labelled] + 1.0)
        usual = (ledger.week_changes[labelled, today] + 2 * rate) / (ledger.week_days[labelled, today] + 2)
        surprise[labelled] = self.days.changed[labelled, day] - usual
        return surprise

    def _update_sizes(self, seen: Ints, day: int) -> None:
        """Update the sizes of pages, and of their changes: the share of words added or removed."""
        words, sizes = self.days.words[seen, day].astype(np.float64), self._sizes
        changed = self.days.changed[seen, day]
        size_change = np.abs(words - sizes["words"][seen]) / np.maximum(np.maximum(words, sizes["words"][seen]), 1.0)
        changed_pages = seen[changed]
        sizes["last"][changed_pages] = size_change[changed]
        mean = sizes["mean"][changed_pages]
        sizes["mean"][changed_pages] = np.where(
            np.isnan(mean), size_change[changed], 0.8 * mean + 0.2 * size_change[changed]
        )
        sizes["words"][seen] = words
        sizes["bytes"][seen] = self.days.size[seen, day]
        if self.days.lists is not None and self.days.links is not None:
            lists = np.maximum(self.days.lists[seen, day], 0)
            sizes["links"][seen] = np.diff(self.days.links.start)[lists] if len(self.days.links.start) > 1 else 0


def url_features(urls: Collection[str]) -> Floats:
    """Features of the URL alone: path depth and path length.

    >>> url_features(["http://a.example/x/2024/index.html"]).tolist()
    [[2.0, 17.0]]
    """
    paths = [url.partition("://")[2].partition("/")[2] for url in urls]
    return np.array([(path.count("/"), len(path)) for path in paths], np.float64).reshape(-1, len(_URL_COLUMNS))
