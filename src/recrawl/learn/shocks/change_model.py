"""The chance that a page has changed: what is believed of shocks and rates, corrected by how visits really went.

The belief of `shocks` is a model, and models are wrong in ways that repeat. A small network looks at the belief and at
what was counted: how visits to pages of the same form, directory and site have gone today, of late and since the
page's own last visit, beside the page's own record. What the groupings are worth against one another, it has learnt.
Its weights were fitted once, on replays of many sites, and are the same for all; nothing in it names a site.

`python -m benchmarks.opinion ARCHIVE...` fits the weights again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.learn.chunks import AnyFloats, Column, Pages, by_parts, sums
from recrawl.learn.shocks.group_tallies import FIRST_SHARE, Groups, GroupTally
from recrawl.learn.shocks.model import DAY, FIRST_RATE, PAGE_WEIGHT, Shocks, gamma
from recrawl.learn.shocks.time_bins import Floats

LEVELS = ("form", "folder", "site")
_KEPT = ("shock.form", "shock.folder", "shock.by_site")
"""Under which their counts are kept."""
_PARTS = ("lately", "today", "finds_today", "misses_today", "since", "visits_since", "recent", "fortnight")
_PER_GROUP = len(_PARTS)
NAMES = (
    *("belief", "exposure", "rate", "form_rate", "site_rate", "form_now", "form_week"),
    *("alone", "gap", "own", "visits", "lately", "age", "form_size", "site_size"),
    *(f"{level}_{part}" for level in LEVELS for part in _PARTS),
)
"""What the network looks at."""
_BACK = np.array([[3], [14]])
"""So many bins are `recent`, and a `fortnight`."""
_PAGE_FADE = 0.15
"""How much of a page's own share stays when one more visit is taken in."""


@dataclass(slots=True)
class ChangeModel:
    """All that chances rest on; `of` makes it, `observe` changes it, `keep` saves it."""

    book: Book
    belief: Shocks
    tally: GroupTally
    """Its groupings are those of `LEVELS`."""
    lately: Column
    """One per page: the share of its visits that found a change, all but the last few forgotten."""
    groups: GroupViews | None = None
    """What is seen of groups, once somebody has looked."""

    @classmethod
    def of(cls, book: Book) -> ChangeModel:
        """What the book's memory holds, up to now."""
        belief = Shocks.of(book, "shock", book.form)
        folders, sites = Groups.by(book, _KEPT[1], book.folder), Groups.by(book, _KEPT[2], None)
        tally = GroupTally.of(book, _KEPT, (belief.groups, folders, sites), belief.step, len(belief.bins))
        return cls(book, belief, tally, book.kept("shock.lately", FIRST_SHARE, np.float32))

    def keep(self, book: Book) -> None:
        """Save it in the book's memory."""
        self.belief.keep(book)
        self.tally.keep(book, _KEPT)
        book.memory["shock.lately"] = self.lately

    def place(self, pages: Pages) -> Floats:
        """The last visits of pages among the bins."""
        return self.belief.bins.place(self.book.last_visit[pages] / DAY)

    def observe(self, pages: Pages, changed: NDArray[np.bool_]) -> None:
        """Take in visits made now."""
        groups = self.belief.observe(pages, self.place(pages), changed)
        rows = self.tally.observe(pages, changed)
        self.lately[pages] = _PAGE_FADE * self.lately[pages] + (1 - _PAGE_FADE) * changed
        if self.groups is not None:
            self.groups.renew(self, groups, rows)

    def exposure(self, pages: Pages) -> Floats:
        """What has happened to the pages' groups since their last visits, in days of ordinary time."""
        return self.belief.exposure(pages, self.place(pages))

    def believed(self, pages: Pages) -> Column:
        """The chances by the belief alone."""
        return by_parts(lambda part: self.belief.chance(part, self.place(part)), pages)

    def chance(self, pages: Pages) -> Column:
        """The chances of pages of having changed since their last visits."""
        return by_parts(self._chance, pages)

    def _chance(self, pages: Pages) -> Floats:
        seen = self.evidence(pages)
        believed = 1 / (1 + np.exp(-seen[:, 0].astype(np.float64)))
        chance: Floats = (believed + chances(seen)) / 2
        return chance

    def evidence(self, pages: Pages) -> Column:
        """What the network looks at, page by `NAMES`."""
        if self.groups is None:
            self.groups = GroupViews.of(self)
        place = self.place(pages)
        rows = self.tally.rows(pages)
        seen = np.empty((len(pages), len(NAMES)), np.float32)
        self._look_at_belief(pages, place, seen[:, :3])
        seen[:, 3:7] = self.groups.belief[rows[:, 0]]
        self._look_at_page(pages, seen[:, 7:13])
        seen[:, 13] = self.groups.size[rows[:, 0]]
        seen[:, 14] = self.groups.size[rows[:, -1]]
        seen[:, 15:] = self._look_at_groups(rows, place.astype(np.int64)[:, None])
        return seen

    def _look_at_belief(self, pages: Pages, place: Floats, seen: Column) -> None:
        a, b = self.belief.rate(pages)
        passed = self.belief.exposure(pages, place)
        seen[:, 0] = log_odds(gamma(a, b, passed))
        seen[:, 1] = np.log(passed + 1e-3)
        seen[:, 2] = np.log(a / b)

    def _look_at_page(self, pages: Pages, seen: Column) -> None:
        book = self.book
        gap = np.maximum(book.now - book.last_visit[pages], 1.0) / DAY
        age = np.maximum(book.now - book.found[pages], 0.0) / DAY
        again = np.maximum(book.visits[pages] - 1, 0)
        changes = np.maximum(book.changes[pages] - 1, 0)
        alone = (changes + PAGE_WEIGHT) / (np.maximum(age - gap, 0.0) + PAGE_WEIGHT / FIRST_RATE)
        seen[:, 0] = log_odds(-np.expm1(-alone * gap))
        seen[:, 1] = np.log(gap)
        seen[:, 2] = log_odds((changes + 0.5) / (again + 1.5))
        seen[:, 3] = np.log1p(again)
        seen[:, 4] = self.lately[pages]
        seen[:, 5] = np.log1p(age)

    def _look_at_groups(self, rows: NDArray[np.int64], bin_: NDArray[np.int64]) -> Column:
        assert self.groups is not None
        seen = self.groups.tally[rows]
        since = self.tally.since(rows, bin_)
        seen[:, :, 4] = _leaning(since, self.tally.lately[rows])
        seen[:, :, 5] = np.log1p(since[0])
        return seen.reshape(len(rows), -1)


@dataclass(slots=True)
class GroupViews:
    """What the network sees of groups, one row a group; after visits only the rows that they have moved are renewed."""

    belief: Column
    """Form by what is believed of it: its rate, the site's, what happened to it just now and some weeks ago."""
    tally: Column
    """Row of the tally by what was counted; what depends on the page as well is left open."""
    size: Column
    """One per row of the tally: how many pages the group has that were downloaded."""

    @classmethod
    def of(cls, opinion: ChangeModel) -> GroupViews:
        """All groups."""
        belief, tally = opinion.belief, opinion.tally
        there = opinion.book.visits > 0
        size = np.concatenate([sums(groups.of, there, len(groups)) for groups in tally.groupings])
        rates = (belief.group_rate, belief.site_rate[belief.groups.site], belief.a_week_ago() + 1e-3)
        views = cls(
            belief=np.zeros((len(belief.groups), 4), np.float32),
            tally=np.zeros((len(tally.lately), _PER_GROUP), np.float32),
            size=np.log1p(size).astype(np.float32),
        )
        views.belief[:, [0, 1, 3]] = np.log(np.stack(rates, axis=1))
        views.renew(opinion, np.arange(len(belief.groups)), np.arange(len(tally.lately)))
        return views

    def renew(self, opinion: ChangeModel, groups: Pages, rows: NDArray[np.int64]) -> None:
        """Look again at groups of the belief, and at rows of the tally."""
        self.belief[groups, 2] = np.log(opinion.belief.latest(groups) + 1e-3)
        tally = opinion.tally
        usual, today = tally.lately[rows], tally.today[:, rows]
        of_late = tally.since(np.stack((rows, rows)), np.maximum(tally.bins - 1 - _BACK, 0))
        seen = np.zeros((len(rows), _PER_GROUP), np.float32)
        seen[:, 0] = log_odds(usual)
        seen[:, [1, 6, 7]] = _leaning(np.concatenate((today[:, None], of_late), axis=1), usual).T
        seen[:, 2] = np.log1p(today[1])
        seen[:, 3] = np.log1p(today[0] - today[1])
        self.tally[rows] = seen


@dataclass(frozen=True, slots=True)
class Network:
    """One hidden layer; the inputs are standardised first.

    Products are summed in double precision and rounded to single precision afterwards: sums in single precision differ
    in their last bits from processor to processor, which can change the order of pages and so what a cycle visits.
    """

    middle: Column
    spread: Column
    hidden: Floats
    hidden_bias: Floats
    out: Floats
    out_bias: float

    def __call__(self, seen: Column) -> Floats:
        """Chances, one a row."""
        scaled = seen - self.middle
        scaled /= self.spread
        np.maximum(scaled, -4, out=scaled)
        np.minimum(scaled, 4, out=scaled)
        layer = scaled.astype(np.float64) @ self.hidden
        layer += self.hidden_bias
        np.maximum(layer, 0, out=layer)
        odds = np.exp(-(layer @ self.out + self.out_bias).astype(np.float32).astype(np.float64))
        chance: Floats = 1 / (1 + odds)
        return chance


@cache
def network() -> Network:
    """The network as it was fitted."""
    kept = json.loads(files("recrawl.learn.shocks").joinpath("change_model.json").read_text(encoding="utf-8"))
    return Network(
        middle=np.array(kept["middle"], np.float32),
        spread=np.array(kept["spread"], np.float32),
        hidden=np.array(kept["hidden"], np.float32).astype(np.float64),
        hidden_bias=np.array(kept["hidden_bias"], np.float32).astype(np.float64),
        out=np.array(kept["out"], np.float32).astype(np.float64),
        out_bias=float(kept["out_bias"]),
    )


def chances(seen: Column) -> Floats:
    """The network's chances, from `evidence`."""
    return network()(seen)


def log_odds(chance: AnyFloats) -> Floats:
    """
    >>> log_odds(np.array([0.5, 0.0])).round(2).tolist()
    [0.0, -9.21]
    """
    odds: Floats = np.minimum(np.maximum(chance.astype(np.float64), 1e-4), 1 - 1e-4)
    odds /= 1 - odds
    return np.log(odds, out=odds)


def _leaning(counts: Column, usual: Floats) -> Floats:
    """The log odds of finds among visits, leaning on what is usual by two visits."""
    tries, hits = counts
    return log_odds((hits + 2 * usual) / (tries + 2))
