"""What a replay is judged by (spec §3), measured by the lab, never by a policy.

`Meter` watches a replay; `Record` is what it has seen, one number a cycle. Freshness and age are means over time:
they are looked at several times within each cycle, over the pages that are on the web or in the repository.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.histories.history import History
from recrawl.lab.replays.timeline import Timeline
from recrawl.model import Outcomes, Pages

DAY = 86400.0


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A replay in numbers; arrays have one value per cycle unless said otherwise."""

    visits: NDArray[np.int64]
    found: NDArray[np.int64]
    """Updates found: creations, changes and removals (spec C5)."""
    weight: NDArray[np.float64]
    """The weights of the pages found changed, together."""
    failed: NDArray[np.int64]
    bytes: NDArray[np.int64]
    freshness: NDArray[np.float64]
    """One per look."""
    freshness_by_weight: NDArray[np.float64]
    """One per look: the same with every page counted by its weight; none where policies were not told of weights."""
    age: NDArray[np.float64]
    """One per look: mean days that pages have been out of date."""
    delay: float
    """Mean days from a change to its being found, so to its being searchable (spec M6)."""
    site_visits: NDArray[np.int64]
    """One per site, as the two below."""
    site_found: NDArray[np.int64]
    site_bytes: NDArray[np.int64]
    weighted: bool
    """Whether pages had weights."""

    @property
    def change_ratios(self) -> NDArray[np.float64]:
        """Found per visit, in each cycle (spec M1); nan in a cycle without a visit."""
        return _ratio(self.found, self.visits)

    @property
    def change_ratio(self) -> float:
        """The mean over the cycles that made visits (spec M1)."""
        return _mean(self.change_ratios)

    @property
    def weighted_change_ratio(self) -> float | None:
        """The same with every page counted by its weight, whose mean is 1 (spec M2, T eq. 10)."""
        return _mean(_ratio(self.weight, self.visits)) if self.weighted else None

    def summary(self) -> dict[str, Any]:
        """The figures that people compare."""
        visits, found = int(self.visits.sum()), int(self.found.sum())
        return {
            "visits": visits,
            "found": found,
            "change_ratio": self.change_ratio,
            "change_ratio_by_cycle": [None if np.isnan(ratio) else float(ratio) for ratio in self.change_ratios],
            "weighted_change_ratio": self.weighted_change_ratio,
            "success_rate": found / visits if visits else None,
            "freshness": _mean(self.freshness),
            "weighted_freshness": _mean(self.freshness_by_weight) if len(self.freshness_by_weight) else None,
            "age_days": _mean(self.age),
            "delay_days": None if np.isnan(self.delay) else self.delay,
            "failed": int(self.failed.sum()),
            "bytes": int(self.bytes.sum()),
        }


class Meter:
    """Counts as the replay goes."""

    def __init__(self, history: History, cycles: int, budget: int, *, weighted: bool = False) -> None:
        self._history = history
        self._weight = history.weight
        self._budget = budget
        self._rows: list[tuple[int, int, float, int, int]] = []
        self._cycles = cycles
        self._now = np.zeros(5)
        self._looks: list[tuple[float, float]] = []
        self._weights = history.weight if weighted else None
        self._by_weight: list[float] = []
        self._delay = self._delayed = 0.0
        self._site = history.site.astype(np.int64)  # as counting wants it
        sites = len(history.sites)
        self._site_visits = np.zeros(sites, np.int64)
        self._site_found = np.zeros(sites, np.int64)
        self._site_bytes = np.zeros(sites, np.int64)

    def count(
        self, pages: Pages, what: NDArray[np.int8], asked: Pages, waited: NDArray[np.float64], tape: Timeline
    ) -> None:
        """Take in visits: those that were answered (`asked`) had been out of date for so long (`waited`)."""
        found = Outcomes(pages, what).changed
        size = self._history.size[tape.held_row[asked]]
        site = self._site[pages]
        answering = site if len(asked) == len(pages) else self._site[asked]
        hits = pages[found]
        weight = float(self._weight[hits].sum()) if self._weight is not None else 0.0
        self._now += (len(pages), len(hits), weight, len(pages) - len(asked), float(size.sum()))
        known = np.isfinite(waited)  # those that were up to date have waited for nothing
        self._delay += float(waited[known].sum())
        self._delayed += float(np.count_nonzero(known))
        sites = len(self._site_visits)
        self._site_visits += np.bincount(site, minlength=sites)
        self._site_found += np.bincount(site[found], minlength=sites)
        self._site_bytes += np.bincount(answering, weights=size, minlength=sites).astype(np.int64)

    def close(self) -> None:
        """The cycle is over."""
        visits, found, weight, failed, size = self._now.tolist()
        self._rows.append((int(visits), int(found), weight, int(failed), int(size)))
        self._now[:] = 0

    def look(self, tape: Timeline) -> None:
        """How fresh is the repository now?"""
        # This is done most often of all over all pages: `compress` takes a fifth of the time of an index.
        stale = tape.since.compress(np.isfinite(tape.since))
        there = int(np.count_nonzero(tape.there))
        if there:
            self._looks.append((1 - len(stale) / there, float((tape.now - stale).sum()) / there / DAY))
        if self._weights is not None:
            all_, behind = self._weights[tape.there].sum(), self._weights[np.isfinite(tape.since)].sum()
            self._by_weight.append(1 - float(behind / all_) if all_ > 0 else np.nan)

    def record(self) -> Record:
        """What was seen."""
        visits, found, weight, failed, size = zip(*self._rows, strict=True)
        looks = np.array(self._looks).reshape(-1, 2)
        return Record(
            visits=np.array(visits, np.int64),
            found=np.array(found, np.int64),
            weight=np.array(weight),
            failed=np.array(failed, np.int64),
            bytes=np.array(size, np.int64),
            freshness=looks[:, 0],
            freshness_by_weight=np.array(self._by_weight),
            age=looks[:, 1],
            delay=self._delay / self._delayed / DAY if self._delayed else float("nan"),
            site_visits=self._site_visits,
            site_found=self._site_found,
            site_bytes=self._site_bytes,
            weighted=self._weight is not None,
        )


def _ratio(part: NDArray[Any], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    ratio = np.full(len(whole), np.nan)
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio


def _mean(values: NDArray[np.float64]) -> float:
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else float("nan")
