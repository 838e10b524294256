"""The measures of a replay (spec §3), taken by the lab, never by a policy.

`Meter` observes a replay; `Record` holds its measurements. Freshness and age are means over time: they are sampled
several times per cycle, over the pages that are on the web or in the repository.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.papers.change_frequency import page_rates
from recrawl.columns import DAY, Flags, Floats, Int32s, Ints, unique
from recrawl.lab.histories.history import ABSENT, HOSTILE, History
from recrawl.lab.replays.copies import DistinctFinds, has_texts
from recrawl.lab.replays.timeline import Timeline
from recrawl.learn.value import arrivals
from recrawl.model import Outcome, Outcomes, Pages


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """The measurements of a replay; arrays have one value per cycle unless stated otherwise."""

    visits: Ints
    found: Ints
    """Updates found: creations, changes and removals (spec C5)."""
    weight: Floats
    """Sum of the weights of the pages found changed."""
    failed: Ints
    bytes: Ints
    freshness: Floats
    """One per sample."""
    freshness_by_weight: Floats
    """One per sample: the same with each page counted by its weight; empty if policies do not get the weights."""
    age: Floats
    """One per sample: mean days that pages have been out of date."""
    delay: float
    """Mean days from a change to the visit that finds it, and so makes it searchable (spec M6)."""
    new_pages: int
    """Pages born during the replay."""
    discovery: float
    """Mean days from the birth of such a page to its first visit, its removal, or the end of the replay."""
    delay_of_all: float
    """The same with the changes that were not found by the end, which count up to then; so it is a lower bound."""
    site_visits: Ints
    """One per site; so are the next two."""
    site_found: Ints
    site_bytes: Ints
    sites: list[str]
    """Their names."""
    honest: Flags | None
    """One per site: whether it is no adversary; None if there is none. Freshness and age are of the honest sites."""
    hours: float
    """Length of the replay in hours."""
    weighted: bool
    """Whether the history has page weights."""
    work: dict[str, int] = field(default_factory=dict)
    """What the policy reports of its computing."""
    distinct: int | None = None
    """Updates found, counted once for each text of a site (see `copies`); None where texts are not known."""
    rate_accuracy: float = float("nan")
    """Accuracy of the estimated change rates in percentage points (spec M7, see `rate_accuracy`)."""

    @property
    def change_ratios(self) -> Floats:
        """Updates found per visit in each cycle (spec M1); nan in a cycle without visits."""
        return _ratio(self.found, self.visits)

    @property
    def change_ratio(self) -> float:
        """Mean over the cycles with visits (spec M1)."""
        return _mean(self.change_ratios)

    @property
    def weighted_change_ratio(self) -> float | None:
        """The same with each page counted by its weight, whose mean is 1 (spec M2, T eq. 10)."""
        return _mean(_ratio(self.weight, self.visits)) if self.weighted else None

    @property
    def load(self) -> list[dict[str, Any]]:
        """The load on every site with visits, the busiest first (spec M9)."""
        order = np.argsort(-self.site_visits, kind="stable")
        return [
            {
                "site": self.sites[site],
                "visits": int(self.site_visits[site]),
                "found": int(self.site_found[site]),
                "bytes": int(self.site_bytes[site]),
                "visits_per_hour": float(self.site_visits[site] / self.hours),
                "bytes_per_hour": float(self.site_bytes[site] / self.hours),
            }
            for site in order[: np.count_nonzero(self.site_visits)].tolist()
        ]

    def summary(self) -> dict[str, Any]:
        """Return the figures of the replay as a dictionary."""
        visits, found, failed = int(self.visits.sum()), int(self.found.sum()), int(self.failed.sum())
        by_weight = _mean(self.freshness_by_weight) if len(self.freshness_by_weight) else None
        return {
            "visits": visits,
            "found": found,
            "distinct": self.distinct,
            "honest_visits": None if self.honest is None else int(self.site_visits[self.honest].sum()),
            "honest_found": None if self.honest is None else int(self.site_found[self.honest].sum()),
            "change_ratio": self.change_ratio,
            "change_ratio_by_cycle": [None if np.isnan(ratio) else float(ratio) for ratio in self.change_ratios],
            "weighted_change_ratio": self.weighted_change_ratio,
            "success_rate": found / visits if visits else None,
            "freshness": _mean(self.freshness),
            "weighted_freshness": by_weight,
            "embarrassment": None if by_weight is None else 1 - by_weight,
            "age_days": _mean(self.age),
            "delay_days": None if np.isnan(self.delay) else self.delay,
            "new_pages": self.new_pages,
            "discovery_days": None if np.isnan(self.discovery) else self.discovery,
            "delay_days_of_all": None if np.isnan(self.delay_of_all) else self.delay_of_all,
            "needless": visits - found - failed,
            "rate_accuracy": self.rate_accuracy,
            "failed": failed,
            "bytes": int(self.bytes.sum()),
            "work": self.work,
            "busiest_visits_per_hour": float(self.site_visits.max(initial=0) / self.hours),
            "busiest_bytes_per_hour": float(self.site_bytes.max(initial=0) / self.hours),
            "load": self.load,
        }


class Meter:
    """Takes the measurements during a replay."""

    def __init__(self, history: History, cycles: int, *, weighted: bool = False) -> None:
        self._history = history
        self._weight = history.weight
        self._rows: list[tuple[int, int, float, int, int]] = []
        self._cycles = cycles
        self._visits: list[tuple[Pages, NDArray[np.int8], Pages, Floats]] = []
        self._at: list[float] = []
        self._samples: list[tuple[float, float]] = []
        self._weights = history.weight if weighted else None
        self._by_weight: list[float] = []
        self._delay = self._delayed = 0.0
        self._first_visit = np.full(len(history), np.inf)
        self._end = 0.0
        self._site = history.site.astype(np.int64)  # bincount's type
        sites = len(history.sites)
        self._distinct = DistinctFinds(history) if has_texts(history) else None
        hostile = history.facts.get(HOSTILE)
        self._honest = None if hostile is None else hostile == 0
        self._site_visits = np.zeros(sites, np.int64)
        self._site_found = np.zeros(sites, np.int64)
        self._site_bytes = np.zeros(sites, np.int64)

    def count(self, pages: Pages, what: NDArray[np.int8], answered: Pages, delay: Floats, at: float) -> None:
        """Count visits at one time; `delay` is how long `answered` pages were out of date, not finite if they were not.

        Many batches hold one page, so the arithmetic waits for `close`, which does it once for the whole cycle.
        """
        self._visits.append((pages, what, answered, delay))
        self._at.append(at)

    def close(self, timeline: Timeline) -> None:
        """End the cycle: add up its visits. Each page is visited once, so the repository still holds what they read."""
        at = np.repeat(self._at, [len(answered) for _, _, answered, _ in self._visits])
        parts = zip(*self._visits, strict=True) if self._visits else ((), (), (), ())
        empty = (np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros(0, np.int64), np.zeros(0))
        pages, what, answered, delay = (np.concatenate([none, *part]) for none, part in zip(empty, parts, strict=True))
        self._visits.clear()
        self._at.clear()
        self._first_visit[answered] = np.minimum(self._first_visit[answered], at)
        hits = pages[Outcomes(pages, what).changed]
        if self._distinct is not None:
            self._distinct.add(hits, timeline.held[hits])
        size = self._history.size[timeline.held_row[answered]]
        weight = float(self._weight[hits].sum()) if self._weight is not None else 0.0
        self._rows.append((len(pages), len(hits), weight, len(pages) - len(answered), int(size.sum())))
        late = delay[np.isfinite(delay)]  # the other pages were up to date
        self._delay += float(late.sum())
        self._delayed += len(late)
        sites = len(self._site_visits)
        self._site_visits += np.bincount(self._site[pages], minlength=sites)
        self._site_found += np.bincount(self._site[hits], minlength=sites)
        self._site_bytes += np.bincount(self._site[answered], weights=size, minlength=sites).astype(np.int64)

    def sample(self, timeline: Timeline) -> None:
        """Sample freshness and age now."""
        self._end = timeline.now
        # The most frequent operation over all pages: `compress` takes a fifth of the time of an index.
        since, there = timeline.since, int(np.count_nonzero(timeline.there))
        if self._honest is not None:
            since, there = since[self._honest], int(np.count_nonzero(timeline.there[self._honest]))
        stale = since.compress(np.isfinite(since))
        if there:
            self._samples.append((1 - len(stale) / there, float((timeline.now - stale).sum()) / there / DAY))
        if self._weights is not None:
            total, stale_weight = self._weights[timeline.there].sum(), self._weights[np.isfinite(timeline.since)].sum()
            self._by_weight.append(1 - float(stale_weight / total) if total > 0 else np.nan)

    def _discovery(self) -> Floats:
        """Return, for every page born during the replay, the days from its birth to its first visit."""
        history = self._history
        birth = history.time[history.first[:-1]]
        removal = np.full(len(history), self._end)
        gone = np.flatnonzero(history.version == ABSENT)[::-1]  # backwards, so that the first removal is kept
        removal[history.page_of[gone]] = np.minimum(history.time[gone], self._end)
        born = (birth > 0) & (birth < self._end)
        days: Floats = (np.minimum(self._first_visit, removal) - birth)[born] / DAY
        return days

    def record(self, timeline: Timeline, hours: float) -> Record:
        """Return the measurements; the timeline is at the end of the replay, which took this many hours."""
        since = timeline.since[np.isfinite(timeline.since)]
        delay_of_all = (self._delay + float((timeline.now - since).sum())) / DAY
        changes = self._delayed + len(since)
        visits, found, weight, failed, size = zip(*self._rows, strict=True)
        samples = np.array(self._samples).reshape(-1, 2)
        discovery = self._discovery()
        return Record(
            visits=np.array(visits, np.int64),
            found=np.array(found, np.int64),
            weight=np.array(weight),
            failed=np.array(failed, np.int64),
            bytes=np.array(size, np.int64),
            freshness=samples[:, 0],
            freshness_by_weight=np.array(self._by_weight),
            age=samples[:, 1],
            delay=self._delay / self._delayed / DAY if self._delayed else float("nan"),
            new_pages=len(discovery),
            discovery=float(discovery.mean()) if len(discovery) else float("nan"),
            delay_of_all=delay_of_all / changes if changes else float("nan"),
            sites=list(self._history.sites),
            honest=None
            if self._honest is None
            else np.bincount(self._site[self._honest], minlength=len(self._site_visits)) > 0,
            hours=hours,
            distinct=None if self._distinct is None else self._distinct.count(),
            site_visits=self._site_visits,
            site_found=self._site_found,
            site_bytes=self._site_bytes,
            weighted=self._weight is not None,
        )


def _ratio(part: NDArray[Any], whole: Ints) -> Floats:
    ratio = np.full(len(whole), np.nan)
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio


def _mean(values: Floats) -> float:
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else float("nan")


# --------------------------------------------------------------------------------------------------------------------
# How accurately a replay estimates change rates (spec M7, Q table 4.2): 100 - |real - estimated|, in points.
#
# The real rate of a site is the share of its pages that change in a cycle, as a mean over the cycles. The estimate
# comes from what the visits have shown by the end: every page's estimated changes per day, as `recrawl why --rate`
# shows them, give its probability to change in a cycle, and a site's estimate is the mean over its pages. Pages that
# exist at the start count; the measure is the mean over sites.


def rate_accuracy(history: History, book: Book, cycle: float, cycles: int) -> float:
    """Return the mean accuracy over sites in percentage points; nan without pages at the start."""
    old = np.flatnonzero(history.time[history.first[:-1]] <= 0)
    site = history.site[old].astype(np.int64)
    pages = np.bincount(site, minlength=len(history.sites))
    real = np.bincount(site, real_rates(history, cycle, cycles)[old], len(pages))
    estimated = np.bincount(site, -np.expm1(-page_rates(book)[old] * cycle / DAY), len(pages))
    there = pages > 0
    error = np.abs(real - estimated)[there] / pages[there]
    return 100 - 100 * float(error.mean()) if len(error) else float("nan")


def real_rates(history: History, cycle: float, cycles: int) -> Floats:
    """Return the share of cycles in which each page changed at least once."""
    page = history.page_of
    changed = np.append(False, (page[1:] == page[:-1]) & (history.version[1:] != history.version[:-1]))
    number = np.ceil(history.time / cycle).astype(np.int64)
    within = changed & (number >= 1) & (number <= cycles)
    pairs = unique(page[within] * np.int64(cycles + 1) + number[within])
    return np.bincount(pairs // (cycles + 1), minlength=len(history)) / cycles


# --------------------------------------------------------------------------------------------------------------------
# New links per change of each page, as the visits of a replay find them; the objective `links` uses them.


class NewLinks:
    """Counts of changes and new links per page."""

    def __init__(self, history: History) -> None:
        assert history.links is not None
        self._lists = history.links
        self._site = history.site
        self._links = np.zeros(len(history))
        self._changes = np.zeros(len(history))

    def add(self, pages: Pages, before: Ints, after: Ints, what: NDArray[np.int8]) -> None:
        """Count visits that found pages in row `after` of the history, where the repository held row `before`."""
        changed = (what == Outcome.CHANGED) & (before >= 0) & (after >= 0)
        pages, old, new = pages[changed], self._lists.of_row[before[changed]], self._lists.of_row[after[changed]]
        self._changes[pages] += 1
        other = old != new
        links = count_new_targets(*self._pairs(old[other]), *self._pairs(new[other]), int(other.sum()))
        self._links[pages[other]] += links

    def arrivals(self) -> Floats:
        """Return the estimated new links per change of each page."""
        return arrivals(self._links, self._changes, self._site)

    def _pairs(self, lists: Int32s) -> tuple[Ints, Int32s]:
        links = self._lists.at(lists)
        return np.repeat(np.arange(len(links)), np.diff(links.start)), links.target


def count_new_targets(old: Ints, old_target: Int32s, new: Ints, target: Int32s, rows: int) -> Floats:
    """Return, per row, the number of different targets that it did not have before.

    >>> old, old_target, new = np.array([0, 0]), np.array([7, 8]), np.array([0, 0, 0, 1])
    >>> count_new_targets(old, old_target, new, np.array([8, 9, 9, 7]), 2).tolist()
    [1.0, 1.0]
    """
    had = (old << 32) | old_target
    has = np.unique((new << 32) | target)
    return np.bincount(has[~np.isin(has, had)] >> 32, minlength=rows).astype(np.float64)
