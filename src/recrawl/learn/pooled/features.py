"""What the `pooled` predictor looks at, from a ledger: one row a page, one column a feature.

Everything is known before the visit that is to be predicted. What is not known is not a number, which the model takes
as it is. A page that was downloaded once has a row already: rates are drawn towards what is usual in its directory and
its site, the more the less they rest on. Families of columns (the word before the point) can be left out to see what
they are worth.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.columns import DAY, HOUR, Float32s, Floats, Int32s, Ints
from recrawl.learn.pooled.ledger import (
    HALF_LIVES,
    LONGEST,
    OF_GROUPS,
    GroupSums,
    Ledger,
    days_between,
    fade,
    hour,
    weekday,
)

RECENT = np.array([1, 7, 14])
"""Numbers of last visits that are looked at together."""
LONG = 30
"""The most visits, and days, that a page's past is looked at by number: a clock that runs on tells of no page."""
BASELINE = "rhythm.weekday"
"""What is known without a model: the page's own rate, as it is on such a weekday."""


@cache
def names(depth: bool = True) -> tuple[str, ...]:
    """The columns that `features` makes, in order."""
    empty = Ledger.of(np.zeros(0, np.int32), np.zeros(0, np.int64))
    depths = np.zeros(0, np.int32) if depth else None
    return tuple(_columns(empty, np.zeros(0, np.int64), np.zeros(0), depths))


def features(ledger: Ledger, pages: Ints, now: ArrayLike, depth: Int32s | None = None) -> Float32s:
    """One row for each page, as known at `now` (one time, or one for each).

    >>> ledger = Ledger.of(np.zeros(1, int), np.zeros(1, int))
    >>> for day in range(3):
    ...     ledger.note(np.array([0]), day * DAY, np.array([True]))
    >>> row = features(ledger, np.array([0]), 3 * DAY)[0]
    >>> dict(zip(names(depth=False), row.tolist()))["history.last7"]
    1.0
    """
    when = np.broadcast_to(np.asarray(now, np.float64), len(pages))
    columns = _columns(ledger, pages, when, depth)
    table = np.empty((len(columns), len(pages)), np.float32)
    for row, column in zip(table, columns.values(), strict=True):
        row[:] = column
    return table.T


def _columns(ledger: Ledger, pages: Ints, now: Floats, depth: Int32s | None) -> dict[str, Floats]:
    """All columns."""
    usual = (float(ledger.changed.sum()) + 1.0) / (float(ledger.compared.sum()) + 2.0)
    gap = _usual_gap(ledger)
    here = _usual_here(ledger, pages, usual, gap)
    ones = _ones(ledger.bits[pages])
    rate = _own_rate(ledger, pages, now, here, ones, gap)
    found = _history(ledger, pages, now, here, rate, ones)
    found |= _recency(ledger, pages, now)
    found |= _rhythm(ledger, pages, now, rate)
    found |= {"calendar.weekday": weekday(now).astype(np.float64), "calendar.hour": now % DAY / HOUR}
    own = _own_part(ledger, pages, now)
    for name, group in (("site", ledger.sites), ("folder", ledger.folders)):
        found |= _around(name, group, own, pages, now, usual)
    return found if depth is None else found | {"address.depth": depth[pages].astype(np.float64)}


def _drawn(part: ArrayLike, whole: ArrayLike, towards: ArrayLike, weight: float) -> Floats:
    """A share, drawn towards what is usual as if that had been seen so often."""
    return np.asarray((np.asarray(part) + weight * np.asarray(towards)) / (np.asarray(whole) + weight), np.float64)


def _usual_here(ledger: Ledger, pages: Ints, usual: float, usual_gap: float) -> Floats:
    """How often visits find a change in each page's directory, as far as it was watched, in its site, and anywhere.

    Groups know rates per day; what a visit finds is what came since the one before.
    """
    gap = min(max(usual_gap / DAY, 0.1), LONGEST)
    rate = np.full(len(pages), 1.0 - (1.0 - min(usual, 0.99)) ** (1.0 / gap))
    for group in (ledger.sites, ledger.folders):
        changes, days = group.week_changes.sum(axis=1), group.week_days.sum(axis=1)
        number = group.of[pages]
        rate = _drawn(changes[number], days[number], rate, 2.0)
    return np.asarray(1.0 - (1.0 - np.clip(rate, 0.0, 0.99)) ** gap)


def _own_rate(ledger: Ledger, pages: Ints, now: Floats, usual: Floats, ones: Ints, usual_gap: float) -> Floats:
    """The share of its last visits that found a change; more where it was left alone for longer than it used to be.

    Only the last `LONG` visits: a page that fell silent last year is no longer what it was.
    """
    compared = ledger.compared[pages]
    counted = np.minimum(compared, LONG)
    share = _drawn(ones[:, LONG - 1], counted, usual, 1.0)
    times = (now - ledger.last[pages]) / _typical_gap(ledger, pages, usual_gap)
    times = np.minimum(np.maximum(np.where(np.isnan(times), 1.0, times), 0.1), 100.0)
    return np.asarray(1.0 - (1.0 - share) ** times)


def _typical_gap(ledger: Ledger, pages: Ints, usual: float) -> Floats:
    """Seconds for which each page is usually left alone; as for all pages where it was visited once."""
    compared = ledger.compared[pages]
    watched = np.where(compared > 0, ledger.last[pages] - ledger.first[pages], 0.0)
    own = watched / np.maximum(compared, 1)
    return np.where(own > 0, own, usual)


def _usual_gap(ledger: Ledger) -> float:
    """The same for all pages together."""
    visits = int(ledger.compared.sum())
    watched = float(np.where(ledger.compared > 0, ledger.last - ledger.first, 0.0).sum())
    return watched / visits if visits and watched > 0 else DAY


def _history(ledger: Ledger, pages: Ints, now: Floats, usual: Floats, rate: Floats, ones: Ints) -> dict[str, Floats]:
    """How often it changed: of all visits, of the last few, in the last few days."""
    compared = ledger.compared[pages]
    many = np.maximum(np.minimum(compared[:, None], RECENT), 1)
    recent = np.where(compared[:, None] > 0, ones[:, RECENT - 1] / many, usual[:, None])
    lately = _drawn(ledger.changes[pages], ledger.days[pages], usual[:, None], 0.5)
    found: dict[str, Floats] = {"history.rate": rate, "history.visits": np.minimum(compared, LONG).astype(np.float64)}
    found |= {f"history.last{visits}": column for visits, column in zip(RECENT, recent.T, strict=True)}
    found |= {f"history.days{life:g}": column for life, column in zip(HALF_LIVES, lately.T, strict=True)}
    # The chance of one change or more since the last visit, if they came at the page's mean rate.
    gap = (now - ledger.last[pages]) / DAY
    found["history.poisson"] = -np.expm1(-found["history.days60"] * np.maximum(gap, 0.0))
    return found


def _ones(bits: NDArray[np.uint32]) -> Ints:
    """Row by number of bits: how many of the lowest so many are set.

    >>> _ones(np.array([0b1011], np.uint32))[0, [0, 1, 2, 31]].tolist()
    [1, 2, 2, 3]
    """
    bytes_ = bits.astype("<u4").view(np.uint8).reshape(len(bits), 4)
    return np.cumsum(np.unpackbits(bytes_, axis=1, bitorder="little"), axis=1, dtype=np.int64)


def _recency(ledger: Ledger, pages: Ints, now: Floats) -> dict[str, Floats]:
    """How long ago, in days, and how long it usually takes the page to change.

    A page that never changed has been as it is for as long as it is known: a newborn is not one that rests for good.
    """
    never = np.isnan(ledger.last_change[pages])
    since = (now - np.where(never, ledger.first[pages], ledger.last_change[pages])) / DAY
    watched = np.where(never, since, (ledger.last_change[pages] - ledger.first[pages]) / DAY)
    usually = watched / np.maximum(ledger.changed[pages], 1)
    return {
        "recency.visit": (now - ledger.last[pages]) / DAY,
        "recency.change": np.minimum(since, 2 * LONG),
        "recency.first": np.minimum((now - ledger.first[pages]) / DAY, LONG),
        "recency.interval": usually,
    }


def _rhythm(ledger: Ledger, pages: Ints, now: Floats, rate: Floats) -> dict[str, Floats]:
    """The page's own rates on the weekdays, and at the hour, that lie since the last visit.

    A weekday's counts reach far back; so they say how it differs from the page's other days, and the rate of late says
    from what.
    """
    many = days_between((now - ledger.last[pages]) / DAY)
    week = ledger.week_changes[pages].sum(axis=1) / np.maximum(ledger.week_days[pages].sum(axis=1), 1e-3)
    quiet, usual = np.ones(len(pages)), np.ones(len(pages))
    for back in range(int(many.max(initial=0))):
        day, told = weekday(now - back * DAY), many > back
        here = _drawn(ledger.week_changes[pages, day], ledger.week_days[pages, day], week, 2.0)
        quiet = np.where(told, quiet * (1.0 - np.minimum(here, 1.0)), quiet)
        usual = np.where(told, usual * (1.0 - np.minimum(week, 1.0)), usual)
    beyond = _log_odds(1.0 - quiet) - _log_odds(1.0 - usual)
    last = ledger.week_last[pages, weekday(now)].astype(np.float64)
    part = hour(now)
    visits = ledger.hour_visits[pages]
    at_hour = _drawn(ledger.hour_changes[pages, part], visits[np.arange(len(pages)), part], rate, 2.0)
    return {
        "rhythm.weekday": 1.0 / (1.0 + np.exp(-_log_odds(rate) - beyond)),
        "rhythm.beyond": beyond,
        "rhythm.last": np.where(np.isnan(last), rate, last),
        "rhythm.hour": np.where(visits.sum(axis=1) > 0, at_hour, np.nan),
    }


def _log_odds(chance: Floats) -> Floats:
    kept = np.minimum(np.maximum(chance, 0.02), 0.98)
    return np.asarray(np.log(kept / (1.0 - kept)))


def _own_part(ledger: Ledger, pages: Ints, now: Floats) -> tuple[Float32s, Float32s]:
    """What of the sums of its groups is the page's own: changes, and days."""
    since = now - ledger.last[pages]
    left = fade(np.maximum(np.where(np.isnan(since), np.inf, since), 0.0), HALF_LIVES[OF_GROUPS])
    return ledger.changes[pages][:, OF_GROUPS] * left, ledger.days[pages][:, OF_GROUPS] * left


def _around(
    name: str, group: GroupSums, own: tuple[Float32s, Float32s], pages: Ints, now: Floats, usual: float
) -> dict[str, Floats]:
    """What the other pages of its site or directory did lately, and what they do on such a weekday."""
    number = group.of[pages]
    left = fade(np.maximum(now - group.time[number], 0.0), HALF_LIVES[OF_GROUPS])
    changes = group.changes[number] * left - own[0]
    days = group.days[number] * left - own[1]
    others = np.where(days > 1e-3, np.maximum(changes, 0.0) / np.maximum(days, 1e-3), np.nan)
    week = _drawn(group.week_changes, group.week_days, usual, 1.0)
    today = week[number, weekday(now)]
    return {
        f"{name}.now": others[:, 0].astype(np.float64),
        f"{name}.lately": others[:, 1].astype(np.float64),
        f"{name}.weekday": today,
        f"{name}.beyond": today - week.mean(axis=1)[number],
    }
