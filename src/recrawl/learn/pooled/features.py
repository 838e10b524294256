"""The input of the `pooled` model from a ledger: one row per page, one column per feature.

All features are known before the visit to predict. An unknown value is NaN, which the model handles. A page that was
downloaded once already has a row: rates are shrunk towards those of its directory and site, the more so the less data
they rest on. Families of columns (the part of the name before the dot) can be left out to measure what they contribute.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.columns import DAY, HOUR, Float32s, Floats, Int32s, Ints
from recrawl.learn.pooled.ledger import (
    GROUP_HALF_LIVES,
    HALF_LIVES,
    MAX_DAYS,
    GroupSums,
    Ledger,
    covered_days,
    decay,
    part_of_day,
    weekday,
)

RECENT_VISITS = np.array([1, 7, 14])
"""Numbers of last visits that the `history.last*` features average over."""
HISTORY_LIMIT = 30
"""Cap on the visits and days a feature counts: a value that only grows with time says nothing about a page."""
BASELINE = "rhythm.weekday"
"""The prediction without a model: the page's own rate, adjusted for the weekday."""


@cache
def feature_names(depth: bool = True) -> tuple[str, ...]:
    """The columns of `features`, in order."""
    empty = Ledger.of(np.zeros(0, np.int32), np.zeros(0, np.int64))
    depths = np.zeros(0, np.int32) if depth else None
    return tuple(_columns(empty, np.zeros(0, np.int64), np.zeros(0), depths))


def features(ledger: Ledger, pages: Ints, now: ArrayLike, depth: Int32s | None = None) -> Float32s:
    """One row per page, as known at `now` (one time, or one per page).

    >>> ledger = Ledger.of(np.zeros(1, int), np.zeros(1, int))
    >>> for day in range(3):
    ...     ledger.note(np.array([0]), day * DAY, np.array([True]))
    >>> row = features(ledger, np.array([0]), 3 * DAY)[0]
    >>> dict(zip(feature_names(depth=False), row.tolist()))["history.last7"]
    1.0
    """
    when = np.broadcast_to(np.asarray(now, np.float64), len(pages))
    columns = _columns(ledger, pages, when, depth)
    table = np.empty((len(columns), len(pages)), np.float32)
    for row, column in zip(table, columns.values(), strict=True):
        row[:] = column
    return table.T


def _columns(ledger: Ledger, pages: Ints, now: Floats, depth: Int32s | None) -> dict[str, Floats]:
    """All columns by name."""
    prior = (float(ledger.changed.sum()) + 1.0) / (float(ledger.compared.sum()) + 2.0)
    gap = _mean_gap(ledger)
    page_prior = _group_prior(ledger, pages, prior, gap)
    ones = _set_bits(ledger.bits[pages])
    rate = _own_rate(ledger, pages, now, page_prior, ones, gap)
    columns = _history(ledger, pages, now, page_prior, rate, ones)
    columns |= _recency(ledger, pages, now)
    columns |= _rhythm(ledger, pages, now, rate)
    columns |= {"calendar.weekday": weekday(now).astype(np.float64), "calendar.hour": now % DAY / HOUR}
    own = _own_share(ledger, pages, now)
    for name, group in (("site", ledger.sites), ("folder", ledger.folders)):
        columns |= _group_features(name, group, own, pages, now, prior)
    return columns if depth is None else columns | {"address.depth": depth[pages].astype(np.float64)}


def _shrunk(part: ArrayLike, whole: ArrayLike, prior: ArrayLike, weight: float) -> Floats:
    """The share part/whole, shrunk towards a prior that counts as `weight` observations."""
    return np.asarray((np.asarray(part) + weight * np.asarray(prior)) / (np.asarray(whole) + weight), np.float64)


def _group_prior(ledger: Ledger, pages: Ints, prior: float, mean_gap: float) -> Floats:
    """The prior probability that a visit finds a change: shrunk from all pages to the site to the directory.

    Groups store rates per day; a visit finds what changed since the visit before.
    """
    gap = min(max(mean_gap / DAY, 0.1), MAX_DAYS)
    rate = np.full(len(pages), 1.0 - (1.0 - min(prior, 0.99)) ** (1.0 / gap))
    for group in (ledger.sites, ledger.folders):
        changes, days = group.week_changes.sum(axis=1), group.week_days.sum(axis=1)
        number = group.of[pages]
        rate = _shrunk(changes[number], days[number], rate, 2.0)
    return np.asarray(1.0 - (1.0 - np.clip(rate, 0.0, 0.99)) ** gap)


def _own_rate(ledger: Ledger, pages: Ints, now: Floats, prior: Floats, ones: Ints, mean_gap: float) -> Floats:
    """The share of its last visits that found a change, adjusted for how long ago the last visit was.

    Only the last `HISTORY_LIMIT` visits count, since older ones say little about a page that has changed its habits.
    """
    compared = ledger.compared[pages]
    counted = np.minimum(compared, HISTORY_LIMIT)
    share = _shrunk(ones[:, HISTORY_LIMIT - 1], counted, prior, 1.0)
    gap_ratio = (now - ledger.last[pages]) / _page_gap(ledger, pages, mean_gap)
    gap_ratio = np.minimum(np.maximum(np.where(np.isnan(gap_ratio), 1.0, gap_ratio), 0.1), 100.0)
    return np.asarray(1.0 - (1.0 - share) ** gap_ratio)


def _page_gap(ledger: Ledger, pages: Ints, mean_gap: float) -> Floats:
    """Mean seconds between a page's visits; the mean of all pages where it was visited once."""
    compared = ledger.compared[pages]
    watched = np.where(compared > 0, ledger.last[pages] - ledger.first[pages], 0.0)
    own = watched / np.maximum(compared, 1)
    return np.where(own > 0, own, mean_gap)


def _mean_gap(ledger: Ledger) -> float:
    """Mean seconds between visits over all pages."""
    visits = int(ledger.compared.sum())
    watched = float(np.where(ledger.compared > 0, ledger.last - ledger.first, 0.0).sum())
    return watched / visits if visits and watched > 0 else DAY


def _history(ledger: Ledger, pages: Ints, now: Floats, prior: Floats, rate: Floats, ones: Ints) -> dict[str, Floats]:
    """How often it changed: over all visits, the last few visits, and the last few days."""
    compared = ledger.compared[pages]
    counted = np.maximum(np.minimum(compared[:, None], RECENT_VISITS), 1)
    recent = np.where(compared[:, None] > 0, ones[:, RECENT_VISITS - 1] / counted, prior[:, None])
    faded = _shrunk(ledger.changes[pages], ledger.days[pages], prior[:, None], 0.5)
    columns: dict[str, Floats] = {
        "history.rate": rate,
        "history.visits": np.minimum(compared, HISTORY_LIMIT).astype(np.float64),
    }
    columns |= {f"history.last{visits}": column for visits, column in zip(RECENT_VISITS, recent.T, strict=True)}
    columns |= {f"history.days{life:g}": column for life, column in zip(HALF_LIVES, faded.T, strict=True)}
    # The probability of at least one change since the last visit, for a Poisson process at the page's mean rate.
    gap = (now - ledger.last[pages]) / DAY
    columns["history.poisson"] = -np.expm1(-columns["history.days60"] * np.maximum(gap, 0.0))
    return columns


def _set_bits(bits: NDArray[np.uint32]) -> Ints:
    """Row by n: how many of the lowest n + 1 bits are set.

    >>> _set_bits(np.array([0b1011], np.uint32))[0, [0, 1, 2, 31]].tolist()
    [1, 2, 2, 3]
    """
    bytes_ = bits.astype("<u4").view(np.uint8).reshape(len(bits), 4)
    return np.cumsum(np.unpackbits(bytes_, axis=1, bitorder="little"), axis=1, dtype=np.int64)


def _recency(ledger: Ledger, pages: Ints, now: Floats) -> dict[str, Floats]:
    """Days since the last visit, change and first visit, and the page's mean change interval.

    For a page that never changed, the time since the first visit counts, so that a new page does not look like an old
    static one.
    """
    never = np.isnan(ledger.last_change[pages])
    elapsed = (now - np.where(never, ledger.first[pages], ledger.last_change[pages])) / DAY
    watched = np.where(never, elapsed, (ledger.last_change[pages] - ledger.first[pages]) / DAY)
    interval = watched / np.maximum(ledger.changed[pages], 1)
    return {
        "recency.visit": (now - ledger.last[pages]) / DAY,
        "recency.change": np.minimum(elapsed, 2 * HISTORY_LIMIT),
        "recency.first": np.minimum((now - ledger.first[pages]) / DAY, HISTORY_LIMIT),
        "recency.interval": interval,
    }


def _rhythm(ledger: Ledger, pages: Ints, now: Floats, rate: Floats) -> dict[str, Floats]:
    """The page's own rates on the weekdays since the last visit, and at the current part of the day.

    Weekday counts reach far back, so they only say how a weekday differs from the page's other days; the recent rate
    gives the level.
    """
    days = covered_days((now - ledger.last[pages]) / DAY)
    mean_rate = ledger.week_changes[pages].sum(axis=1) / np.maximum(ledger.week_days[pages].sum(axis=1), 1e-3)
    no_change, unchanged = np.ones(len(pages)), np.ones(len(pages))
    for back in range(int(days.max(initial=0))):
        day, covered = weekday(now - back * DAY), days > back
        day_rate = _shrunk(ledger.week_changes[pages, day], ledger.week_days[pages, day], mean_rate, 2.0)
        no_change = np.where(covered, no_change * (1.0 - np.minimum(day_rate, 1.0)), no_change)
        unchanged = np.where(covered, unchanged * (1.0 - np.minimum(mean_rate, 1.0)), unchanged)
    excess = _log_odds(1.0 - no_change) - _log_odds(1.0 - unchanged)
    last = ledger.week_last[pages, weekday(now)].astype(np.float64)
    part = part_of_day(now)
    visits = ledger.hour_visits[pages]
    at_hour = _shrunk(ledger.hour_changes[pages, part], visits[np.arange(len(pages)), part], rate, 2.0)
    return {
        "rhythm.weekday": 1.0 / (1.0 + np.exp(-_log_odds(rate) - excess)),
        "rhythm.beyond": excess,
        "rhythm.last": np.where(np.isnan(last), rate, last),
        "rhythm.hour": np.where(visits.sum(axis=1) > 0, at_hour, np.nan),
    }


def _log_odds(probability: Floats) -> Floats:
    clipped = np.minimum(np.maximum(probability, 0.02), 0.98)
    return np.asarray(np.log(clipped / (1.0 - clipped)))


def _own_share(ledger: Ledger, pages: Ints, now: Floats) -> tuple[Float32s, Float32s]:
    """The page's own part of the sums of its groups: changes, and days."""
    elapsed = now - ledger.last[pages]
    left = decay(np.maximum(np.where(np.isnan(elapsed), np.inf, elapsed), 0.0), HALF_LIVES[GROUP_HALF_LIVES])
    return ledger.changes[pages][:, GROUP_HALF_LIVES] * left, ledger.days[pages][:, GROUP_HALF_LIVES] * left


def _group_features(
    name: str, group: GroupSums, own: tuple[Float32s, Float32s], pages: Ints, now: Floats, prior: float
) -> dict[str, Floats]:
    """Recent rates of the other pages of its site or directory, and the group's rate on this weekday."""
    number = group.of[pages]
    left = decay(np.maximum(now - group.time[number], 0.0), HALF_LIVES[GROUP_HALF_LIVES])
    changes = group.changes[number] * left - own[0]
    days = group.days[number] * left - own[1]
    other_rate = np.where(days > 1e-3, np.maximum(changes, 0.0) / np.maximum(days, 1e-3), np.nan)
    by_weekday = _shrunk(group.week_changes, group.week_days, prior, 1.0)
    weekday_rate = by_weekday[number, weekday(now)]
    return {
        f"{name}.now": other_rate[:, 0].astype(np.float64),
        f"{name}.lately": other_rate[:, 1].astype(np.float64),
        f"{name}.weekday": weekday_rate,
        f"{name}.beyond": weekday_rate - by_weekday.mean(axis=1)[number],
    }
