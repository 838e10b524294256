"""How far hints are believed: what a server volunteers about change, weighed by how often it proved right.

A source (a site's sitemap, feed, pushes: each *kind* on each site) is taken to tell of a change with some chance, its
recall r, and to cry wolf at some rate f. When u changes were to be expected of a page since its last visit, t ago, and
the source has signalled n times, then

    P(unchanged) = e^(-(1-r)u) · (ft / (ft + ru))^n                     (algorithms §7, with u for Δt)

so a signal of a source without false alarms is as good as knowing, and the silence of one that tells all is, too.
Neither r nor f is known. For each kind and site the book's memory holds how well each pair of a grid of them has
foretold what visits found. No source gets credit for mending what is wrong with all else that is known of a page, so
there are rivals: that this is wrong by some factor, and *echoes*, the same pairs, which are not told what was said of a
page, but only how much is usually said of pages of its site. A source that says the same of all pages cannot do better
than its echo. Visits are chosen by what is believed, so only this kind of evidence is sound: it asks what a visit
finds, given the signals, and never how many of the changes found had been signalled. Sites of which little is seen lean
on what is usual among the others.

    signals = Signals.of(book)                 a copy of what was learned; without hints all of this does nothing
    chance = signals.chance(pages, chance)     chances by everything else, moved by signals and silence
    signals.observe(pages, changed)            what came of visits; after `chance` was asked of the same pages
    signals.keep(book)                         into the memory again
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book, Hints
from recrawl.learn.chunks import AnyFloats, Floats

DAY = 86400.0
RECALLS = (0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.999)
ALARMS = (1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0)
"""False signals a day."""
FORGET = 0.005
"""The share of the evidence that is forgotten in a day."""
SCALES = (0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0)
"""By how much the chances that all else gives may be wrong."""
_PAIRS = np.array([(recall, alarms, 1.0) for recall in RECALLS for alarms in ALARMS])
_GRID = np.concatenate(([(0.0, 1.0, scale) for scale in SCALES], _PAIRS, _PAIRS))
_RECALL, _ALARM, _SCALE = _GRID.T
_ECHO = slice(len(SCALES), len(SCALES) + len(_PAIRS))
_HEEDED = slice(_ECHO.stop, len(_GRID))
_PRIOR = np.full(len(_GRID), 0.5 / len(SCALES))
_PRIOR[_ECHO], _PRIOR[_HEEDED] = 0.5 / len(_PAIRS), 1e-4 / len(_PAIRS)
_PRIOR_WEIGHT = 1.0
"""How many sites the prior counts as, against what other sites have shown."""
_ROUNDS = 4
_SURE = 1e-3
"""No hypothesis is ever surer of a visit than this, so that no single visit can settle the matter."""
_SHORTEST = 60.0 / DAY
_MOST_CHANGES = 30.0


@dataclass(frozen=True, slots=True)
class HintTrust:
    """What was learned of one kind on one site."""

    site: int
    kind: str
    recall: float
    """The share of changes that it tells of."""
    alarms: float
    """False signals a day and page."""
    heeded: float
    """The chance that it is worth anything."""
    precision: float
    """The share of signalled visits that found a change."""
    signalled: float
    silent: float
    """Visits after signals, and visits in silence; older ones faded."""


class Signals:
    """Signals and silence since the pages' last visits, and what they are worth."""

    def __init__(
        self, hints: Hints | None, site: NDArray[np.int32], gap: Floats, memory: Mapping[str, NDArray[Any]], now: float
    ) -> None:
        self._hints = hints
        self._site = site
        self._gap = np.maximum(gap / DAY, _SHORTEST)
        self._now = now
        self._asked = np.zeros(len(gap), np.float32)
        """One per page: changes to be expected without hints, as `chance` was last told."""
        sites = int(site.max(initial=-1)) + 1
        kinds = hints.kinds if hints else ()
        fade = (1 - FORGET) ** max(0.0, (now - float(memory.get("hints.now", np.array(now)))) / DAY)
        self._logs = {kind: fade * _tall(memory.get(f"hints.{kind}.logs"), sites, len(_GRID)) for kind in kinds}
        self._counts = {kind: fade * _tall(memory.get(f"hints.{kind}.counts"), sites, 4) for kind in kinds}
        self._said = {kind: fade * _tall(memory.get(f"hints.{kind}.said"), sites, 2) for kind in kinds}
        """By site: signals, and the days in which they came."""
        self._recall: dict[str, Floats] = {}
        self._alarm: dict[str, Floats] = {}
        self._doubt: dict[str, Floats] = {}
        for row, kind in enumerate(kinds):
            self._said[kind] += self._says(row, sites)
            self._settle(kind)

    @classmethod
    def of(cls, book: Book) -> Signals:
        """What a book's memory holds, and the hints that wait in it."""
        gap = np.zeros(0)  # where there are no hints, nobody asks for it
        if book.hints is not None:
            gap = np.where(np.isfinite(book.last_visit), book.now - book.last_visit, 0.0)
        return cls(book.hints, book.site, gap, book.memory, book.now)

    def keep(self, book: Book) -> None:
        """Save what was learned in the book's memory."""
        if self._hints is None:
            return
        book.memory["hints.now"] = np.array(max(self._now, float(book.memory.get("hints.now", np.array(-np.inf)))))
        for kind in self._hints.kinds:
            book.memory[f"hints.{kind}.logs"] = self._logs[kind].astype(np.float32)
            book.memory[f"hints.{kind}.counts"] = self._counts[kind].astype(np.float32)
            book.memory[f"hints.{kind}.said"] = self._said[kind].astype(np.float32)

    def chance(self, pages: NDArray[np.int64], chance: AnyFloats) -> AnyFloats:
        """The chances of pages of having changed, given those that all else gives them."""
        if self._hints is None:
            return chance
        u = _expected(chance)
        self._asked[pages] = u
        missed, alarm = self._heard(pages, u)
        moved: Floats = -np.expm1(np.sum(alarm, axis=0) - u * np.prod(missed, axis=0))
        return moved

    def observe(self, pages: NDArray[np.int64], changed: NDArray[np.bool_]) -> None:
        """What visits have found, of pages that `chance` was asked for."""
        if self._hints is None or not len(pages):
            return
        u = self._asked[pages].astype(np.float64)
        missed, alarm = self._heard(pages, u)
        for row, kind in enumerate(self._hints.kinds):
            heard = np.flatnonzero(self._covered(row, pages) + self._hints.signals[row, pages])
            if len(heard):
                # What the other kinds say is taken as said: a source earns nothing by what another has told.
                others = np.arange(len(missed)) != row
                rest = np.prod(missed[others], axis=0)[heard] * u[heard]
                said = np.sum(alarm[others], axis=0)[heard]
                self._weigh(row, pages[heard], changed[heard], u[heard], rest, said)
                self._settle(kind)

    def trust(self) -> list[HintTrust]:
        """What is believed of every source that was heard of."""
        found = []
        for kind, counts in self._counts.items():
            heeded = 1 - self._doubt[kind]
            for site in np.flatnonzero(counts[:, 0] + counts[:, 2] > 0).tolist():
                signalled, true, silent, _ = counts[site].tolist()
                found.append(
                    HintTrust(
                        site=site,
                        kind=kind,
                        recall=float(self._recall[kind][site] * heeded[site]),
                        alarms=float(self._alarm[kind][site]),
                        heeded=float(heeded[site]),
                        precision=(true + 0.5) / (signalled + 1),
                        signalled=signalled,
                        silent=silent,
                    )
                )
        return found

    def sources(self, pages: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Of the sources that speak of a page: the share of changes that none tells, all their false signals a day."""
        missed, false = np.ones(len(pages)), np.zeros(len(pages))
        site = self._site[pages]
        for row, kind in enumerate(self._hints.kinds if self._hints else ()):
            heard = (self._covered(row, pages) > 0).astype(np.float64)
            missed *= 1 - heard * (1 - self._doubt[kind][site]) * self._recall[kind][site]
            false += heard * self._alarm[kind][site]
        return missed, false

    def _heard(self, pages: NDArray[np.int64], u: Floats) -> tuple[Floats, Floats]:
        """Kind by page: the share of changes that its silence leaves possible, and the log of P(no signal is true)."""
        assert self._hints is not None
        site, gap = self._site[pages], self._gap[pages]
        missed = np.ones((len(self._hints.kinds), len(pages)))
        alarm = np.zeros_like(missed)
        for row, kind in enumerate(self._hints.kinds):
            recall, doubt = self._recall[kind][site], self._doubt[kind][site]
            missed[row] = 1 - (1 - doubt) * recall * self._covered(row, pages)
            told = np.flatnonzero(self._hints.signals[row, pages])
            if len(told):
                false = self._alarm[kind][site[told]] * gap[told]
                log = np.log(false / (false + recall[told] * u[told])) * self._hints.signals[row, pages[told]]
                alarm[row, told] = np.log(doubt[told] + (1 - doubt[told]) * np.exp(log))
        return missed, alarm

    def _covered(self, row: int, pages: NDArray[np.int64]) -> Floats:
        """The share of the time since the last visit for which the source's silence means something."""
        assert self._hints is not None
        unheard = (self._now - self._hints.until[row, pages]) / DAY
        share: Floats = np.clip(1 - unheard / self._gap[pages], 0.0, 1.0)
        return share

    def _says(self, row: int, sites: int) -> Floats:
        """Site by two: all signals since the last visits of its pages, and the days since then."""
        assert self._hints is not None
        told = self._hints.signals[row]  # of the pages that were known when it was read; more may have been found since
        site, gap = self._site[: len(told)], self._gap[: len(told)]
        heard = (self._hints.until[row] > -np.inf) & (gap > _SHORTEST)
        return np.stack([np.bincount(site, column * heard, sites) for column in (told, gap)], axis=1)

    def _weigh(
        self, row: int, pages: NDArray[np.int64], changed: NDArray[np.bool_], u: Floats, rest: Floats, said: Floats
    ) -> None:
        """Add to the evidence how well each pair has foretold the visits; `rest` and `said` is by other kinds."""
        assert self._hints is not None
        kind, site = self._hints.kinds[row], self._site[pages]
        signals, gap = self._hints.signals[row, pages].astype(np.float64), self._gap[pages]
        usual = self._said[kind][:, 0] / np.maximum(self._said[kind][:, 1], _SHORTEST)
        told = np.repeat(signals[:, None], len(_GRID), axis=1)
        told[:, _ECHO] = (usual[site] * gap)[:, None]
        false = gap[:, None] * _ALARM
        log = np.log(false / (false + np.outer(u, _RECALL)))
        missed = _SCALE * (1 - np.outer(self._covered(row, pages), _RECALL))
        stays = said[:, None] + told * log - rest[:, None] * missed
        unchanged = np.clip(np.exp(stays), _SURE, 1 - _SURE)
        foretold = np.log(np.where(changed[:, None], 1 - unchanged, unchanged))
        order = np.argsort(site, kind="stable")
        sites, starts = np.unique(site[order], return_index=True)
        self._logs[kind][sites] += np.add.reduceat(foretold[order], starts, axis=0)
        signalled = signals > 0
        seen = np.stack((signalled, signalled & changed, ~signalled, ~signalled & changed), axis=1).astype(np.float64)
        self._counts[kind][sites] += np.add.reduceat(seen[order], starts, axis=0)

    def _settle(self, kind: str) -> None:
        """From evidence to belief: each site's leans on what is usual among the sites that were heard of."""
        logs, counts = self._logs[kind], self._counts[kind]
        heard = counts[:, 0] + counts[:, 2] > 0
        usual = _PRIOR
        for _ in range(_ROUNDS if heard.any() else 0):
            usual = (_PRIOR_WEIGHT * _PRIOR + _posterior(logs[heard], usual).sum(axis=0)) / (
                _PRIOR_WEIGHT + np.count_nonzero(heard)
            )
        belief = _posterior(logs, usual)
        heeded = belief[:, _HEEDED]
        weight = heeded / np.maximum(heeded.sum(axis=1, keepdims=True), 1e-300)
        self._doubt[kind] = belief[:, : _HEEDED.start].sum(axis=1)
        self._recall[kind] = weight @ _RECALL[_HEEDED]
        self._alarm[kind] = np.exp(weight @ np.log(_ALARM[_HEEDED]))


def _posterior(logs: Floats, prior: Floats) -> Floats:
    """Site by pair: the chances of the pairs."""
    odds = logs - logs.max(axis=1, keepdims=True)
    weights: Floats = np.exp(odds) * prior
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _expected(chance: AnyFloats) -> Floats:
    """The changes to be expected where the chance of any is this: at least next to none."""
    expected: Floats = np.clip(-np.log1p(-np.minimum(chance.astype(np.float64), 1 - 1e-13)), 1e-9, _MOST_CHANGES)
    return expected


def _tall(kept: NDArray[Any] | None, rows: int, columns: int) -> Floats:
    """A table of memory, with rows for sites that came since."""
    table = np.zeros((rows, columns))
    if kept is not None and kept.ndim == 2 and kept.shape[1] == columns:
        table[: len(kept)] = kept[:rows]
    return table
