"""The probability that a page has changed: the shock model, averaged with a fitted network.

The shock model (`model`) has systematic errors. A small network corrects them from its prediction and from counts: the
share of visits that found a change among pages of the same URL template, directory and site, today, recently and since
the page's own last visit, and the page's own history. Its weights were fitted once, on replays of many sites, and are
the same for all sites.

`python -m benchmarks.opinion ARCHIVE...` fits the weights again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from recrawl.book import Book
from recrawl.columns import DAY, Flags, Float32s, Floats, Ints
from recrawl.learn.chunks import AnyFloats, AnyPages, group_sums, map_chunks
from recrawl.learn.shocks.model import (
    FIRST_RATE,
    FIRST_SHARE,
    PAGE_WEIGHT,
    Groups,
    GroupTally,
    Shocks,
    gamma_probability,
)

LEVELS = ("form", "folder", "site")
"""The groupings whose counts the network uses: URL template, directory, site."""
_MEMORY = ("shock.form", "shock.directory", "shock.by_site")
"""Memory keys of their counts."""
_GROUP_FEATURES = ("lately", "today", "finds_today", "misses_today", "since", "visits_since", "recent", "fortnight")
FEATURES = (
    *("shocks", "exposure", "rate", "form_rate", "site_rate", "form_now", "form_week"),
    *("alone", "gap", "own", "visits", "lately", "age", "form_size", "site_size"),
    *(f"{level}_{feature}" for level in LEVELS for feature in _GROUP_FEATURES),
)
"""The inputs of the network."""
_BINS_BACK = np.array([[3], [14]])
"""Bins that count as `recent` and as a `fortnight`."""
_PAGE_FADE = 0.15
"""The factor by which a page's share of changed visits decays with each visit."""


@dataclass(slots=True)
class ChangeModel:
    """The state from which change probabilities are computed: `of` loads it, `observe` updates it, `keep` stores it."""

    book: Book
    shocks: Shocks
    tally: GroupTally
    """Counts for the groupings of `LEVELS`."""
    lately: Float32s
    """One per page: the share of its last few visits that found a change."""
    groups: GroupFeatures | None = None
    """Features of groups, computed on first use."""

    @classmethod
    def of(cls, book: Book, *, prior: bool = True) -> ChangeModel:
        """Load the state from the book's memory and extend it to now."""
        shocks = Shocks.of(book, "shock", book.form, prior=prior)
        folders, sites = Groups.by(book, _MEMORY[1], book.folder), Groups.by(book, _MEMORY[2], None)
        tally = GroupTally.of(book, _MEMORY, (shocks.groups, folders, sites), shocks.step, len(shocks.bins))
        return cls(book, shocks, tally, book.kept("shock.lately", FIRST_SHARE, np.float32))

    def keep(self, book: Book) -> None:
        """Store the state in the book's memory."""
        self.shocks.keep(book)
        self.tally.keep(book, _MEMORY)
        book.memory["shock.lately"] = self.lately

    def place(self, pages: AnyPages) -> Floats:
        """Return the positions of the pages' last visits among the bins."""
        return self.shocks.bins.place(self.book.last_visit[pages] / DAY)

    def observe(self, pages: AnyPages, changed: Flags) -> None:
        """Update with visits at the current time."""
        groups = self.shocks.observe(pages, self.place(pages), changed)
        rows = self.tally.observe(pages, changed)
        self.lately[pages] = _PAGE_FADE * self.lately[pages] + (1 - _PAGE_FADE) * changed
        if self.groups is not None:
            self.groups.update(self, groups, rows)

    def score_prior(self, pages: AnyPages, changed: Flags) -> None:
        """Update the evidence on the weights of priors with visits at the current time, before `observe`."""
        self.shocks.score_prior(pages, self.place(pages), changed)

    def until_change(self, pages: AnyPages, changed: Flags) -> Ints:
        """Return the positions of visits at the current time up to the first change of their URL template, in order."""
        of = self.shocks.groups.of[pages]
        order = np.argsort(of, kind="stable")
        of = of[order]
        found: Ints = np.cumsum(changed[order]) - changed[order]
        none_before = (found == found[np.searchsorted(of, of)]) & (self.tally.today[1, of] == 0)
        positions: Ints = np.sort(order[none_before])
        return positions

    def exposure(self, pages: AnyPages) -> Floats:
        """Return the activity of the pages' groups since their last visits, in days of usual activity."""
        return self.shocks.exposure(pages, self.place(pages))

    def predict_by_shocks(self, pages: AnyPages) -> Float32s:
        """Return change probabilities from the shock model alone, which is faster than `predict`."""
        return map_chunks(lambda chunk: self.shocks.predict(chunk, self.place(chunk)), pages)

    def predict(self, pages: AnyPages) -> Float32s:
        """Return the probability that each page has changed since its last visit."""
        return map_chunks(self._predict, pages)

    def _predict(self, pages: AnyPages) -> Floats:
        features = self.features(pages)
        by_shocks = 1 / (1 + np.exp(-features[:, 0].astype(np.float64)))
        probability: Floats = (by_shocks + predict_by_network(features)) / 2
        return probability

    def features(self, pages: AnyPages) -> Float32s:
        """Return the inputs of the network, page by `FEATURES`."""
        if self.groups is None:
            self.groups = GroupFeatures.of(self)
        place = self.place(pages)
        rows = self.tally.rows(pages)
        features = np.empty((len(pages), len(FEATURES)), np.float32)
        self._fill_shocks(pages, place, features[:, :3])
        features[:, 3:7] = self.groups.shocks[rows[:, 0]]
        self._fill_page(pages, features[:, 7:13])
        features[:, 13] = self.groups.size[rows[:, 0]]
        features[:, 14] = self.groups.size[rows[:, -1]]
        features[:, 15:] = self._group_features(rows, place.astype(np.int64)[:, None])
        return features

    def _fill_shocks(self, pages: AnyPages, place: Floats, features: Float32s) -> None:
        a, b = self.shocks.rate(pages)
        exposure = self.shocks.exposure(pages, place)
        features[:, 0] = log_odds(gamma_probability(a, b, exposure))
        features[:, 1] = np.log(exposure + 1e-3)
        features[:, 2] = np.log(a / b)

    def _fill_page(self, pages: AnyPages, features: Float32s) -> None:
        book = self.book
        gap = np.maximum(book.now - book.last_visit[pages], 1.0) / DAY
        age = np.maximum(book.now - book.found[pages], 0.0) / DAY
        compared = np.maximum(book.visits[pages] - 1, 0)
        changes = np.maximum(book.changes[pages] - 1, 0)
        own_rate = (changes + PAGE_WEIGHT) / (np.maximum(age - gap, 0.0) + PAGE_WEIGHT / FIRST_RATE)
        features[:, 0] = log_odds(-np.expm1(-own_rate * gap))
        features[:, 1] = np.log(gap)
        features[:, 2] = log_odds((changes + 0.5) / (compared + 1.5))
        features[:, 3] = np.log1p(compared)
        features[:, 4] = self.lately[pages]
        features[:, 5] = np.log1p(age)

    def _group_features(self, rows: Ints, bin_: Ints) -> Float32s:
        assert self.groups is not None
        features = self.groups.tally[rows]
        since = self.tally.since(rows, bin_)
        features[:, :, 4] = _smoothed_log_odds(since, self.tally.lately[rows])
        features[:, :, 5] = np.log1p(since[0])
        return features.reshape(len(rows), -1)


@dataclass(slots=True)
class GroupFeatures:
    """The network's inputs that depend on groups only, one row per group; visits update only the rows they affect."""

    shocks: Float32s
    """URL template by four: its rate, its site's rate, its latest shock, and its shock one and two weeks ago."""
    tally: Float32s
    """Row of the tally by group feature; the features that also depend on the page are filled in later."""
    size: Float32s
    """One per row of the tally: the logarithm of the number of downloaded pages."""

    @classmethod
    def of(cls, model: ChangeModel) -> GroupFeatures:
        """Compute the features of all groups."""
        shocks, tally = model.shocks, model.tally
        downloaded = model.book.visits > 0
        size = np.concatenate([group_sums(groups.of, downloaded, len(groups)) for groups in tally.groupings])
        rates = (shocks.group_rate, shocks.site_rate[shocks.groups.site], shocks.weeks_ago() + 1e-3)
        features = cls(
            shocks=np.zeros((len(shocks.groups), 4), np.float32),
            tally=np.zeros((len(tally.lately), len(_GROUP_FEATURES)), np.float32),
            size=np.log1p(size).astype(np.float32),
        )
        features.shocks[:, [0, 1, 3]] = np.log(np.stack(rates, axis=1))
        features.update(model, np.arange(len(shocks.groups)), np.arange(len(tally.lately)))
        return features

    def update(self, model: ChangeModel, groups: AnyPages, rows: Ints) -> None:
        """Compute again the features of groups of the shock model, and of rows of the tally."""
        self.shocks[groups, 2] = np.log(model.shocks.latest(groups) + 1e-3)
        tally = model.tally
        lately, today = tally.lately[rows], tally.today[:, rows]
        recent = tally.since(np.stack((rows, rows)), np.maximum(tally.bins - 1 - _BINS_BACK, 0))
        features = np.zeros((len(rows), len(_GROUP_FEATURES)), np.float32)
        features[:, 0] = log_odds(lately)
        features[:, [1, 6, 7]] = _smoothed_log_odds(np.concatenate((today[:, None], recent), axis=1), lately).T
        features[:, 2] = np.log1p(today[1])
        features[:, 3] = np.log1p(today[0] - today[1])
        self.tally[rows] = features


@dataclass(frozen=True, slots=True)
class Network:
    """A network with one hidden layer and standardised inputs.

    Products are summed in double precision and rounded to single precision afterwards: sums in single precision differ
    in their last bits from processor to processor, which can change the order of pages and so what a cycle visits.
    """

    middle: Float32s
    spread: Float32s
    hidden: Floats
    hidden_bias: Floats
    out: Floats
    out_bias: float

    def __call__(self, features: Float32s) -> Floats:
        """Return one probability per row."""
        scaled = features - self.middle
        scaled /= self.spread
        np.maximum(scaled, -4, out=scaled)
        np.minimum(scaled, 4, out=scaled)
        layer = scaled.astype(np.float64) @ self.hidden
        layer += self.hidden_bias
        np.maximum(layer, 0, out=layer)
        odds = np.exp(-(layer @ self.out + self.out_bias).astype(np.float32).astype(np.float64))
        probability: Floats = 1 / (1 + odds)
        return probability


@cache
def network() -> Network:
    """Load the fitted network."""
    kept = json.loads(Path(__file__).with_name("change_model.json").read_text(encoding="utf-8"))
    return Network(
        middle=np.array(kept["middle"], np.float32),
        spread=np.array(kept["spread"], np.float32),
        hidden=np.array(kept["hidden"], np.float32).astype(np.float64),
        hidden_bias=np.array(kept["hidden_bias"], np.float32).astype(np.float64),
        out=np.array(kept["out"], np.float32).astype(np.float64),
        out_bias=float(kept["out_bias"]),
    )


def predict_by_network(features: Float32s) -> Floats:
    """Return the fitted network's probabilities."""
    return network()(features)


def log_odds(probability: AnyFloats) -> Floats:
    """Return log odds, with probabilities limited to 0.0001 to 0.9999.

    >>> log_odds(np.array([0.5, 0.0])).round(2).tolist()
    [0.0, -9.21]
    """
    odds: Floats = np.minimum(np.maximum(probability.astype(np.float64), 1e-4), 1 - 1e-4)
    odds /= 1 - odds
    return np.log(odds, out=odds)


def _smoothed_log_odds(counts: Float32s, prior: Floats) -> Floats:
    """Return the log odds of changed visits, smoothed by two visits at the prior share."""
    visits, changes = counts
    return log_odds((changes + 2 * prior) / (visits + 2))
