"""The chance that a page has changed: what is believed of shocks and rates, corrected by how visits really went.

The belief of `shocks` is a model, and models are wrong in ways that repeat. A small network looks at the belief and at
what was counted: how visits to pages of the same form, directory and site have gone today, of late and since the
page's own last visit, beside the page's own record. What the groupings are worth against one another, it has learnt.
Its weights were fitted once, on replays of many sites, and are the same for all; nothing in it names a site.

`python -m benchmarks.opinion ARCHIVE...` fits the weights again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.learn.bins import Floats
from recrawl.learn.shocks import DAY, FIRST_RATE, PAGE_WEIGHT, Shocks
from recrawl.learn.tallies import FIRST_SHARE, Groups, Pages, Tally

LEVELS = ("form", "folder", "site")
NAMES = (
    *("belief", "exposure", "rate", "form_rate", "site_rate", "form_now", "form_week"),
    *("alone", "gap", "own", "visits", "lately", "age", "form_size", "site_size"),
    *(
        f"{level}_{part}"
        for level in LEVELS
        for part in ("lately", "today", "finds_today", "misses_today", "since", "visits_since", "recent", "fortnight")
    ),
)
"""What the network looks at."""
_PAGE_FADE = 0.15
"""How much of a page's own share stays when one more visit is taken in."""
_ROWS = 1 << 16
"""So many pages are looked at at once; the room that it takes does not grow with the repository."""


@dataclass(slots=True)
class Opinion:
    """All that chances rest on; `of` makes it, `observe` changes it, `keep` saves it."""

    book: Book
    belief: Shocks
    tallies: tuple[Tally, ...]
    """By `LEVELS`."""
    lately: Floats
    """One per page: the share of its visits that found a change, all but the last few forgotten."""
    place: Floats
    """One per page: its last visit among the bins."""
    week: Floats
    """One per form: what happened to it a week ago, and two."""
    sizes: tuple[Floats, ...]
    """By `LEVELS`: how many pages each group has that were downloaded."""

    @classmethod
    def of(cls, book: Book) -> Opinion:
        """What the book's memory holds, up to now."""
        belief = Shocks.of(book)
        labels = (book.form, book.folder, None)
        tallies = []
        for level, label in zip(LEVELS, labels, strict=True):
            name = f"shock.{level}"
            groups = belief.groups if level == "form" else Groups.by(book, name, label)
            tallies.append(Tally.of(book, name, groups, belief.step, len(belief.bins)))
        place = belief.bins.place(book.last_visit / DAY)
        lately = book.kept("shock.lately", FIRST_SHARE)
        there = book.visits > 0
        sizes = tuple(
            np.bincount(tally.groups.of[there], minlength=len(tally.groups)).astype(np.float64) for tally in tallies
        )
        return cls(book, belief, tuple(tallies), lately, place, belief.a_week_ago(), sizes)

    def keep(self, book: Book) -> None:
        """Save it in the book's memory."""
        self.belief.keep(book)
        for level, tally in zip(LEVELS, self.tallies, strict=True):
            tally.keep(book, f"shock.{level}")
        book.memory["shock.lately"] = self.lately

    def observe(self, pages: Pages, changed: NDArray[np.bool_]) -> None:
        """Take in visits made now."""
        self.belief.observe(pages, self.place[pages], changed)
        for tally in self.tallies:
            tally.observe(pages, changed)
        self.lately[pages] = _PAGE_FADE * self.lately[pages] + (1 - _PAGE_FADE) * changed

    def believed(self, pages: Pages) -> Floats:
        """The chances by the belief alone."""
        return _by_parts(self._believed, pages)

    def chance(self, pages: Pages) -> Floats:
        """The chances of pages of having changed since their last visits."""
        return _by_parts(self._chance, pages)

    def _believed(self, pages: Pages) -> Floats:
        passed = self.belief.exposure(pages, self.place[pages])
        a, b = self.belief.a[pages], self.belief.b[pages]
        chance: Floats = 1 - (b / (b + passed)) ** a
        return chance

    def _chance(self, pages: Pages) -> Floats:
        seen = self.evidence(pages)
        believed = 1 / (1 + np.exp(-seen[:, 0].astype(np.float64)))
        chance: Floats = (believed + chances(seen)) / 2
        return chance

    def evidence(self, pages: Pages) -> NDArray[np.float32]:
        """What the network looks at, page by `NAMES`."""
        seen = np.empty((len(pages), len(NAMES)), np.float32)
        self._look_at_belief(pages, seen[:, :7])
        self._look_at_page(pages, seen[:, 7:15])
        bin_ = self.place[pages].astype(np.int64)
        for level, tally in enumerate(self.tallies):
            self._look_at_group(tally, tally.groups.of[pages], bin_, seen[:, 15 + 8 * level : 23 + 8 * level])
        return seen

    def _look_at_belief(self, pages: Pages, seen: NDArray[np.float32]) -> None:
        belief = self.belief
        group, a, b = belief.groups.of[pages], belief.a[pages], belief.b[pages]
        passed = belief.exposure(pages, self.place[pages])
        of_group = np.stack(
            (belief.group_rate, belief.site_rate[belief.groups.site], belief.latest(), self.week), axis=1
        )
        of_group[:, 2:] += 1e-3
        seen[:, 0] = log_odds(1 - (b / (b + passed)) ** a)
        seen[:, 1] = np.log(passed + 1e-3)
        seen[:, 2] = np.log(a / b)
        seen[:, 3:] = np.log(of_group)[group]

    def _look_at_page(self, pages: Pages, seen: NDArray[np.float32]) -> None:
        book = self.book
        gap = np.maximum(book.now - book.last_visit[pages], 1.0) / DAY
        age = np.maximum(book.now - book.found[pages], 0.0) / DAY
        again = np.maximum(book.visits[pages] - 1, 0)
        changes = np.maximum(book.changes[pages] - 1, 0)
        alone = (changes + PAGE_WEIGHT) / (np.maximum(age - gap, 0.0) + PAGE_WEIGHT / FIRST_RATE)
        form, _, site = self.tallies
        seen[:, 0] = log_odds(-np.expm1(-alone * gap))
        seen[:, 1] = np.log(gap)
        seen[:, 2] = log_odds((changes + 0.5) / (again + 1.5))
        seen[:, 3] = np.log1p(again)
        seen[:, 4] = self.lately[pages]
        seen[:, 5] = np.log1p(age)
        seen[:, 6] = np.log1p(self.sizes[0])[form.groups.of[pages]]
        seen[:, 7] = np.log1p(self.sizes[-1])[site.groups.of[pages]]

    def _look_at_group(self, tally: Tally, group: Pages, bin_: Pages, seen: NDArray[np.float32]) -> None:
        usual = np.where(np.isnan(tally.lately), FIRST_SHARE, tally.lately)
        all_ = np.arange(len(tally.groups))
        tries, hits = tally.today(all_)
        last = len(self.belief.bins) - 1
        of_group = np.empty((len(all_), 6), np.float32)
        of_group[:, 0] = log_odds(usual)
        of_group[:, 1] = _leaning(tries, hits, usual)
        of_group[:, 2] = np.log1p(hits)
        of_group[:, 3] = np.log1p(tries - hits)
        for column, back in ((4, 3), (5, 14)):
            of_group[:, column] = _leaning(*tally.since(all_, np.full(len(all_), max(last - back, 0))), usual)
        since = tally.since(group, bin_)
        seen[:, [0, 1, 2, 3, 6, 7]] = of_group[group]
        seen[:, 4] = _leaning(*since, usual[group])
        seen[:, 5] = np.log1p(since[0])


@dataclass(frozen=True, slots=True)
class Network:
    """One hidden layer; what goes in is put to one scale first."""

    middle: NDArray[np.float32]
    spread: NDArray[np.float32]
    hidden: NDArray[np.float32]
    hidden_bias: NDArray[np.float32]
    out: NDArray[np.float32]
    out_bias: float

    def __call__(self, seen: NDArray[np.float32]) -> Floats:
        """Chances, one a row."""
        scaled = np.clip((seen - self.middle) / self.spread, -4, 4)
        layer = np.maximum(scaled @ self.hidden + self.hidden_bias, 0)
        odds = np.exp(-(layer @ self.out + self.out_bias).astype(np.float64))
        chance: Floats = 1 / (1 + odds)
        return chance


@cache
def network() -> Network:
    """The network as it was fitted."""
    kept = json.loads(files("recrawl.learn").joinpath("opinion.json").read_text(encoding="utf-8"))
    columns = {name: np.array(kept[name], np.float32) for name in ("middle", "spread", "hidden", "hidden_bias", "out")}
    return Network(**columns, out_bias=float(kept["out_bias"]))


def chances(seen: NDArray[np.float32]) -> Floats:
    """The network's chances, from `evidence`."""
    return network()(seen)


def _by_parts(chance: Callable[[Pages], Floats], pages: Pages) -> Floats:
    parts = [chance(pages[i : i + _ROWS]) for i in range(0, len(pages), _ROWS)]
    return np.concatenate(parts) if parts else np.zeros(0)


def log_odds(chance: Floats) -> Floats:
    """
    >>> log_odds(np.array([0.5, 0.0])).round(2).tolist()
    [0.0, -9.21]
    """
    held = np.clip(chance, 1e-4, 1 - 1e-4)
    odds: Floats = np.log(held / (1 - held))
    return odds


def _leaning(tries: Floats, hits: Floats, usual: Floats) -> Floats:
    """The log odds of finds among visits, leaning on what is usual by two visits."""
    return log_odds((hits + 2 * usual) / (tries + 2))
