"""Hints: what servers volunteer about change in sitemaps, feeds and pushes, and how far to trust it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book, Hints
from recrawl.columns import DAY, Flags, Floats, Int32s
from recrawl.learn.chunks import AnyFloats
from recrawl.model import Pages

# --------------------------------------------------------------------------------------------------------------------
# Which dates in sitemaps, feeds and headers are signals of a change.
#
# Dates are hostile input: in the future, before the web, never changing, or repeated at every reading. A claim is a
# signal only if it differs from the previous claim and is later than the last visit; an earlier date reports a change
# that a visit has already seen (algorithms §7).


MAX_AHEAD = DAY
"""How far in the future a date may be, in seconds: wrong time zones shift dates by up to a day."""


def plausible(claimed: Floats, seen: Floats | float) -> Flags:
    """Return which dates can be true, read at the time `seen`: numbers, not before 1970, not in the future.

    >>> plausible(np.array([5.0, -1.0, np.nan, 9e9]), 100.0).tolist()
    [True, False, False, False]
    """
    valid: Flags = (claimed >= 0) & (claimed <= np.asarray(seen) + MAX_AHEAD)
    return valid


def signals_change(claimed: Floats, before: Floats, last_visit: Floats, seen: Floats | float) -> Flags:
    """Return which dates signal a change; `before` is the previously read date, NaN for none.

    A date at midnight that differs from the previous one covers the whole day, since most such dates have no hour.

    >>> last, before = np.full(5, 5.5 * DAY), np.array([2.0, 6.1, 2.0, 2.0, np.nan]) * DAY
    >>> signals_change(np.array([6.1, 6.1, 5.2, 5.0, 5.0]) * DAY, before, last, 7 * DAY).tolist()
    [True, False, False, True, False]
    """
    valid = plausible(claimed, seen)
    date = np.where(valid, claimed, 1.0)
    end = np.where((date % DAY == 0) & ~np.isnan(before), date + DAY, date)
    signal: Flags = valid & (claimed != before) & (end > last_visit)
    return signal


# --------------------------------------------------------------------------------------------------------------------
# Trust in hints: how reliable each source of change signals is, learned from visits.
#
# A source is one *kind* of hint (sitemap, feed, push) on one site. It signals a change with probability r, its recall,
# and sends false signals at the rate f. If u changes are expected on a page since its last visit, t ago, and the source
# has signalled n times, then
#
#     P(unchanged) = e^(-(1-r)u) · (ft / (ft + ru))^n                     (algorithms §7, with u for Δt)
#
# so a signal of a source without false alarms is certain, and so is the silence of a source with full recall. For each
# kind and site the book's memory holds the log-likelihood of the visits under every pair (r, f) of a grid. Two kinds of
# rival hypotheses keep a source from getting credit for correcting errors of the base model: that the base
# probabilities are wrong by a constant factor, and *echoes*, the same pairs with the site's mean signal rate in place
# of the page's own signals. A source that signals all pages alike cannot beat its echo. Since visits are chosen by
# these probabilities, only the likelihood of what a visit finds given the signals is unbiased, never the share of found
# changes that were signalled. Sites with few visits use what is common among the other sites.
#
#     signals = Signals.of(book)                          a copy of the learned state; without hints it has no effect
#     probability = signals.predict(pages, probability)   change probabilities of the base model, given the signals
#     signals.observe(pages, changed)                     outcomes of visits, after `predict` for the same pages
#     signals.keep(book)                                  store the state in the book's memory


RECALLS = (0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.999)
ALARMS = (1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0)
"""False signals per day."""
FORGET = 0.005
"""The share of the evidence that decays per day."""
SCALES = (0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0)
"""Factors by which the base model may be wrong."""
_PAIRS = np.array([(recall, alarms, 1.0) for recall in RECALLS for alarms in ALARMS])
_GRID = np.concatenate(([(0.0, 1.0, scale) for scale in SCALES], _PAIRS, _PAIRS))
_RECALL, _ALARM, _SCALE = _GRID.T
_ECHO = slice(len(SCALES), len(SCALES) + len(_PAIRS))
_SOURCE = slice(_ECHO.stop, len(_GRID))
_PRIOR = np.full(len(_GRID), 0.5 / len(SCALES))
_PRIOR[_ECHO], _PRIOR[_SOURCE] = 0.5 / len(_PAIRS), 1e-4 / len(_PAIRS)
_PRIOR_WEIGHT = 1.0
"""The weight of the prior, in sites."""
_ROUNDS = 4
_MIN_PROBABILITY = 1e-3
"""The lowest probability that a hypothesis gives to an outcome, so that no single visit decides."""
_MIN_HEEDED = 1e-3
"""The silence of a source that is less likely to be informative tells nothing: it must not even break ties."""
_MIN_GAP = 60.0 / DAY
_MAX_CHANGES = 30.0


@dataclass(frozen=True, slots=True)
class HintTrust:
    """What was learned about one kind of hint on one site."""

    site: int
    kind: str
    recall: float
    """The share of changes that it signals."""
    alarms: float
    """False signals per day and page."""
    heeded: float
    """The probability that its signals are informative."""
    precision: float
    """The share of signalled visits that found a change."""
    signalled: float
    """Visits after a signal; older ones decay."""
    silent: float
    """Visits without a signal; older ones decay."""


class Signals:
    """Signals and silence since the pages' last visits, and the trust in their sources."""

    def __init__(
        self, hints: Hints | None, site: Int32s, last_visit: Floats, memory: Mapping[str, NDArray[Any]], now: float
    ) -> None:
        self._hints = hints
        self._site = site
        self._last_visit = last_visit
        self._now = now
        sites = int(site.max(initial=-1)) + 1
        kinds = hints.kinds if hints else ()
        self._expected = np.zeros(len(last_visit) if kinds else 0, np.float32)
        """One per page: expected changes without hints, from the last `predict`."""
        decay = (1 - FORGET) ** max(0.0, (now - float(memory.get("hints.now", np.array(now)))) / DAY)
        self._logs = {kind: decay * _resized(memory.get(f"hints.{kind}.logs"), sites, len(_GRID)) for kind in kinds}
        """Kind to site by hypothesis: log-likelihoods."""
        self._counts = {kind: decay * _resized(memory.get(f"hints.{kind}.counts"), sites, 4) for kind in kinds}
        """Kind to site by four: signalled visits, those that found a change, silent visits, those that found one."""
        self._totals = {kind: decay * _resized(memory.get(f"hints.{kind}.said"), sites, 2) for kind in kinds}
        """Kind to site by two: signals, and the page-days in which they came."""
        self._recall: dict[str, Floats] = {}
        self._alarm: dict[str, Floats] = {}
        self._doubt: dict[str, Floats] = {}
        """Kind to one per site: the probability that the source is uninformative."""
        for row, kind in enumerate(kinds):
            self._totals[kind] += self._new_totals(row, sites)
            self._update_trust(kind)

    @classmethod
    def of(cls, book: Book) -> Signals:
        """Return the state in a book's memory, with the book's current hints."""
        return cls(book.hints, book.site, book.last_visit, book.memory, book.now)

    def keep(self, book: Book) -> None:
        """Store the state in the book's memory."""
        if self._hints is None:
            return
        book.memory["hints.now"] = np.array(max(self._now, float(book.memory.get("hints.now", np.array(-np.inf)))))
        for kind in self._hints.kinds:
            book.memory[f"hints.{kind}.logs"] = self._logs[kind].astype(np.float32)
            book.memory[f"hints.{kind}.counts"] = self._counts[kind].astype(np.float32)
            book.memory[f"hints.{kind}.said"] = self._totals[kind].astype(np.float32)

    def predict(self, pages: Pages, probability: AnyFloats) -> AnyFloats:
        """Return the change probabilities of pages given their signals, from those without hints."""
        if self._hints is None or not self._hints.kinds:
            return probability
        u = _expected_changes(probability)
        self._expected[pages] = u
        missed, alarm = self._factors(pages, u)
        missed, alarm = np.prod(missed, axis=0), np.sum(alarm, axis=0)
        given: AnyFloats = np.where((missed < 1) | (alarm < 0), -np.expm1(alarm - u * missed), probability)
        return given

    def observe(self, pages: Pages, changed: Flags) -> None:
        """Learn from visits to pages for which `predict` was called."""
        if self._hints is None or not self._hints.kinds or not len(pages):
            return
        u = self._expected[pages].astype(np.float64)
        missed, alarm = self._factors(pages, u)
        for row, kind in enumerate(self._hints.kinds):
            covered = np.flatnonzero(self._covered(row, pages) + self._hints.signals[row, pages])
            if len(covered):
                # The other kinds' signals are taken into account: a source gets no credit for what another signalled.
                others = np.arange(len(missed)) != row
                rest = np.prod(missed[others], axis=0)[covered] * u[covered]
                other_alarm = np.sum(alarm[others], axis=0)[covered]
                self._add_evidence(row, pages[covered], changed[covered], u[covered], rest, other_alarm)
                self._update_trust(kind)

    def trust(self) -> list[HintTrust]:
        """Return what was learned about every source that sent hints."""
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

    def sources(self, pages: Pages) -> tuple[Floats, Floats]:
        """Return, per page, the share of changes that no source signals, and the sources' false signals per day."""
        missed, false = np.ones(len(pages)), np.zeros(len(pages))
        site = self._site[pages]
        for row, kind in enumerate(self._hints.kinds if self._hints else ()):
            covered = (self._covered(row, pages) > 0).astype(np.float64)
            missed *= 1 - covered * (1 - self._doubt[kind][site]) * self._recall[kind][site]
            false += covered * self._alarm[kind][site]
        return missed, false

    def _factors(self, pages: Pages, u: Floats) -> tuple[Floats, Floats]:
        """Return, kind by page, the share of changes that silence leaves possible and log P(all signals are false)."""
        assert self._hints is not None
        site, gap = self._site[pages], self._days(pages)
        missed = np.ones((len(self._hints.kinds), len(pages)))
        alarm = np.zeros_like(missed)
        for row, kind in enumerate(self._hints.kinds):
            recall, doubt = self._recall[kind][site], self._doubt[kind][site]
            heeded = np.where(doubt > 1 - _MIN_HEEDED, 0.0, 1 - doubt)
            missed[row] = 1 - heeded * recall * self._covered(row, pages)
            rows = np.flatnonzero(self._hints.signals[row, pages])
            if len(rows):
                false = self._alarm[kind][site[rows]] * gap[rows]
                log = np.log(false / (false + recall[rows] * u[rows])) * self._hints.signals[row, pages[rows]]
                alarm[row, rows] = np.log(doubt[rows] + (1 - doubt[rows]) * np.exp(log))
        return missed, alarm

    def _covered(self, row: int, pages: Pages) -> Floats:
        """Return the share of the time since the last visit that the source covers, so that its silence counts."""
        assert self._hints is not None
        uncovered = (self._now - self._hints.until[row, pages]) / DAY
        share: Floats = np.clip(1 - uncovered / self._days(pages), 0.0, 1.0)
        return share

    def _days(self, pages: Pages | slice) -> Floats:
        """Return the days since the pages' last visits, at least a minute."""
        last = self._last_visit[pages]
        return np.maximum(np.where(np.isfinite(last), self._now - last, 0.0) / DAY, _MIN_GAP)

    def _new_totals(self, row: int, sites: int) -> Floats:
        """Return, site by two, all signals since the last visits of its pages, and the days since then."""
        assert self._hints is not None
        signals = self._hints.signals[row]  # may be shorter than the book, if pages were found since it was read
        site, gap = self._site[: len(signals)], self._days(slice(len(signals)))
        covered = (self._hints.until[row] > -np.inf) & (gap > _MIN_GAP)
        return np.stack([np.bincount(site, column * covered, sites) for column in (signals, gap)], axis=1)

    def _add_evidence(
        self, row: int, pages: Pages, changed: Flags, u: Floats, rest: Floats, other_alarm: Floats
    ) -> None:
        """Add the log-likelihood of visits under each hypothesis; `rest` and `other_alarm` are of the other kinds."""
        assert self._hints is not None
        kind, site = self._hints.kinds[row], self._site[pages]
        signals, gap = self._hints.signals[row, pages].astype(np.float64), self._days(pages)
        mean_rate = self._totals[kind][:, 0] / np.maximum(self._totals[kind][:, 1], _MIN_GAP)
        count = np.repeat(signals[:, None], len(_GRID), axis=1)
        count[:, _ECHO] = (mean_rate[site] * gap)[:, None]
        false = gap[:, None] * _ALARM
        log = np.log(false / (false + np.outer(u, _RECALL)))
        missed = _SCALE * (1 - np.outer(self._covered(row, pages), _RECALL))
        log_unchanged = other_alarm[:, None] + count * log - rest[:, None] * missed
        unchanged = np.clip(np.exp(log_unchanged), _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)
        likelihood = np.log(np.where(changed[:, None], 1 - unchanged, unchanged))
        order = np.argsort(site, kind="stable")
        sites, starts = np.unique(site[order], return_index=True)
        self._logs[kind][sites] += np.add.reduceat(likelihood[order], starts, axis=0)
        signalled = signals > 0
        seen = np.stack((signalled, signalled & changed, ~signalled, ~signalled & changed), axis=1).astype(np.float64)
        self._counts[kind][sites] += np.add.reduceat(seen[order], starts, axis=0)

    def _update_trust(self, kind: str) -> None:
        """Compute recall, alarms and doubt per site; the prior is estimated from all sites with evidence."""
        logs, counts = self._logs[kind], self._counts[kind]
        observed = counts[:, 0] + counts[:, 2] > 0
        prior = _PRIOR
        for _ in range(_ROUNDS if observed.any() else 0):
            prior = (_PRIOR_WEIGHT * _PRIOR + _posterior(logs[observed], prior).sum(axis=0)) / (
                _PRIOR_WEIGHT + np.count_nonzero(observed)
            )
        posterior = _posterior(logs, prior)
        informative = posterior[:, _SOURCE]
        weight = informative / np.maximum(informative.sum(axis=1, keepdims=True), 1e-300)
        self._doubt[kind] = posterior[:, : _SOURCE.start].sum(axis=1)
        self._recall[kind] = weight @ _RECALL[_SOURCE]
        self._alarm[kind] = np.exp(weight @ np.log(_ALARM[_SOURCE]))


def _posterior(logs: Floats, prior: Floats) -> Floats:
    """Return, site by hypothesis, the posterior probabilities."""
    odds = logs - logs.max(axis=1, keepdims=True)
    weights: Floats = np.exp(odds) * prior
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _expected_changes(probability: AnyFloats) -> Floats:
    """Return the expected number of changes for a change probability, at least 1e-9."""
    safe = np.minimum(probability.astype(np.float64), 1 - 1e-13)
    expected: Floats = np.clip(-np.log1p(-safe), 1e-9, _MAX_CHANGES)
    return expected


def _resized(kept: NDArray[Any] | None, rows: int, columns: int) -> Floats:
    """Return a stored table with rows added for new sites."""
    table = np.zeros((rows, columns))
    if kept is not None and kept.ndim == 2 and kept.shape[1] == columns:
        table[: len(kept)] = kept[:rows]
    return table
